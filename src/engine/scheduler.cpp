#include "argiope/engine/scheduler.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "argiope/async/or_return.hpp"
#include "engine/scheduler_impl.hpp"

namespace argiope {

// --- what an engine offers ---------------------------------------------------------------------------------------------

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
  return impl_->add_executor(std::move(name), std::move(options));
}
Result<void> Scheduler::add_function(std::string executor, std::string function, JobFunction run) {
  return impl_->add_function(std::move(executor), std::move(function), std::move(run));
}
Coro<Result<void>> Scheduler::remove_executor(std::string name, bool wait) {
  return impl_->remove_executor(std::move(name), wait);
}
std::vector<std::string> Scheduler::executors() const { return impl_->executors(); }
Coro<Result<std::optional<ScheduledRun>>> Scheduler::run_of(JobId job) { return impl_->run_of(job); }
Scheduler::ListenerId Scheduler::add_listener(std::uint32_t mask, ScheduleListener listener) {
  return impl_->add_listener(mask, std::move(listener));
}
void Scheduler::remove_listener(ListenerId id) { impl_->remove_listener(id); }
std::uint64_t Scheduler::listener_errors() const { return impl_->listener_errors(); }

// --- opening and ending ------------------------------------------------------------------------------------------------

Coro<Result<std::shared_ptr<SchedulerImpl>>> SchedulerImpl::open(Store& store, std::shared_ptr<Broker> broker,
                                                                 SchedulerOptions options) {
  auto scheduler = std::make_shared<SchedulerImpl>(store, std::move(broker), std::move(options));
  SchedulerImpl& made = *scheduler;
  made.broker_->house.on_schedules_changed([&made](const std::vector<ScheduleId>& ids) { made.on_changed(ids); });
  made.broker_->house.on_calendar_jump([&made](Duration by) { made.on_jump(by); });
  auto read = co_await made.read_all();
  if (read) co_return scheduler;
  made.let_go();
  co_return std::unexpected(std::move(read.error()));
}

SchedulerImpl::SchedulerImpl(Store& store, std::shared_ptr<Broker> broker, SchedulerOptions options)
    : store_(store),
      broker_(std::move(broker)),
      options_(std::move(options)),
      loop_(EventLoop::current()),
      // A listener may destroy the engine in a tick.
      ticker_(loop_,
              [this] {
                const auto self = shared_from_this();
                tick();
              }),
      background_(loop_, "scheduler") {}

void SchedulerImpl::stop_hearing() {
  broker_->house.on_schedules_changed({});
  broker_->house.on_calendar_jump({});
  if (job_listener_ != 0) broker_->listeners().remove(std::exchange(job_listener_, 0));
}

void SchedulerImpl::let_go() noexcept {
  if (store_.is_gone()) return;
  store_.let_go();
  listeners_.clear();
  stop_hearing();
  shut_down_ = true;
  state_ = SchedulerState::stopped;
  if (!EventLoop::is_alive(&loop_)) return;
  ticker_.stop();
  for (auto& [name, executor] : executors_) executor.worker->stop(true);
}

Coro<Result<void>> SchedulerImpl::read_all() {
  for (ScheduleId after = 0;;) {
    const auto page =
        co_await or_return(store_(&Store::schedules, ScheduleFilter{.after = after, .limit = kSchedulesAPage, .texts = false}));
    if (page.empty()) co_return Result<void>{};
    for (const StoredSchedule& stored : page) {
      reindex(stored.id, stored.place);
      // One that has never been due may have been added while the clock was wrong, which the plan finds out. A million of
      // them are not looked at for that, but for those that would be silent for long.
      constexpr std::size_t kMostLookedAt = 10'000;
      constexpr Duration kLong = std::chrono::days{2};
      const SchedulePlace& place = stored.place;
      if (place.paused || place.last != WallTime{} || place.next == WallTime::max()) continue;
      if (index_.size() <= kMostLookedAt || place.next - now() > kLong) index_.set(stored.id, now());
    }
    after = page.back().id;
  }
}

// --- the whole -------------------------------------------------------------------------------------------------------

