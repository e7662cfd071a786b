// The scheduler's inside. Split over several files: scheduler.cpp (opening, its loop, events), firing.cpp (what is due),
// editing.cpp (schedules come and change), executors.cpp, explaining.cpp.
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
#include "engine/due_index.hpp"
#include "jobs/internal/plan.hpp"
#include "jobs/internal/schedule_codec.hpp"

namespace argiope {

class SchedulerImpl final : public Scheduler {
 public:
  SchedulerImpl(Store& store, Broker& broker, SchedulerOptions options);
  ~SchedulerImpl() override;
  Coro<Result<void>> read_all();

  void start(bool paused) override;
  void pause() override;
  void resume() override;
  Coro<Result<void>> shutdown(bool wait) override;
  SchedulerState state() const noexcept override { return state_; }
  std::optional<Error> failure() const override { return failure_; }

  Coro<Result<AddReply>> add(Schedule schedule, ConflictPolicy conflict) override;
  Coro<Result<std::vector<AddReply>>> add_all(std::vector<Schedule> schedules, ConflictPolicy conflict) override;
  Coro<Result<ScheduleStatus>> get(std::string name) override { return book_.get(std::move(name)); }
  Coro<Result<std::vector<ScheduleStatus>>> list(ScheduleId after, std::size_t limit) override {
    return book_.list(after, limit);
  }
  Coro<Result<ScheduleStatus>> modify(std::string name, std::function<void(Schedule&)> change) override;
  Coro<Result<ScheduleStatus>> reschedule(std::string name, Trigger trigger) override;
  Coro<Result<ScheduleStatus>> pause(std::string name, std::string by) override;
  Coro<Result<ScheduleStatus>> resume(std::string name, ResumeFrom from) override;
  Coro<Result<void>> remove(std::string name) override;
  Coro<Result<void>> remove_all() override;
  Coro<Result<JobId>> run_now(std::string name) override;
  Coro<Result<std::vector<ScheduleRun>>> history(std::string name, std::size_t limit) override {
    return book_.history(std::move(name), limit);
  }
  Coro<Result<ScheduleExplanation>> explain(std::string name) override;
  std::size_t size() const noexcept override { return index_.size(); }
  std::optional<WallTime> next_due() const noexcept override {
    return index_.empty() ? std::nullopt : std::optional(index_.top_due());
  }

  Coro<Result<void>> add_executor(std::string name, ExecutorOptions options) override;
  Result<void> add_function(std::string executor, std::string function, JobFunction run) override;
  Coro<Result<void>> remove_executor(std::string name, bool wait) override;
  std::vector<std::string> executors() const override;
  Coro<Result<std::optional<ScheduledRun>>> run_of(JobId job) override;

  ListenerId add_listener(std::uint32_t mask, ScheduleListener listener) override;
  void remove_listener(ListenerId id) override { listeners_.remove(id); }
  std::uint64_t listener_errors() const override { return listeners_.errors(); }

 private:
  static constexpr std::size_t kMostInFlight = 2;

  struct Executor {
    std::unique_ptr<Worker> worker;
    Task<Result<void>> task;
    std::map<std::string, std::shared_ptr<const JobFunction>, std::less<>> functions;
  };
  // Why a schedule is not fired although it is due.
  struct Mark {
    ScheduleReason reason{};
    std::string text;
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
  void tick();
  WallTime now() const { return broker_.calendar_now(); }
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
  std::optional<Mark> trouble_with(const JobTemplate& job) const;
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
  void mark(ScheduleId id, std::string_view name, Mark mark);
  void unmark(ScheduleId id, std::string_view name = {});
  void look_at_marked(ScheduleReason reason);
  Coro<Result<ScheduleStatus>> edited(Coro<Result<ScheduleStatus>> edit);

  // --- executors
  Coro<void> dispatch(std::string executor, JobContext& context);
  Coro<bool> begins_too_late(const JobContext& context);
  void note_grace(ScheduleId id, bool has_one);
  Coro<Result<void>> stop_executor(Executor& executor, bool wait);

  // --- telling
  bool listened(ScheduleEventKind kind) const noexcept { return listeners_.listens(static_cast<std::uint32_t>(kind)); }
  bool tells_runs() const noexcept {
    using enum ScheduleEventKind;
    return listened(job_submitted) || listened(job_missed) || listened(job_max_instances);
  }
  void tell(const ScheduleEvent& event);
  void tell(ScheduleEventKind kind, std::string_view text = {});
  void tell_of(ScheduleEventKind kind, ScheduleId id, std::string_view name, std::string_view text = {});
  void note_job(const JobEvent& event);
  Coro<void> tell_ended();

  Store& store_;
  Broker& broker_;
  const SchedulerOptions options_;
  EventLoop& loop_;
  ScheduleBook book_;
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
  Broker::ListenerId job_listener_ = 0;
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
