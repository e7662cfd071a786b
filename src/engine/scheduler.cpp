#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "argiope/async/coro.hpp"
#include "argiope/engine/engine.hpp"
#include "base/internal/printable.hpp"
#include "engine/scheduler_impl.hpp"

namespace argiope {

// --- what an engine offers ------------------------------------------------------------------------------------------

Scheduler::Scheduler(std::shared_ptr<SchedulerImpl> impl) noexcept : impl_(std::move(impl)) {}
Scheduler::~Scheduler() { impl_->let_go(); }
void Scheduler::start(bool paused) { impl_->start(paused); }
void Scheduler::pause() { impl_->pause(); }
void Scheduler::resume() { impl_->resume(); }
Coro<Result<void>> Scheduler::shutdown(bool wait) { return impl_->shutdown(wait); }
SchedulerState Scheduler::state() const noexcept { return impl_->state(); }
std::optional<Error> Scheduler::failure() const { return impl_->failure(); }
std::size_t Scheduler::size() const noexcept { return impl_->size(); }
std::optional<WallTime> Scheduler::next_due() const noexcept { return impl_->next_due(); }
Coro<Result<void>> Scheduler::add_executor(std::string name, ExecutorOptions options) {
  return impl_->executors.add(std::move(name), std::move(options));
}
Result<void> Scheduler::add_function(std::string executor, std::string function, JobFunction run) {
  return impl_->executors.add_function(std::move(executor), std::move(function), std::move(run));
}
Coro<Result<void>> Scheduler::remove_executor(std::string name, bool wait) {
  return impl_->executors.remove(std::move(name), wait);
}
std::vector<std::string> Scheduler::executors() const { return impl_->executors.names(); }
Coro<Result<std::optional<ScheduledRun>>> Scheduler::run_of(JobId job) { return impl_->run_of(job); }
Scheduler::ListenerId Scheduler::add_listener(std::uint32_t mask, ScheduleListener listener) {
  return impl_->events.add(mask, std::move(listener));
}
void Scheduler::remove_listener(ListenerId id) { impl_->events.remove(id); }
std::uint64_t Scheduler::listener_errors() const { return impl_->events.errors(); }

// --- opening and ending ---------------------------------------------------------------------------------------------

Coro<Result<std::shared_ptr<SchedulerImpl>>> SchedulerImpl::open(Store& store, std::shared_ptr<Broker> broker,
                                                                 SchedulerOptions options) {
  auto scheduler = std::make_shared<SchedulerImpl>(store, std::move(broker), std::move(options));
  SchedulerImpl& made = *scheduler;
  made.core_.scheduler = scheduler;
  made.core_.broker->house.on_schedules_changed([&made](const std::vector<ScheduleId>& ids) { made.on_changed(ids); });
  made.core_.broker->house.on_calendar_jump([&made](Duration by) { made.on_jump(by); });
  auto read = co_await made.read_all();
  if (read) co_return scheduler;
  made.let_go();
  co_return std::unexpected(std::move(read.error()));
}

SchedulerImpl::SchedulerImpl(Store& store, std::shared_ptr<Broker> broker, SchedulerOptions options)
    : core_(store, std::move(broker), std::move(options),
            // A listener may destroy the engine in a tick.
            [this] {
              const auto self = shared_from_this();
              tick();
            }),
      executors(core_, events),
      events(core_) {}

void SchedulerImpl::stop_hearing() {
  core_.broker->house.on_schedules_changed({});
  core_.broker->house.on_calendar_jump({});
}

void SchedulerImpl::let_go() noexcept {
  if (core_.store.is_gone()) return;
  core_.store.let_go();
  events.clear();
  stop_hearing();
  events.stop_hearing();
  core_.shut_down = true;
  state_ = SchedulerState::stopped;
  if (!EventLoop::is_alive(&core_.loop)) return;
  core_.ticker.stop();
  executors.stop(true);
}

Coro<Result<void>> SchedulerImpl::read_all() {
  for (ScheduleId after = 0;;) {
    const auto page = co_await or_return(
        core_.store(&Store::schedules, ScheduleFilter{.after = after, .limit = kSchedulesAPage, .texts = false}));
    if (page.empty()) co_return Result<void>{};
    for (const StoredSchedule& stored : page) {
      reindex(stored.id, stored.place);
      // One that has never been due may have been added while the clock was wrong, which the plan finds out. A million
      // of them are not looked at for that, but for those that would be silent for long.
      constexpr std::size_t kMostLookedAt = 10'000;
      constexpr Duration kLong = std::chrono::days{2};
      const SchedulePlace& place = stored.place;
      if (place.paused || place.last != WallTime{} || place.next == WallTime::max()) continue;
      if (core_.known.size() <= kMostLookedAt || place.next - now() > kLong) core_.known.look_at(stored.id, now());
    }
    after = page.back().id;
  }
}

// --- the whole ------------------------------------------------------------------------------------------------------

void SchedulerImpl::start(bool paused) {
  if (core_.shut_down) throw std::logic_error("a scheduler that was shut down cannot be started again");
  if (state_ != SchedulerState::stopped) return;
  state_ = paused ? SchedulerState::paused : SchedulerState::running;
  events.tell(ScheduleEventKind::scheduler_started);
  if (paused) events.tell(ScheduleEventKind::scheduler_paused);
  core_.ticker.soon();
}

void SchedulerImpl::pause() {
  if (state_ != SchedulerState::running) return;
  state_ = SchedulerState::paused;
  events.tell(ScheduleEventKind::scheduler_paused);
}

void SchedulerImpl::resume() {
  if (state_ != SchedulerState::paused) return;
  state_ = SchedulerState::running;
  events.tell(ScheduleEventKind::scheduler_resumed);
  core_.ticker.soon();
}

Coro<Result<void>> SchedulerImpl::shut_down(bool wait) {
  if (!std::exchange(core_.shut_down, true)) {
    state_ = SchedulerState::stopped;
    core_.ticker.stop();
    stop_hearing();
    co_await executors.stop_all(wait);
    co_await core_.background.quiet();
    events.stop_hearing();
    events.tell(ScheduleEventKind::scheduler_shutdown);
  } else if (!wait) {
    executors.stop(true);
  }
  co_await core_.background.quiet();
  if (core_.failure) co_return std::unexpected(*core_.failure);
  co_return Result<void>{};
}

// --- the loop -------------------------------------------------------------------------------------------------------

// Fires what is due, as far as there is room for it on the way into the store, and sees to being called again.
void SchedulerImpl::tick() {
  if (state_ == SchedulerState::stopped || core_.failure) return;
  core_.broker->house.look_at_calendar();
  TimePoint wake = saturating_add(core_.loop.time(), core_.options.look_interval);
  if (state_ == SchedulerState::running) {
    while (batches_ < kMostInFlight) {
      std::vector<ScheduleId> due = core_.known.take_due(core_.options.batch, now());
      if (due.empty()) break;
      ++batches_;
      core_.run_in_background(fire(std::move(due)));
    }
    // With all batches under way the end of one of them is waited for.
    if (const auto due = core_.known.next_due(); due && batches_ < kMostInFlight) {
      wake = std::min(wake, saturating_add(core_.loop.time(), std::max(*due - now(), Duration{1})));
    }
  }
  core_.ticker.at(wake);
}

void SchedulerImpl::fail_all(const Error& error) {
  if (core_.failure || core_.store.is_gone()) return;  // the end of its engine is no failure
  core_.failure = error;
  spdlog::error("the scheduler stops: {}", error.message);
}

// --- the calendar and others ----------------------------------------------------------------------------------------

void SchedulerImpl::on_jump(Duration by) {
  events.tell({.kind = ScheduleEventKind::calendar_jumped, .at = now(), .jump = by});
  core_.ticker.forget_time();
  core_.ticker.soon();
  if (by < Duration::zero()) core_.run_in_background(find_lost());
}

// Schedules that a wrong clock has led into the future are looked at, however late they are due.
Coro<void> SchedulerImpl::find_lost() {
  for (ScheduleId after = 0;;) {
    auto page = co_await core_.store(&Store::schedules,
                                     ScheduleFilter{.after = after, .limit = kSchedulesAPage, .texts = false});
    if (!page) co_return fail_all(page.error());
    if (page->empty()) break;
    const WallTime present = now();
    for (const StoredSchedule& stored : *page) {
      if (may_be_lost(stored.place)) core_.known.look_again(stored.id, present);
    }
    after = page->back().id;
  }
  core_.ticker.soon();
}

void SchedulerImpl::on_changed(const std::vector<ScheduleId>& ids) { core_.run_in_background(read_again(ids)); }

Coro<void> SchedulerImpl::read_again(std::vector<ScheduleId> ids) {
  for (std::size_t from = 0; from < ids.size(); from += kSchedulesAPage) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(from);
    const std::size_t count = std::min(kSchedulesAPage, ids.size() - from);
    std::vector<ScheduleId> some(begin, begin + static_cast<std::ptrdiff_t>(count));
    auto loaded = co_await core_.store(&Store::load_schedules, some);
    if (!loaded) co_return fail_all(loaded.error());
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto& stored = (*loaded)[i];
      const bool known = core_.known.contains(some[i]);
      if (!stored) {
        core_.known.forget(some[i]);
        if (known) events.tell_of(ScheduleEventKind::schedule_removed, some[i], {}, {});
        continue;
      }
      reindex(stored->id, stored->place);
      const ScheduleEventKind kind = known ? ScheduleEventKind::schedule_modified : ScheduleEventKind::schedule_added;
      if (!events.listened(kind)) continue;
      const auto parsed = core_.reader.read(*stored);
      events.tell_of(kind, stored->id, stored->name,
                     parsed ? parsed->definition->policies.job.queue : std::string_view());
    }
  }
  core_.ticker.soon();
}