void SchedulerImpl::start(bool paused) {
  if (shut_down_) throw std::logic_error("a scheduler that was shut down cannot be started again");
  if (state_ != SchedulerState::stopped) return;
  state_ = paused ? SchedulerState::paused : SchedulerState::running;
  tell(ScheduleEventKind::scheduler_started);
  if (paused) tell(ScheduleEventKind::scheduler_paused);
  ticker_.soon();
}

void SchedulerImpl::pause() {
  if (state_ != SchedulerState::running) return;
  state_ = SchedulerState::paused;
  tell(ScheduleEventKind::scheduler_paused);
}

void SchedulerImpl::resume() {
  if (state_ != SchedulerState::paused) return;
  state_ = SchedulerState::running;
  tell(ScheduleEventKind::scheduler_resumed);
  ticker_.soon();
}

Coro<Result<void>> SchedulerImpl::shut_down(bool wait) {
  if (!std::exchange(shut_down_, true)) {
    state_ = SchedulerState::stopped;
    ticker_.stop();
    broker_->house.on_schedules_changed({});
    broker_->house.on_calendar_jump({});
    for (auto& [name, executor] : executors_) executor.worker->stop(!wait);
    for (auto& [name, executor] : executors_) {
      if (auto stopped = co_await stop_executor(executor, wait); !stopped && !failure_) failure_ = stopped.error();
    }
    co_await background_.quiet();
    stop_hearing();
    tell(ScheduleEventKind::scheduler_shutdown);
  } else if (!wait) {
    for (auto& [name, executor] : executors_) executor.worker->stop(true);
  }
  co_await background_.quiet();
  if (failure_) co_return std::unexpected(*failure_);
  co_return Result<void>{};
}

// --- the loop --------------------------------------------------------------------------------------------------------

// Fires what is due, as far as there is room for it on the way into the store, and sees to being called again.
void SchedulerImpl::tick() {
  if (state_ == SchedulerState::stopped || failure_) return;
  broker_->house.look_at_calendar();
  TimePoint wake = saturating_add(loop_.time(), options_.look_interval);
  if (state_ == SchedulerState::running) {
    while (batches_ < kMostInFlight) {
      std::vector<ScheduleId> due = take_due();
      if (due.empty()) break;
      ++batches_;
      run_in_background(fire(std::move(due)));
    }
    // With all batches under way the end of one of them is waited for.
    if (batches_ < kMostInFlight && !index_.empty()) {
      wake = std::min(wake, saturating_add(loop_.time(), std::max(index_.top_due() - now(), Duration{1})));
    }
  }
  ticker_.at(wake);
}

void SchedulerImpl::fail_all(const Error& error) {
  if (failure_ || store_.is_gone()) return;  // the end of its engine is no failure
  failure_ = error;
  spdlog::error("the scheduler stops: {}", error.message);
}

// --- the calendar and others -----------------------------------------------------------------------------------------

void SchedulerImpl::on_jump(Duration by) {
  tell({.kind = ScheduleEventKind::calendar_jumped, .at = now(), .jump = by});
  ticker_.forget_time();
  ticker_.soon();
  if (by < Duration::zero()) run_in_background(find_lost());
}

// Schedules that a wrong clock has led into the future are looked at, however late they are due.
Coro<void> SchedulerImpl::find_lost() {
  for (ScheduleId after = 0;;) {
    auto page = co_await store_(&Store::schedules, ScheduleFilter{.after = after, .limit = kSchedulesAPage, .texts = false});
    if (!page) co_return fail_all(page.error());
    if (page->empty()) break;
    const WallTime present = now();
    for (const StoredSchedule& stored : *page) {
      if (may_be_lost(stored.place)) look_again(stored.id, present);
    }
    after = page->back().id;
  }
  ticker_.soon();
}

void SchedulerImpl::on_changed(const std::vector<ScheduleId>& ids) { run_in_background(read_again(ids)); }

