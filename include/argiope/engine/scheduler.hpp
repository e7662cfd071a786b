// Scheduler: the part of an engine that fires its store's schedules when they are due, each planned time at most once,
// whatever happens to the process or the clock in between. Schedules are added and changed in the engine's book.
//
// A run is a job. Putting it, writing it into the schedule's history and moving the schedule on is one transaction of
// the store, so that a crash at any instant neither loses nor doubles a run. In memory are, of each schedule, its id
// and when it is due; all else is read when it fires.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"
#include "argiope/engine/schedule_book.hpp"
#include "argiope/engine/schedule_events.hpp"
#include "argiope/engine/worker.hpp"
#include "argiope/jobs/schedule.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

class SchedulerImpl;

struct SchedulerOptions {
  // Schedules fired in one transaction.
  std::size_t batch = 2'000;
  // The calendar is looked at no less often, because it may be set at any time.
  Duration look_interval = std::chrono::seconds{1};
  // A calendar set back repeats nothing: what was run for a planned time is not run again when that time comes a second
  // time. But a schedule that has got further than this beyond the calendar begins anew from there: it had been led
  // into the future by a clock that was wrong.
  Duration step_back = std::chrono::hours{3};
  // How soon to try again what a queue without room has refused.
  Duration retry_interval = std::chrono::seconds{1};
  // Whether jobs may be put into queues that have no executor here, for workers elsewhere. If not, a schedule that
  // wants to is marked until its executor is added.
  bool foreign_queues = true;
};

enum class SchedulerState : std::uint8_t { stopped, running, paused };
std::string_view to_string(SchedulerState state) noexcept;

// Which run of which schedule a job is.
struct ScheduledRun {
  ScheduleId schedule = 0;
  std::string name;
  std::uint64_t run = 0;
  WallTime planned{};
  WallTime fired_at{};
};

struct ExecutorOptions {
  std::size_t concurrency = 16;
  // How long shutdown(wait) and remove_executor let runs go on before they are cancelled, and run again later.
  Duration drain_limit = Duration::max();
};

// docs/from-apscheduler.md compares it with APScheduler's BaseScheduler, name by name.
//
// Suspends: until the effect is committed.
// Errors:   as ScheduleBook.
// Cancel:   cancelling the wait does not undo a change.
// Lifetime: its engine's. It may end at any moment, without shutdown() and with calls under way: runs of its executors
//           are cancelled, and run again later.
// Threads:  the loop's own.
class Scheduler {
 public:
  explicit Scheduler(std::shared_ptr<SchedulerImpl> impl) noexcept;  // Engine makes it
  Scheduler(const Scheduler&) = delete;
  ~Scheduler();

  // --- the whole
  // Begins to fire; `paused`: only runs what has been put already.
  void start(bool paused = false);
  void pause();
  void resume();  // what has come due in between falls under the misfire policies
  // Fires nothing more, for good; `wait` for the runs of its executors to end, or cancel them, to be run again later.
  // While one that waits is under way, one that does not ends its waiting.
  Coro<Result<void>> shutdown(bool wait = true);
  SchedulerState state() const noexcept;
  std::optional<Error> failure() const;
  std::size_t size() const noexcept;
  // When the next of them is due, if any is.
  std::optional<WallTime> next_due() const noexcept;

  // --- executors
  // An executor is a queue of that name with a Worker behind it. It works from its adding on, started or not.
  Coro<Result<void>> add_executor(std::string name, ExecutorOptions options = {});
  // For jobs that name `function` or, when that is empty, name none. As long as a schedule names a function
  // that its executor has not, it is marked, and nothing of it is lost but what its misfire policy lets go. The
  // executor "default", whose queue a schedule's jobs go to if nothing else is said, is made if it is not there.
  Result<void> add_function(std::string executor, std::string function, JobFunction run);
  Coro<Result<void>> remove_executor(std::string name, bool wait = true);
  std::vector<std::string> executors() const;
  // The run that a job was put for, or nullopt when it was no schedule's or its run is not in the history any more.
  Coro<Result<std::optional<ScheduledRun>>> run_of(JobId job);

  // --- events
  using ListenerId = std::uint64_t;
  ListenerId add_listener(std::uint32_t mask, ScheduleListener listener);
  void remove_listener(ListenerId id);
  // How often a listener has thrown. Such an exception is logged and goes no further.
  std::uint64_t listener_errors() const;

 private:
  std::shared_ptr<SchedulerImpl> impl_;
};

}  // namespace argiope