// --- schedules come, change and go ----------------------------------------------------------------------------------

SchedulerImpl::News SchedulerImpl::note_news(const std::vector<Schedule>& schedules) const {
  // Added schedules that are due: as written, since nobody has moved them on yet.
  const WallTime present = core_.loop.clock().wall_now();
  News news;
  news.places.reserve(schedules.size());
  const bool tells = events.listened(ScheduleEventKind::schedule_added);
  for (const Schedule& schedule : schedules) {
    const auto next = schedule.trigger.next_fire_time(std::nullopt, present);
    news.places.push_back({.next = next.value_or(WallTime::max()), .paused = schedule.paused});
    if (!tells) continue;
    news.names.push_back(schedule.name);
    news.queues.push_back(schedule.job.queue);
  }
  return news;
}

Coro<void> SchedulerImpl::take_news(News news, const std::vector<AddReply>& replies) {
  std::vector<ScheduleId> replaced;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const AddReply& reply = replies[i];
    if (reply.outcome == AddOutcome::replaced) replaced.push_back(reply.id);
    if (reply.outcome != AddOutcome::added) continue;
    reindex(reply.id, news.places[i]);
    if (!news.names.empty()) events.tell_of(ScheduleEventKind::schedule_added, reply.id, news.names[i], news.queues[i]);
  }
  if (!replaced.empty()) co_await read_again(std::move(replaced));
  core_.ticker.soon();
}

