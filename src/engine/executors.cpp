#include <fmt/format.h>

#include <algorithm>

#include "argiope/async/or_return.hpp"
#include "argiope/async/sleep.hpp"
#include "base/internal/printable.hpp"
#include "engine/scheduler_impl.hpp"

namespace argiope {

Coro<Result<void>> SchedulerImpl::add_executor(std::string name, ExecutorOptions options) {
  if (name.empty()) co_return fail(Errc::invalid_input, "an executor needs a name");
  if (executors_.contains(name)) {
    co_return fail(Errc::refused, fmt::format("executor {}: there is one of that name", in_quotes(name)));
  }
  co_return make_executor(std::move(name), options);
}

Result<void> SchedulerImpl::make_executor(std::string name, const ExecutorOptions& options) {
  if (shut_down_) return fail(Errc::refused, "the scheduler was shut down");
  Executor& executor = executors_[name];
  WorkerOptions worker{.name = "executor " + name,
                       .queues = {name},
                       .concurrency = options.concurrency,
                       .drain_limit = options.drain_limit};
  std::unique_ptr<Worker> its_worker(new Worker(broker_, std::move(worker)));
  executor.worker = std::make_shared<SteadyWorker>(std::move(its_worker), fmt::format("executor {}", in_quotes(name)));
  executor.worker->add_default([weak = weak_from_this(), name](JobContext& context) {
    const auto self = weak.lock();
    if (self == nullptr) throw CancelledError();  // its engine has gone
    return self->kept(self->dispatch(name, context));
  });
  executor.task = loop_.create_task(SteadyWorker::run(executor.worker), "executor");
  tell(ScheduleEventKind::executor_added, name);
  look_at_marked(ScheduleReason::unknown_executor);
  return {};
}

Result<void> SchedulerImpl::add_function(std::string name, std::string function, JobFunction run) {
  if (name == JobTemplate{}.queue && !executors_.contains(name)) {
    if (auto made = make_executor(name, {}); !made) return made;
  }
  const auto executor = executors_.find(name);
  if (executor == executors_.end()) {
    return fail(Errc::not_found, fmt::format("executor {}: there is no such executor", in_quotes(name)));
  }
  executor->second.functions[std::move(function)] = std::make_shared<const JobFunction>(std::move(run));
  look_at_marked(ScheduleReason::unknown_function);
  return {};
}

Coro<Result<void>> SchedulerImpl::end_executor(std::string name, bool wait) {
  const auto found = executors_.find(name);
  if (found == executors_.end()) {
    co_return fail(Errc::not_found, fmt::format("executor {}: there is no such executor", in_quotes(name)));
  }
  // Its functions stay until their runs have ended.
  found->second.worker->stop(!wait);
  auto stopped = co_await stop_executor(found->second, wait);
  executors_.erase(name);
  tell(ScheduleEventKind::executor_removed, name);
  co_return stopped;
}

Coro<Result<void>> SchedulerImpl::stop_executor(Executor& executor, bool wait) {
  executor.worker->stop(!wait);
  co_return co_await executor.task;
}

std::vector<std::string> SchedulerImpl::executors() const {
  std::vector<std::string> names;
  for (const auto& [name, executor] : executors_) names.push_back(name);
  return names;
}

void SchedulerImpl::note_grace(ScheduleId id, bool has_one) {
  constexpr ScheduleId kMostNoted = 1 << 26;
  if (id >= kMostNoted) return;
  if (id >= graceless_.size()) {
    if (has_one) return;
    graceless_.resize(std::max<std::size_t>(id + 1, 2 * graceless_.size()));
  }
  graceless_[id] = !has_one;
}

// Of a run that begins for the first time: later after it was due than its schedule's misfire_grace.
Coro<bool> SchedulerImpl::begins_too_late(const JobContext& context) {
  const JobRecord& job = context.job();
  if (job.schedule == 0 || context.attempt() > 1 || job.expiries > 0) co_return false;
  const ScheduleId id = job.schedule;
  if (id < graceless_.size() && graceless_[id]) co_return false;
  std::vector<ScheduleId> one{id};
  auto loaded = co_await store_(&Store::load_schedules, std::move(one));
  if (!loaded || !loaded->front()) co_return false;
  const auto parsed = reader_.read(*loaded->front());
  if (!parsed) co_return false;
  const auto grace = parsed->definition->policies.misfire_grace;
  note_grace(id, grace.has_value());
  if (!grace) co_return false;
  auto run = co_await store_(&Store::schedule_run, id, job.run);
  if (!run || !*run) co_return false;
  co_return now() - look_time(*parsed->trigger, {.next = (*run)->planned}) > *grace;
}

Coro<void> SchedulerImpl::dispatch(std::string name, JobContext& context) {
  if (co_await begins_too_late(context)) {
    const JobId id = context.job().id;
    if (job_listener_ != 0) too_late_.insert(id);
    constexpr const char* kWhy = "it began later than its misfire_grace";
    try {
      (void)co_await broker_->ends.change({.id = id, .kind = ChangeKind::cancel, .error = kWhy});
      co_await sleep(Duration::zero());  // where the cancellation arrives
    } catch (const CancelledError&) {
    }
    throw std::runtime_error(kWhy);  // a run that fails when it has been cancelled is cancelled
  }
  if (store_.is_gone()) throw CancelledError();  // its engine has gone, and what the function refers to may have as well
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

Coro<Result<std::optional<ScheduledRun>>> SchedulerImpl::find_run(JobId job) {
  const std::optional<ScheduledRun> none;
  const auto record = co_await or_return(store_(&Store::get, job));
  if (!record || record->schedule == 0) co_return none;
  const auto loaded = co_await or_return(store_(&Store::load_schedules, std::vector<ScheduleId>{record->schedule}));
  if (!loaded.front()) co_return none;
  const StoredSchedule& stored = *loaded.front();
  const auto run = co_await or_return(store_(&Store::schedule_run, stored.id, record->run));
  if (!run) co_return none;
  co_return ScheduledRun{stored.id, stored.name, run->number, run->planned, run->fired_at};
}

}  // namespace argiope