Coro<void> SchedulerImpl::read_again(std::vector<ScheduleId> ids) {
  for (std::size_t from = 0; from < ids.size(); from += kSchedulesAPage) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(from);
    const std::size_t count = std::min(kSchedulesAPage, ids.size() - from);
    std::vector<ScheduleId> some(begin, begin + static_cast<std::ptrdiff_t>(count));
    auto loaded = co_await store_(&Store::load_schedules, some);
    if (!loaded) co_return fail_all(loaded.error());
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto& stored = (*loaded)[i];
      const bool known = index_.contains(some[i]);
      if (!stored) {
        forget(some[i]);
        if (known) tell_of(ScheduleEventKind::schedule_removed, some[i], {}, {});
        continue;
      }
      reindex(stored->id, stored->place);
      const ScheduleEventKind kind = known ? ScheduleEventKind::schedule_modified : ScheduleEventKind::schedule_added;
      if (!listened(kind)) continue;
      const auto parsed = reader_.read(*stored);
      tell_of(kind, stored->id, stored->name, parsed ? parsed->definition->policies.job.queue : std::string_view());
    }
  }
  ticker_.soon();
}

// --- telling ---------------------------------------------------------------------------------------------------------

SchedulerImpl::ListenerId SchedulerImpl::add_listener(std::uint32_t mask, ScheduleListener listener) {
  constexpr auto kEnds = static_cast<std::uint32_t>(ScheduleEventKind::job_executed) |
                         static_cast<std::uint32_t>(ScheduleEventKind::job_error) |
                         static_cast<std::uint32_t>(ScheduleEventKind::job_missed) |
                         static_cast<std::uint32_t>(ScheduleEventKind::job_cancelled);
  if ((mask & kEnds) != 0 && job_listener_ == 0) {
    constexpr auto kEndOfJob =
        static_cast<std::uint32_t>(JobEventKind::done) | static_cast<std::uint32_t>(JobEventKind::buried) |
        static_cast<std::uint32_t>(JobEventKind::cancelled) | static_cast<std::uint32_t>(JobEventKind::erased);
    job_listener_ = broker_->listeners().add(kEndOfJob, [this](const JobEvent& event) { note_job(event); });
  }
  return listeners_.add(mask, std::move(listener));
}

void SchedulerImpl::tell(const ScheduleEvent& event) { listeners_.tell(static_cast<std::uint32_t>(event.kind), event); }

void SchedulerImpl::tell(ScheduleEventKind kind, std::string_view text) {
  tell({.kind = kind, .at = now(), .text = text});
}

void SchedulerImpl::tell_of(ScheduleEventKind kind, ScheduleId id, std::string_view name, std::string_view queue,
                            std::string_view text) {
  tell({.kind = kind, .at = now(), .schedule = id, .name = name, .queue = queue, .text = text});
}

void SchedulerImpl::note_job(const JobEvent& event) {
  using enum ScheduleEventKind;
  if (event.schedule == 0) return;
  const ScheduleEventKind kind = event.kind == JobEventKind::done     ? job_executed
                                 : event.kind == JobEventKind::buried ? job_error
                                 : too_late_.erase(event.id) > 0      ? job_missed
                                                                      : job_cancelled;
  if (!listened(kind)) return;
  ended_.push_back(
      {kind, event.at, event.schedule, event.run, event.id, std::string(event.queue), std::string(event.text)});
  if (!std::exchange(telling_, true)) run_in_background(tell_ended());
}

// Names and planned times are not in memory, and looked up for those who listen.
Coro<void> SchedulerImpl::tell_ended() {
  struct Over {
    bool& telling;
    ~Over() { telling = false; }
  } const over{telling_};
  while (!ended_.empty()) {
    const Ended ended = std::move(ended_.front());
    ended_.pop_front();
    // That it was submitted is told first.
    while (in_flight_.contains(ended.schedule)) {
      batch_done_.clear();
      co_await batch_done_.wait();
    }
    std::vector<ScheduleId> id{ended.schedule};
    auto loaded = co_await store_(&Store::load_schedules, std::move(id));
    auto run = co_await store_(&Store::schedule_run, ended.schedule, ended.run);
    if (!loaded || !run) co_return;
    ScheduleEvent event{.kind = ended.kind, .at = ended.at, .schedule = ended.schedule};
    if (loaded->front()) event.name = loaded->front()->name;
    event.queue = ended.queue;
    event.job = ended.job;
    event.run = ended.run;
    if (*run) event.planned = event.last_planned = (*run)->planned;
    event.text = ended.text;
    tell(event);
  }
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
