// SchedulerImpl: an engine's schedules, as far as it fires them. scheduler.cpp has its life, its loop and what comes of
// edits; schedule_firing.cpp fires what is due. Its parts (scheduler_parts.hpp) have who listens, the executors, and
// what is known of schedules.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/scheduler_parts.hpp"
#include "jobs/internal/plan.hpp"

namespace argiope {

// How many are read or asked for at a time.
inline constexpr std::size_t kSchedulesAPage = 10'000;

// Freed when the last coroutine that works in it has ended, even if its owner let go of it before.
class SchedulerImpl final : public std::enable_shared_from_this<SchedulerImpl> {
 public:
  // `store` lives until let_go() at least.
  static Coro<Result<std::shared_ptr<SchedulerImpl>>> open(Store& store, std::shared_ptr<Broker> broker,
                                                           SchedulerOptions options);
  SchedulerImpl(Store& store, std::shared_ptr<Broker> broker, SchedulerOptions options);
  // Its engine has gone: from here on nothing of the user's is touched, and runs of executors are cancelled.
  void let_go() noexcept;

  // --- what Scheduler offers, beside its executors and events
  void start(bool paused);
  void pause();
  void resume();
  Coro<Result<void>> shutdown(bool wait) { return kept(shut_down(wait)); }
  SchedulerState state() const noexcept { return state_; }
  std::optional<Error> failure() const { return core_.failure; }
  std::size_t size() const noexcept { return core_.known.size(); }
  std::optional<WallTime> next_due() const noexcept { return core_.known.next_due(); }
  Coro<Result<std::optional<ScheduledRun>>> run_of(JobId job) { return kept(find_run(job)); }

  // --- what its book tells it and asks it
  // Schedules on their way into the store: what will be known of those that are new.
  struct News {
    std::vector<SchedulePlace> places;
    std::vector<std::string> names, queues;  // where there are listeners
  };
  News note_news(const std::vector<Schedule>& schedules) const;
  Coro<void> take_news(News news, const std::vector<AddReply>& replies);
  void take_edit(const ScheduleStatus& status);
  void take_removal(ScheduleId id, std::string_view name, std::string_view queue);
  Coro<Result<void>> take_removal_of_all();
  Coro<void> take_run(ScheduleId id, std::string name, std::string queue, Plan plan, const FireReply& reply);
  // The first reason that holds of the scheduler itself, of the job, or of the last time it was due.
  std::optional<ScheduleMark> what_keeps(ScheduleId id, const JobTemplate& job) const;
  WallTime now() const { return core_.now(); }
  // Work of its book, which `owner` is, goes on though nobody waits for it any more.
  template <class T>
  Coro<T> to_its_end(std::shared_ptr<const void> owner, Coro<T> work) {
    return core_.background.to_its_end(std::move(owner), std::move(work));
  }

 private:
  static constexpr std::size_t kMostInFlight = 2;

  // A schedule on its way into the store.
  struct Step {
    ScheduleId id = 0;
    std::string name;
    std::string queue;
    Plan plan;
  };
  // A schedule that is due, as of one view of the store.
  struct Due {
    ScheduleView view;
    ScheduleReader::Parsed parsed;
    std::uint32_t newest_left_out = 0;
  };

  // --- the loop
  template <class T>
  Coro<T> kept(Coro<T> work) {
    return keep_alive(shared_from_this(), std::move(work));
  }
  void stop_hearing();
  Coro<Result<void>> read_all();
  Coro<Result<void>> shut_down(bool wait);
  void tick();
  void on_jump(Duration by);
  Coro<void> find_lost();
  void on_changed(const std::vector<ScheduleId>& ids);
  Coro<void> read_again(std::vector<ScheduleId> ids);
  void fail_all(const Error& error);

  // --- firing
  Coro<void> fire(std::vector<ScheduleId> ids);
  Coro<Result<void>> fire_loaded(std::vector<std::optional<StoredSchedule>> loaded, const std::vector<ScheduleId>& ids);
  Coro<Result<void>> write(std::vector<FireCall> calls, std::vector<Step> steps);
  std::optional<Due> due_of(std::optional<ScheduleView> view, ScheduleId id);
  Coro<Result<void>> look_closer(std::vector<Due>& all);
  Coro<void> fired(Step& step, const FireReply& reply);
  void refused(const Step& step, const Error& error);

  // --- what is known of schedules, and told of that
  // Beyond the calendar, or never due yet: the plan says whether it is lost (is_lost()).
  bool may_be_lost(const SchedulePlace& place) const { return place.last > now() || place.last == WallTime{}; }
  void reindex(ScheduleId id, const SchedulePlace& place);
  void mark(ScheduleId id, std::string_view name, std::string_view queue, ScheduleMark mark);
  void unmark(ScheduleId id, std::string_view name = {}, std::string_view queue = {});
  Coro<Result<std::optional<ScheduledRun>>> find_run(JobId job);

  SchedulerCore core_;

 public:
  ExecutorDesk executors;
  ScheduleEvents events;

 private:
  SchedulerState state_ = SchedulerState::stopped;
  std::size_t batches_ = 0;
};

}  // namespace argiope
