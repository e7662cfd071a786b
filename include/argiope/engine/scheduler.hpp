// Scheduler: fires the schedules of a store when they are due, each planned time at most once, whatever happens to the
// process or the clock in between, and says of each schedule why it does not run now.
//
// A run is a job. Putting it, writing it into the schedule's history and moving the schedule on is one transaction of the
// store, so that a crash at any instant neither loses nor doubles a run. In memory are, of each schedule, its id and when it
// is due; all else is read when it fires.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"
#include "argiope/engine/broker.hpp"
#include "argiope/engine/schedule_book.hpp"
#include "argiope/engine/schedule_events.hpp"
#include "argiope/engine/worker.hpp"
#include "argiope/jobs/schedule.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

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

// Why a schedule does not run now. Of several reasons the one named is the first of this list that holds.
enum class ScheduleReason : std::uint8_t {
  unreadable,         // what the store holds of it is from another version, or damaged
  paused,             // see paused_by
  finished,           // no more planned times
  max_runs,           // it has had all its runs
  scheduler_stopped,  // it was not started, or was shut down
  scheduler_paused,
  unknown_executor,  // its queue has no executor here, and `foreign_queues` is off
  unknown_function,  // its executor has no such function
  queue_full,        // its queue has no room; tried again
  job_refused,       // its job is refused for another reason: a payload larger than its queue takes; tried again
  overlap,           // max_instances of its runs have not ended
  not_due,
  due,  // it is on its way
};
std::string_view to_string(ScheduleReason reason) noexcept;

struct ScheduleExplanation {
  ScheduleId id = 0;
  std::string name;
  ScheduleReason reason = ScheduleReason::not_due;
  std::string text;                // what cannot be read, the executor or function that is missing, the error
  std::optional<WallTime> next;    // planned
  std::optional<WallTime> due_at;  // when it is to run: with its jitter
  TimeZone zone;                   // to show times in
  std::string paused_by;           // empty: not said
  WallTime paused_at{};
  std::uint32_t active = 0;
  std::uint32_t max_instances = 1;
  Overlap overlap = Overlap::skip;  // what happens to a time that comes while max_instances are active
  std::uint64_t fired = 0;
  std::uint64_t missed = 0;
  std::optional<ScheduleRun> last_misfire;  // the last missed or skipped entry of its history
};
// One sentence for people: `runs next at 2026-03-29T03:00:00+02:00; paused by alice since …`.
std::string to_sentence(const ScheduleExplanation& explanation);
// One line; reasons as to_string() has them, with _ for spaces.
std::string to_json(const ScheduleExplanation& explanation);

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
// Threads:  the loop's own.
class Scheduler {
 public:
  // Reads ids and places of all schedules. Both outlive the scheduler; the broker owns the store, so no other process
  // fires.
  static Coro<Result<std::unique_ptr<Scheduler>>> open(Store& store, Broker& broker, SchedulerOptions options = {});
  virtual ~Scheduler() = default;

  // --- the whole
  // Begins to fire; `paused`: only runs what has been put already.
  virtual void start(bool paused = false) = 0;
  virtual void pause() = 0;
  virtual void resume() = 0;  // what has come due in between falls under the misfire policies
  // Fires nothing more, for good; `wait` for the runs of its executors to end, or cancel them, to be run again later. To be
  // called before the scheduler is destroyed, unless its loop is destroyed first. While one that waits is under way, one
  // that does not ends its waiting.
  virtual Coro<Result<void>> shutdown(bool wait = true) = 0;
  virtual SchedulerState state() const noexcept = 0;
  virtual std::optional<Error> failure() const = 0;

  // --- schedules; ScheduleBook says what each does
  virtual Coro<Result<AddReply>> add(Schedule schedule, ConflictPolicy conflict = ConflictPolicy::fail) = 0;
  virtual Coro<Result<std::vector<AddReply>>> add_all(std::vector<Schedule> schedules,
                                                      ConflictPolicy conflict = ConflictPolicy::fail) = 0;
  virtual Coro<Result<ScheduleStatus>> get(std::string name) = 0;
  virtual Coro<Result<std::vector<ScheduleStatus>>> list(ScheduleId after = 0, std::size_t limit = 1000) = 0;
  virtual Coro<Result<ScheduleStatus>> modify(std::string name, std::function<void(Schedule&)> change) = 0;
  virtual Coro<Result<ScheduleStatus>> reschedule(std::string name, Trigger trigger) = 0;
  virtual Coro<Result<ScheduleStatus>> pause(std::string name, std::string by = {}) = 0;
  virtual Coro<Result<ScheduleStatus>> resume(std::string name, ResumeFrom from = ResumeFrom::where_it_was) = 0;
  virtual Coro<Result<void>> remove(std::string name) = 0;
  virtual Coro<Result<void>> remove_all() = 0;
  // Puts a run at once, whatever its trigger, pause and max_instances say, and leaves its planned times as they are.
  virtual Coro<Result<JobId>> run_now(std::string name) = 0;
  virtual Coro<Result<std::vector<ScheduleRun>>> history(std::string name, std::size_t limit = 20) = 0;
  virtual Coro<Result<ScheduleExplanation>> explain(std::string name) = 0;
  virtual std::size_t size() const noexcept = 0;
  // When the next of them is due, if any is.
  virtual std::optional<WallTime> next_due() const noexcept = 0;

  // --- executors
  // An executor is a queue of that name with a Worker behind it. It works from its adding on, started or not.
  virtual Coro<Result<void>> add_executor(std::string name, ExecutorOptions options = {}) = 0;
  // What runs jobs that name `function` or, when that is empty, name none. As long as a schedule names a function
  // that its executor has not, it is marked, and nothing of it is lost but what its misfire policy lets go.
  virtual Result<void> add_function(std::string executor, std::string function, JobFunction run) = 0;
  virtual Coro<Result<void>> remove_executor(std::string name, bool wait = true) = 0;
  virtual std::vector<std::string> executors() const = 0;
  // What a job was put for, or nullopt when it was no schedule's or its run is not in the history any more.
  virtual Coro<Result<std::optional<ScheduledRun>>> run_of(JobId job) = 0;

  // --- events
  using ListenerId = std::uint64_t;
  virtual ListenerId add_listener(std::uint32_t mask, ScheduleListener listener) = 0;
  virtual void remove_listener(ListenerId id) = 0;
  // How often a listener has thrown. Such an exception is logged and goes no further.
  virtual std::uint64_t listener_errors() const = 0;
};

}  // namespace argiope
