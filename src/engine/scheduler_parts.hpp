// The parts of a scheduler: what it knows of schedules, those who listen to it, and the executors of the jobs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/engine/engine.hpp"
#include "async/internal/background.hpp"
#include "async/internal/ticker.hpp"
#include "base/internal/listeners.hpp"
#include "engine/broker.hpp"
#include "engine/due_index.hpp"
#include "engine/internal/steady_worker.hpp"
#include "engine/store_use.hpp"
#include "jobs/internal/schedule_codec.hpp"

namespace argiope {

// Why a schedule is not fired although it is due.
struct ScheduleMark {
  ScheduleReason reason{};
  std::string text;
};

// What is in memory of schedules: when each is to be looked at, whether it is on its way into the store, and why it is
// not fired.
//
// Threads: the loop's own.
class KnownSchedules {
 public:
  std::size_t size() const noexcept { return index_.size(); }
  bool contains(ScheduleId id) const noexcept { return index_.contains(id); }
  // When the first is to be looked at. nullopt: none waits for a time.
  std::optional<WallTime> next_due() const noexcept {
    return index_.empty() ? std::nullopt : std::optional(index_.top_due());
  }

  // It has got there by another way than firing.
  void put(ScheduleId id, const SchedulePlace& place, WallTime now);
  void look_at(ScheduleId id, WallTime when) { index_.set(id, when); }
  // `when`, unless it has been removed meanwhile, or edited: what was loaded before does not count then.
  void look_again(ScheduleId id, WallTime when);
  void forget(ScheduleId id) {
    index_.erase(id);
    marks_.erase(id);
  }
  // But for those on their way.
  void forget_all() {
    index_ = {};
    marks_.clear();
  }

  // --- on their way into the store
  // Those that are due. They are on their way from now on.
  std::vector<ScheduleId> take_due(std::size_t most, WallTime now);
  bool is_in_flight(ScheduleId id) const { return in_flight_.contains(id); }
  // It has arrived. True: it was edited after it was taken.
  bool land(ScheduleId id);

  // --- marks
  // The mark that it has from now on. Null: it has that one already.
  const ScheduleMark* mark(ScheduleId id, ScheduleMark mark);
  // True: it was marked.
  bool unmark(ScheduleId id) { return marks_.erase(id) > 0; }
  // Null: it is not marked.
  const ScheduleMark* mark_of(ScheduleId id) const {
    const auto marked = marks_.find(id);
    return marked == marks_.end() ? nullptr : &marked->second;
  }
  void look_again_at_marked(ScheduleReason reason, WallTime when);

  // --- misfire_grace
  void note_grace(ScheduleId id, bool has_one);
  // Known to have none: its runs need no look when they begin.
  bool is_graceless(ScheduleId id) const { return id < graceless_.size() && graceless_[id]; }

 private:
  DueIndex index_;
  std::unordered_map<ScheduleId, ScheduleMark> marks_;
  // Those on their way into the store, and whether they have been edited since they were loaded.
  std::unordered_map<ScheduleId, bool> in_flight_;
  std::vector<bool> graceless_;  // by id
};

// What a scheduler and its parts have in common.
struct SchedulerCore {
  SchedulerCore(Store& its_store, std::shared_ptr<Broker> its_broker, SchedulerOptions its_options,
                std::function<void()> tick);
  SchedulerCore(const SchedulerCore&) = delete;

  WallTime now() const { return broker->house.calendar_now(); }
  void run_in_background(Coro<void> work) { background.run(scheduler.lock(), std::move(work)); }

