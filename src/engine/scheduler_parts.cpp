#include "engine/scheduler_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "base/internal/printable.hpp"
#include "jobs/internal/plan.hpp"

namespace argiope {

SchedulerCore::SchedulerCore(Store& its_store, std::shared_ptr<Broker> its_broker, SchedulerOptions its_options,
                             std::function<void()> tick)
    : store(its_store),
      broker(std::move(its_broker)),
      options(std::move(its_options)),
      loop(EventLoop::current()),
      ticker(loop, std::move(tick)),
      background(loop, "scheduler") {}

// --- what is known of schedules -------------------------------------------------------------------------------------

void KnownSchedules::put(ScheduleId id, const SchedulePlace& place, WallTime now) {
  const auto flying = in_flight_.find(id);
  const bool is_flying = flying != in_flight_.end();
  if (is_flying) flying->second = true;
  if (id < graceless_.size()) graceless_[id] = false;
  // One that got into the future is looked at now: the plan says what becomes of it.
  const bool is_ahead = place.last > now;
  index_.set(id, is_flying || place.paused ? WallTime::max() : is_ahead ? now : place.next);
}

void KnownSchedules::look_again(ScheduleId id, WallTime when) {
  if (!index_.contains(id)) return;
  const auto flying = in_flight_.find(id);
  if (flying != in_flight_.end() && flying->second) return;
  index_.set(id, when);
}

std::vector<ScheduleId> KnownSchedules::take_due(std::size_t most, WallTime now) {
  std::vector<ScheduleId> due;
  while (due.size() < most && !index_.empty() && index_.top_due() <= now) {
    const ScheduleId id = index_.top();
    index_.set(id, WallTime::max());
    // One that is under way is looked at again when it has arrived.
    if (const auto flying = in_flight_.find(id); flying != in_flight_.end()) {
      flying->second = true;
      continue;
    }
    due.push_back(id);
  }
  for (const ScheduleId id : due) in_flight_.emplace(id, false);
  return due;
}

bool KnownSchedules::land(ScheduleId id) {
  const auto flying = in_flight_.find(id);
  const bool was_edited = flying->second;
  in_flight_.erase(flying);
  return was_edited;
}

const ScheduleMark* KnownSchedules::mark(ScheduleId id, ScheduleMark mark) {
  ScheduleMark& marked = marks_[id];
  const bool is_news = marked.reason != mark.reason || marked.text != mark.text;
  marked = std::move(mark);
  return is_news ? &marked : nullptr;
}

void KnownSchedules::look_again_at_marked(ScheduleReason reason, WallTime when) {
  for (const auto& [id, marked] : marks_) {
    if (marked.reason == reason) look_again(id, when);
  }
}

void KnownSchedules::note_grace(ScheduleId id, bool has_one) {
  constexpr ScheduleId kMostNoted = 1 << 26;
  if (id >= kMostNoted) return;
  if (id >= graceless_.size()) {
    if (has_one) return;
    graceless_.resize(std::max<std::size_t>(id + 1, 2 * graceless_.size()));
  }
  graceless_[id] = !has_one;
}

// --- telling --------------------------------------------------------------------------------------------------------

ScheduleEvents::ListenerId ScheduleEvents::add(std::uint32_t mask, ScheduleListener listener) {
  constexpr auto kEnds = static_cast<std::uint32_t>(ScheduleEventKind::job_executed) |
                         static_cast<std::uint32_t>(ScheduleEventKind::job_error) |
                         static_cast<std::uint32_t>(ScheduleEventKind::job_missed) |
                         static_cast<std::uint32_t>(ScheduleEventKind::job_cancelled);
  if ((mask & kEnds) != 0 && job_listener_ == 0) {
    constexpr auto kEndOfJob =
        static_cast<std::uint32_t>(JobEventKind::done) | static_cast<std::uint32_t>(JobEventKind::buried) |
        static_cast<std::uint32_t>(JobEventKind::cancelled) | static_cast<std::uint32_t>(JobEventKind::erased);
    job_listener_ = core_.broker->listeners().add(kEndOfJob, [this](const JobEvent& event) { note_job(event); });
  }
  return listeners_.add(mask, std::move(listener));
}

void ScheduleEvents::tell(ScheduleEventKind kind, std::string_view text) {
  tell({.kind = kind, .at = core_.now(), .text = text});
}

void ScheduleEvents::tell_of(ScheduleEventKind kind, ScheduleId id, std::string_view name, std::string_view queue,
                             std::string_view text) {
  tell({.kind = kind, .at = core_.now(), .schedule = id, .name = name, .queue = queue, .text = text});
}

void ScheduleEvents::note_job(const JobEvent& event) {
  using enum ScheduleEventKind;
  if (event.schedule == 0) return;
  const ScheduleEventKind kind = event.kind == JobEventKind::done     ? job_executed
                                 : event.kind == JobEventKind::buried ? job_error
                                 : too_late_.erase(event.id) > 0      ? job_missed
                                                                      : job_cancelled;
  if (!listened(kind)) return;
  ended_.push_back(
      {kind, event.at, event.schedule, event.run, event.id, std::string(event.queue), std::string(event.text)});
  if (!std::exchange(telling_, true)) core_.run_in_background(tell_ended());
}

// Names and planned times are not in memory, and looked up for those who listen.
Coro<void> ScheduleEvents::tell_ended() {
  struct Over {
    bool& telling;
    ~Over() { telling = false; }
  } const over{telling_};
  while (!ended_.empty()) {
    const Ended ended = std::move(ended_.front());
    ended_.pop_front();
    // That it was submitted is told first.
    while (core_.known.is_in_flight(ended.schedule)) {
      core_.batch_done.clear();
      co_await core_.batch_done.wait();
    }
    std::vector<ScheduleId> id{ended.schedule};
    auto loaded = co_await core_.store(&Store::load_schedules, std::move(id));
    auto run = co_await core_.store(&Store::schedule_run, ended.schedule, ended.run);
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

void ScheduleEvents::stop_hearing() {
  if (job_listener_ != 0) core_.broker->listeners().remove(std::exchange(job_listener_, 0));
}

void ScheduleEvents::note_too_late(JobId id) {
  if (job_listener_ != 0) too_late_.insert(id);
}

// --- executors ------------------------------------------------------------------------------------------------------

Coro<Result<void>> ExecutorDesk::add(std::string name, ExecutorOptions options) {
  if (name.empty()) co_return fail(Errc::invalid_input, "an executor needs a name");
  if (executors_.contains(name)) {
    co_return fail(Errc::refused, fmt::format("executor {}: there is one of that name", in_quotes(name)));
  }
  co_return make(std::move(name), options);
}

Result<void> ExecutorDesk::make(std::string name, const ExecutorOptions& options) {
  if (core_.shut_down) return fail(Errc::refused, "the scheduler was shut down");
  Executor& executor = executors_[name];
  WorkerOptions worker{.name = "executor " + name,
                       .queues = {name},
                       .concurrency = options.concurrency,
                       .drain_limit = options.drain_limit};
  std::unique_ptr<Worker> its_worker(new Worker(core_.broker, std::move(worker)));
  executor.worker = std::make_shared<SteadyWorker>(std::move(its_worker), fmt::format("executor {}", in_quotes(name)));
  executor.worker->add_default([this, weak = core_.scheduler, name](JobContext& context) {
    auto scheduler = weak.lock();
    if (scheduler == nullptr) throw CancelledError();  // its engine has gone
    return keep_alive(std::move(scheduler), dispatch(name, context));
  });
  executor.task = core_.loop.create_task(SteadyWorker::run(executor.worker), "executor");
  events_.tell(ScheduleEventKind::executor_added, name);
  look_at_marked(ScheduleReason::unknown_executor);
  return {};
}

Result<void> ExecutorDesk::add_function(std::string name, std::string function, JobFunction run) {
  if (name == JobTemplate{}.queue && !executors_.contains(name)) {
    if (auto made = make(name, {}); !made) return made;
  }
  const auto executor = executors_.find(name);
  if (executor == executors_.end()) {
    return fail(Errc::not_found, fmt::format("executor {}: there is no such executor", in_quotes(name)));
  }
  executor->second.functions[std::move(function)] = std::make_shared<const JobFunction>(std::move(run));
  look_at_marked(ScheduleReason::unknown_function);
  return {};
}

Coro<Result<void>> ExecutorDesk::end(std::string name, bool wait) {
  const auto found = executors_.find(name);
  if (found == executors_.end()) {
    co_return fail(Errc::not_found, fmt::format("executor {}: there is no such executor", in_quotes(name)));
  }
  const std::shared_ptr<SteadyWorker> worker = found->second.worker;
  worker->stop(!wait);
  auto stopped = co_await found->second.task;
  // Its functions have stayed until their runs ended. Others that wait for the same end may have erased it.
  const auto ended = executors_.find(name);
  if (ended != executors_.end() && ended->second.worker == worker) {
    executors_.erase(ended);
    events_.tell(ScheduleEventKind::executor_removed, name);
  }
  co_return stopped;
}

std::vector<std::string> ExecutorDesk::names() const {
  std::vector<std::string> names;
  for (const auto& [name, executor] : executors_) names.push_back(name);
  return names;
}

std::optional<ScheduleMark> ExecutorDesk::trouble_with(const JobTemplate& job) const {
  const auto executor = executors_.find(job.queue);
  if (executor == executors_.end()) {
    if (core_.options.foreign_queues) return std::nullopt;
    return ScheduleMark{ScheduleReason::unknown_executor,
                        fmt::format("there is no executor {} here", in_quotes(job.queue))};
  }
  if (executor->second.functions.contains(job.function)) return std::nullopt;
  return ScheduleMark{
      ScheduleReason::unknown_function,
      job.function.empty()
          ? fmt::format("executor {} has nothing for jobs that name no function", in_quotes(job.queue))
          : fmt::format("executor {} has no function {}", in_quotes(job.queue), in_quotes(job.function))};
}

// Of a run that begins for the first time: later after it was due than its schedule's misfire_grace.
Coro<bool> ExecutorDesk::begins_too_late(const JobContext& context) {
  const JobRecord& job = context.job();
  if (job.schedule == 0 || context.attempt() > 1 || job.expiries > 0) co_return false;
  const ScheduleId id = job.schedule;
  if (core_.known.is_graceless(id)) co_return false;
  std::vector<ScheduleId> one{id};
  auto loaded = co_await core_.store(&Store::load_schedules, std::move(one));
  if (!loaded || !loaded->front()) co_return false;
  const auto parsed = core_.reader.read(*loaded->front());
  if (!parsed) co_return false;
  const auto grace = parsed->definition->policies.misfire_grace;
  core_.known.note_grace(id, grace.has_value());
  if (!grace) co_return false;
  auto run = co_await core_.store(&Store::schedule_run, id, job.run);
  if (!run || !*run) co_return false;
  co_return core_.now() - look_time(*parsed->trigger, {.next = (*run)->planned}) > *grace;
}

Coro<void> ExecutorDesk::dispatch(std::string name, JobContext& context) {
  if (co_await begins_too_late(context)) {
    const JobId id = context.job().id;
    events_.note_too_late(id);
    constexpr const char* kWhy = "it began later than its misfire_grace";
    try {
      (void)co_await core_.broker->ends.change({.id = id, .kind = ChangeKind::cancel, .error = kWhy});
      co_await sleep(Duration::zero());  // where the cancellation arrives
    } catch (const CancelledError&) {
    }
    throw std::runtime_error(kWhy);  // a run that fails when it has been cancelled is cancelled
  }
  if (core_.store.is_gone())
    throw CancelledError();  // its engine has gone, and what the function refers to may have as well
  const auto executor = executors_.find(name);
  const auto& functions = executor->second.functions;
  const auto found = functions.find(context.job().function);
  if (found == functions.end()) {
    throw std::runtime_error(
        fmt::format("executor {} has no function {}", in_quotes(name), in_quotes(context.job().function)));
  }
  // It may be replaced while it runs.
  const std::shared_ptr<const JobFunction> function = found->second;
  co_await (*function)(context);
}

void ExecutorDesk::stop(bool at_once) {
  for (auto& [name, executor] : executors_) executor.worker->stop(at_once);
}

Coro<void> ExecutorDesk::stop_all(bool wait) {
  stop(!wait);
  std::vector<Task<Result<void>>> tasks;  // executors may be removed meanwhile
  for (const auto& [name, executor] : executors_) tasks.push_back(executor.task);
  for (const auto& task : tasks) {
    if (const auto& stopped = co_await task; !stopped && !core_.failure) core_.failure = stopped.error();
  }
}

void ExecutorDesk::look_at_marked(ScheduleReason reason) {
  core_.known.look_again_at_marked(reason, core_.now());
  core_.ticker.soon();
}

}  // namespace argiope
