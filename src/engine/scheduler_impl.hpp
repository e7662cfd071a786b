// SchedulerImpl: an engine's schedules, as far as it fires them. Split over several files: scheduler.cpp (opening, its loop, events),
// schedule_firing.cpp (what is due), schedule_editing.cpp (schedules come and change), executors.cpp.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/engine/scheduler.hpp"
#include "async/internal/background.hpp"
#include "async/internal/ticker.hpp"
#include "base/internal/listeners.hpp"
#include "engine/broker.hpp"
#include "engine/due_index.hpp"
#include "engine/internal/steady_worker.hpp"
#include "engine/store_use.hpp"
#include "jobs/internal/plan.hpp"
#include "jobs/internal/schedule_codec.hpp"

namespace argiope {

// How many are read or asked for at a time.
inline constexpr std::size_t kSchedulesAPage = 10'000;

// Freed when the last coroutine that works in it has ended, whoever has let go of it before.
class SchedulerImpl final : public std::enable_shared_from_this<SchedulerImpl> {
 public:
  // `store` lives until let_go() at least.
  static Coro<Result<std::shared_ptr<SchedulerImpl>>> open(Store& store, std::shared_ptr<Broker> broker,
                                                           SchedulerOptions options);
  SchedulerImpl(Store& store, std::shared_ptr<Broker> broker, SchedulerOptions options);
  // Its engine has gone: from here on nothing of the user's is touched, and runs of executors are cancelled.
  void let_go() noexcept;

  // --- what Scheduler offers
  void start(bool paused);
  void pause();
  void resume();
  Coro<Result<void>> shutdown(bool wait) { return kept(shut_down(wait)); }
  SchedulerState state() const noexcept { return state_; }
  std::optional<Error> failure() const { return failure_; }
  std::size_t size() const noexcept { return index_.size(); }
  std::optional<WallTime> next_due() const noexcept {
    return index_.empty() ? std::nullopt : std::optional(index_.top_due());
  }
  Coro<Result<void>> add_executor(std::string name, ExecutorOptions options);
  Result<void> add_function(std::string executor, std::string function, JobFunction run);
  Coro<Result<void>> remove_executor(std::string name, bool wait) { return kept(end_executor(std::move(name), wait)); }
  std::vector<std::string> executors() const;
  Coro<Result<std::optional<ScheduledRun>>> run_of(JobId job) { return kept(find_run(job)); }
  using ListenerId = std::uint64_t;
  ListenerId add_listener(std::uint32_t mask, ScheduleListener listener);
  void remove_listener(ListenerId id) { listeners_.remove(id); }
  std::uint64_t listener_errors() const { return listeners_.errors(); }

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
  // Why a schedule is not fired although it is due.
  struct Mark {
    ScheduleReason reason{};
    std::string text;
  };
  std::optional<Mark> trouble_with(const JobTemplate& job) const;
  // The first reason that holds of the scheduler itself, of the job, or of the last time it was due.
  std::optional<Mark> what_keeps(ScheduleId id, const JobTemplate& job) const;
  WallTime now() const { return broker_->house.calendar_now(); }
  // Work of its book, which `owner` is, goes on though nobody waits for it any more.
  template <class T>
  Coro<T> to_its_end(std::shared_ptr<const void> owner, Coro<T> work) {
    return background_.to_its_end(std::move(owner), std::move(work));
  }

 private:
  static constexpr std::size_t kMostInFlight = 2;

  struct Executor {
    std::shared_ptr<SteadyWorker> worker;
    Task<Result<void>> task;
    std::map<std::string, std::shared_ptr<const JobFunction>, std::less<>> functions;
  };
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
  struct Ended {
    ScheduleEventKind kind{};
    WallTime at{};
    ScheduleId schedule = 0;
    std::uint64_t run = 0;
    JobId job = 0;
    std::string queue;
    std::string text;
  };
  // --- the loop
  template <class T>
  Coro<T> kept(Coro<T> work) {
    return keep_alive(shared_from_this(), std::move(work));
  }
  void run_in_background(Coro<void> work) { background_.run(shared_from_this(), std::move(work)); }
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
  std::vector<ScheduleId> take_due();
  Coro<void> fire(std::vector<ScheduleId> ids);
  Coro<Result<void>> fire_loaded(std::vector<std::optional<StoredSchedule>> loaded, const std::vector<ScheduleId>& ids);
  Coro<Result<void>> write(std::vector<FireCall> calls, std::vector<Step> steps);
  std::optional<Due> due_of(std::optional<ScheduleView> view, ScheduleId id);
  Coro<Result<void>> look_closer(std::vector<Due>& all);
  void look_again(ScheduleId id, WallTime when);
  Coro<void> fired(Step& step, const FireReply& reply);
  void refused(const Step& step, const Error& error);

  // --- what is known of schedules
  // Beyond the calendar, or never due yet: the plan says whether it is lost (is_lost()).
  bool may_be_lost(const SchedulePlace& place) const { return place.last > now() || place.last == WallTime{}; }
  void reindex(ScheduleId id, const SchedulePlace& place);
  void forget(ScheduleId id);
  void mark(ScheduleId id, std::string_view name, std::string_view queue, Mark mark);
  void unmark(ScheduleId id, std::string_view name = {}, std::string_view queue = {});
  void look_at_marked(ScheduleReason reason);

  // --- executors
  Result<void> make_executor(std::string name, const ExecutorOptions& options);
  Coro<void> dispatch(std::string executor, JobContext& context);
  Coro<bool> begins_too_late(const JobContext& context);
  void note_grace(ScheduleId id, bool has_one);
  Coro<Result<void>> end_executor(std::string name, bool wait);
  Coro<Result<void>> stop_executor(Executor& executor, bool wait);
  Coro<Result<std::optional<ScheduledRun>>> find_run(JobId job);

  // --- telling
  bool listened(ScheduleEventKind kind) const noexcept { return listeners_.listens(static_cast<std::uint32_t>(kind)); }
  bool tells_runs() const noexcept {
    using enum ScheduleEventKind;
    return listened(job_submitted) || listened(job_missed) || listened(job_max_instances);
  }
  void tell(const ScheduleEvent& event);
  void tell(ScheduleEventKind kind, std::string_view text = {});
  // `queue`: of its jobs, by which tenants are told or not.
  void tell_of(ScheduleEventKind kind, ScheduleId id, std::string_view name, std::string_view queue, std::string_view text = {});
  void note_job(const JobEvent& event);
  Coro<void> tell_ended();

  StoreUse store_;
  const std::shared_ptr<Broker> broker_;
  const SchedulerOptions options_;
  EventLoop& loop_;
  ScheduleReader reader_;
  DueIndex index_;
  std::unordered_map<ScheduleId, Mark> marks_;
  // Those on their way into the store, and whether they have been edited since they were loaded.
  std::unordered_map<ScheduleId, bool> in_flight_;
  std::size_t batches_ = 0;
  std::map<std::string, Executor, std::less<>> executors_;
  // By id: those known to have no misfire_grace, whose runs need no look when they begin.
  std::vector<bool> graceless_;
  std::unordered_set<JobId> too_late_;  // runs that are cancelled because they began too late

  Listeners<ScheduleEvent> listeners_;
  std::uint64_t job_listener_ = 0;
  std::deque<Ended> ended_;
  bool telling_ = false;

  SchedulerState state_ = SchedulerState::stopped;
  bool shut_down_ = false;
  std::optional<Error> failure_;
  Event batch_done_;
  Ticker ticker_;  // calls tick()
  Background background_;
};

}  // namespace argiope