void SchedulerImpl::take_edit(const ScheduleStatus& status) {
  reindex(status.id, status.place);
  events.tell_of(ScheduleEventKind::schedule_modified, status.id, status.name,
                 status.schedule ? status.schedule->job.queue : std::string_view());
  core_.ticker.soon();
}

void SchedulerImpl::take_removal(ScheduleId id, std::string_view name, std::string_view queue) {
  core_.known.forget(id);
  events.tell_of(ScheduleEventKind::schedule_removed, id, name, queue);
}

Coro<Result<void>> SchedulerImpl::take_removal_of_all() {
  // One that was added meanwhile is in the store, and will be found there.
  core_.known.forget_all();
  co_await or_return(read_all());
  events.tell(ScheduleEventKind::all_schedules_removed);
  co_return Result<void>{};
}

Coro<void> SchedulerImpl::take_run(ScheduleId id, std::string name, std::string queue, Plan plan,
                                   const FireReply& reply) {
  Step step{id, std::move(name), std::move(queue), std::move(plan)};
  reindex(step.id, step.plan.place);
  co_await fired(step, reply);
}

void SchedulerImpl::reindex(ScheduleId id, const SchedulePlace& place) {
  unmark(id);
  core_.known.put(id, place, now());
}

void SchedulerImpl::mark(ScheduleId id, std::string_view name, std::string_view queue, ScheduleMark mark) {
  const ScheduleMark* const marked = core_.known.mark(id, std::move(mark));
  if (marked == nullptr) return;
  spdlog::warn("schedule {} is due and cannot be run: {}", in_quotes(name), marked->text);
  events.tell_of(ScheduleEventKind::schedule_marked, id, name, queue, marked->text);
}

void SchedulerImpl::unmark(ScheduleId id, std::string_view name, std::string_view queue) {
  if (core_.known.unmark(id)) events.tell_of(ScheduleEventKind::schedule_unmarked, id, name, queue);
}

Coro<Result<std::optional<ScheduledRun>>> SchedulerImpl::find_run(JobId job) {
  const std::optional<ScheduledRun> none;
  const auto record = co_await or_return(core_.store(&Store::get, job));
  if (!record || record->schedule == 0) co_return none;
  const auto loaded =
      co_await or_return(core_.store(&Store::load_schedules, std::vector<ScheduleId>{record->schedule}));
  if (!loaded.front()) co_return none;
  const StoredSchedule& stored = *loaded.front();
  const auto run = co_await or_return(core_.store(&Store::schedule_run, stored.id, record->run));
  if (!run) co_return none;
  co_return ScheduledRun{stored.id, stored.name, run->number, run->planned, run->fired_at};
}

std::string_view to_string(ScheduleEventKind kind) noexcept {
  using enum ScheduleEventKind;
  switch (kind) {
    case scheduler_started: return "scheduler_started";
    case scheduler_shutdown: return "scheduler_shutdown";
    case scheduler_paused: return "scheduler_paused";
    case scheduler_resumed: return "scheduler_resumed";
    case executor_added: return "executor_added";
    case executor_removed: return "executor_removed";
    case schedule_added: return "schedule_added";
    case schedule_removed: return "schedule_removed";
    case schedule_modified: return "schedule_modified";
    case all_schedules_removed: return "all_schedules_removed";
    case job_submitted: return "job_submitted";
    case job_executed: return "job_executed";
    case job_error: return "job_error";
    case job_cancelled: return "job_cancelled";
    case job_missed: return "job_missed";
    case job_max_instances: return "job_max_instances";
    case schedule_finished: return "schedule_finished";
    case schedule_marked: return "schedule_marked";
    case schedule_unmarked: return "schedule_unmarked";
    case calendar_jumped: return "calendar_jumped";
  }
  return "";
}

std::string_view to_string(SchedulerState state) noexcept {
  constexpr std::string_view kNames[] = {"stopped", "running", "paused"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace argiope