  StoreUse store;
  const std::shared_ptr<Broker> broker;
  const SchedulerOptions options;
  EventLoop& loop;
  ScheduleReader reader;
  KnownSchedules known;
  bool shut_down = false;
  std::optional<Error> failure;
  Event batch_done;
  Ticker ticker;
  Background background;
  std::weak_ptr<const void> scheduler;  // what the work of its parts keeps
};

// Those who listen to a scheduler, and the ends of runs, of which they are told with the names that only the store has.
//
// Lifetime: of its scheduler.
// Threads:  the loop's own.
class ScheduleEvents {
 public:
  explicit ScheduleEvents(SchedulerCore& core) : core_(core) {}
  ScheduleEvents(const ScheduleEvents&) = delete;

  using ListenerId = std::uint64_t;
  ListenerId add(std::uint32_t mask, ScheduleListener listener);
  void remove(ListenerId id) { listeners_.remove(id); }
  void clear() { listeners_.clear(); }
  std::uint64_t errors() const { return listeners_.errors(); }
  // Of ends of runs.
  void stop_hearing();

  bool listened(ScheduleEventKind kind) const noexcept { return listeners_.listens(static_cast<std::uint32_t>(kind)); }
  bool tells_runs() const noexcept {
    using enum ScheduleEventKind;
    return listened(job_submitted) || listened(job_missed) || listened(job_max_instances);
  }
  void tell(const ScheduleEvent& event) { listeners_.tell(static_cast<std::uint32_t>(event.kind), event); }
  void tell(ScheduleEventKind kind, std::string_view text = {});
  // `queue`: of its jobs, by which tenants are told or not.
  void tell_of(ScheduleEventKind kind, ScheduleId id, std::string_view name, std::string_view queue,
               std::string_view text = {});
  // The job's run is cancelled because it has begun too late.
  void note_too_late(JobId id);

 private:
  struct Ended {
    ScheduleEventKind kind{};
    WallTime at{};
    ScheduleId schedule = 0;
    std::uint64_t run = 0;
    JobId job = 0;
    std::string queue;
    std::string text;
  };
  void note_job(const JobEvent& event);
  Coro<void> tell_ended();

  SchedulerCore& core_;
  Listeners<ScheduleEvent> listeners_;
  std::uint64_t job_listener_ = 0;
  std::unordered_set<JobId> too_late_;
  std::deque<Ended> ended_;
  bool telling_ = false;
};

// The executors of a scheduler: queues of its broker with a worker behind each, and the functions that run their jobs.
//
// Lifetime: of its scheduler.
// Threads:  the loop's own.
class ExecutorDesk {
 public:
  ExecutorDesk(SchedulerCore& core, ScheduleEvents& events) : core_(core), events_(events) {}
  ExecutorDesk(const ExecutorDesk&) = delete;

  // As Scheduler has it.
  Coro<Result<void>> add(std::string name, ExecutorOptions options);
  Result<void> add_function(std::string executor, std::string function, JobFunction run);
  Coro<Result<void>> remove(std::string name, bool wait) {
    return keep_alive(core_.scheduler.lock(), end(std::move(name), wait));
  }
  std::vector<std::string> names() const;
  // Why no executor runs such a job. nullopt: one does, or a worker elsewhere may.
  std::optional<ScheduleMark> trouble_with(const JobTemplate& job) const;

  // They begin nothing more; `at_once`: and what they run is cancelled.
  void stop(bool at_once);
  // The same, and waits for their ends; what goes wrong is the scheduler's failure.
  Coro<void> stop_all(bool wait);

 private:
  struct Executor {
    std::shared_ptr<SteadyWorker> worker;
    Task<Result<void>> task;
    std::map<std::string, std::shared_ptr<const JobFunction>, std::less<>> functions;
  };
  Result<void> make(std::string name, const ExecutorOptions& options);
  Coro<Result<void>> end(std::string name, bool wait);
  void look_at_marked(ScheduleReason reason);
  Coro<void> dispatch(std::string executor, JobContext& context);
  Coro<bool> begins_too_late(const JobContext& context);

  SchedulerCore& core_;
  ScheduleEvents& events_;
  std::map<std::string, Executor, std::less<>> executors_;
};

}  // namespace argiope
