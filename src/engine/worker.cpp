#include "argiope/engine/worker.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "async/internal/ticker.hpp"
#include "engine/engine_state.hpp"
#include "engine/internal/job_source.hpp"
#include "engine/store_use.hpp"

namespace argiope {
namespace {

// Before a store is asked again that another process holds.
constexpr Duration kWhileBusy = std::chrono::seconds{1};
// Of one that works until_empty, between two looks whether anything is left.
constexpr Duration kLookInterval = std::chrono::milliseconds{500};

std::string what_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

}  // namespace

// All of a worker. Its coroutines keep it, so that it may outlive its Worker until they have ended.
struct Worker::State : std::enable_shared_from_this<Worker::State> {
  struct Run {
    std::unique_ptr<JobContext> context;
    Task<void> task;
    Duration lease_time{};
    TimePoint renew_at{};
    bool lost = false;  // its lease, or its job was cancelled
    bool give_back = false;
    bool settling = false;  // the store has it: nothing stops it now, and its lease needs no renewal
  };

  State(std::shared_ptr<JobSource> its_source, WorkerOptions its_options)
      : source(std::move(its_source)), options(std::move(its_options)) {}

  Coro<Result<void>> run();
  Coro<Result<void>> work();
  Coro<Result<std::vector<LeasedJob>>> lease(const LeaseCall& call, Duration wait);
  Coro<Result<std::vector<LeasedJob>>> lease_until_idle(const LeaseCall& call, Duration wait);
  Coro<Result<bool>> look_for_more(const LeaseCall& call);
  template <class T>
  bool is_held_up(const Result<T>& answer);
  void has_ended(std::uint64_t token);
  void begin(LeasedJob&& job);
  static Coro<void> run_job(std::shared_ptr<State> self, std::uint64_t token);
  Coro<Verdict> attempt(JobContext& context);
  Verdict judge(const JobRecord& job, const std::exception_ptr& exception) const;
  Coro<void> settle(Run& run, Verdict verdict);
  void set_next_beat(Run& run);
  void beat();
  Coro<void> drain();
  void stop(bool at_once);
  void give_all_back();
  void ask_to_stop(std::uint64_t token);
  static void interrupt(Run& run);

  const std::shared_ptr<JobSource> source;  // answers, though its engine may have gone
  const WorkerOptions options;
  std::unordered_map<std::string, JobFunction> functions;
  JobFunction default_function;
  std::unordered_map<std::uint64_t, Run> runs;
  Counts counts;
  Event changed;  // a run has ended, or stop() was called
  EventLoop* loop = nullptr;
  std::unique_ptr<Ticker> heart;
  Task<Result<void>> working;
  bool is_running = false;
  bool stopping = false;
  bool told_busy = false;
  Timeout* waiting = nullptr;  // a request for leases that is to end when the last run does
  Backlog backlog;             // as of the last look
  std::optional<Error> unfit;  // WorkerUnfit was thrown
};

Worker::Worker(const Engine& engine, WorkerOptions options) : Worker(engine.state_->broker, std::move(options)) {}
Worker::Worker(std::shared_ptr<JobSource> source, WorkerOptions options)
    : state_(std::make_shared<State>(std::move(source), std::move(options))) {}

Worker::~Worker() {
  if (state_->is_running && EventLoop::is_alive(state_->loop)) state_->stop(true);
}

void JobContext::progress(double fraction, std::string message) {
  source_.set_progress(token(), fraction, std::move(message));
}

void JobContext::output(std::string so_far) { source_.set_output(token(), std::move(so_far)); }

void Worker::add(std::string function, JobFunction run) { state_->functions[std::move(function)] = std::move(run); }
void Worker::add_default(JobFunction run) { state_->default_function = std::move(run); }
Coro<Result<void>> Worker::run() { return keep_alive(state_, state_->run()); }
void Worker::stop(bool at_once) { state_->stop(at_once); }
const Worker::Counts& Worker::counts() const noexcept { return state_->counts; }
Worker::DueLater Worker::due_later() const noexcept {
  return {.jobs = state_->backlog.due_later, .first = state_->backlog.next_due};
}

// --- stopping ------------------------------------------------------------------------------------------------------

void Worker::State::interrupt(Run& run) {
  if (!run.settling && run.task) run.task.cancel();
}

void Worker::State::give_all_back() {
  for (auto& [token, run] : runs) {
    run.give_back = true;
    interrupt(run);
  }
}

void Worker::State::stop(bool at_once) {
  stopping = true;
  if (at_once) give_all_back();
  changed.set();
  if (working && !working.done()) working.cancel();
}

void Worker::State::ask_to_stop(std::uint64_t token) {
  const auto run = runs.find(token);
  if (run == runs.end()) return;
  run->second.lost = true;
  interrupt(run->second);
}

Coro<void> Worker::State::drain() {
  const TimePoint limit = saturating_add(loop->time(), options.drain_limit);
  bool cancelled = false;
  while (!runs.empty()) {
    bool give_back = false;
    try {
      changed.clear();
      co_await Timeout(cancelled ? kNever : limit).run([](Event& event) -> Coro<void> {
        co_await event.wait();
      }(changed));
    } catch (const TimeoutError&) {
      give_back = true;
    } catch (const CancelledError&) {
      give_back = true;  // asked to end at once; that they are given back is waited for
    }
    if (!give_back) continue;
    give_all_back();
    cancelled = true;
  }
}

// --- heartbeats ----------------------------------------------------------------------------------------------------

// A lease is renewed three times in its length.
void Worker::State::set_next_beat(Run& run) {
  run.renew_at = saturating_add(loop->time(), std::max<Duration>(run.lease_time / 3, std::chrono::milliseconds{1}));
  heart->at(run.renew_at);
}

void Worker::State::beat() {
  const auto self = shared_from_this();
  const TimePoint now = loop->time();
  TimePoint next = kNever;
  std::vector<std::uint64_t> lost;
  for (auto& [token, run] : runs) {
    if (run.settling) continue;
    if (run.renew_at <= now) {
      const auto renewed = source->renew(token);
      if (!renewed) lost.push_back(token);
      run.lease_time = renewed.value_or(run.lease_time);
      set_next_beat(run);
    }
    next = std::min(next, run.renew_at);
  }
  heart->at(next);
  for (const std::uint64_t token : lost) ask_to_stop(token);
}

// --- working -------------------------------------------------------------------------------------------------------

Coro<Result<void>> Worker::State::run() {
  if (std::exchange(is_running, true)) throw std::logic_error("worker " + options.name + " runs already");
  loop = &EventLoop::current();
  heart = std::make_unique<Ticker>(*loop, [this] { beat(); });
  working = loop->create_task(keep_alive(shared_from_this(), work()), "worker");
  Result<void> result;
  bool cancelled = false;
  std::exception_ptr failed;
  try {
    result = co_await working;
  } catch (const CancelledError&) {
    cancelled = !stopping;
  } catch (...) {
    failed = std::current_exception();
  }
  stopping = true;
  co_await drain();
  heart.reset();
  working = {};
  stopping = is_running = false;
  if (cancelled) throw CancelledError();
  if (failed) std::rethrow_exception(failed);
  if (const auto why = std::exchange(unfit, std::nullopt); result && why) co_return std::unexpected(*why);
  co_return result;
}

Coro<Result<void>> Worker::State::work() {
  LeaseCall call{.queues = options.queues, .worker = options.name};
  if (call.queues.empty()) {
    for (const auto& [name, function] : functions) call.queues.push_back(name);
  }
  call.on_cancel = [weak = weak_from_this()](std::uint64_t token) {
    if (const auto self = weak.lock()) self->ask_to_stop(token);
  };
  Duration wait{};
  while (!stopping) {
    while (runs.size() >= options.concurrency && !stopping) {
      changed.clear();
      co_await changed.wait();
    }
    if (stopping) break;
    call.most = options.concurrency - runs.size();
    const bool was_idle = runs.empty();
    auto leased = co_await lease(call, std::exchange(wait, Duration{}));
    if (!leased && leased.error().code == Errc::cancelled) break;  // the engine closes
    if (!leased) co_return std::unexpected(std::move(leased.error()));
    for (LeasedJob& job : *leased) begin(std::move(job));
    if (!leased->empty()) continue;
    if (!options.until_empty) break;  // the engine closes
    // Idle before it asked, so that nothing has followed since.
    if (was_idle && !co_await or_return(look_for_more(call))) break;
    if (was_idle || !runs.empty()) wait = kLookInterval;
  }
  co_return Result<void>{};
}

// Whether another process holds the store, which is waited for.
template <class T>
bool Worker::State::is_held_up(const Result<T>& answer) {
  const bool busy = !answer && answer.error().code == Errc::busy;
  if (busy && !told_busy) spdlog::warn("worker {} waits: {}", options.name, answer.error().message);
  return told_busy = busy;
}

Coro<Result<std::vector<LeasedJob>>> Worker::State::lease(const LeaseCall& call, Duration wait) {
  for (;;) {
    auto leased = options.until_empty ? co_await lease_until_idle(call, wait) : co_await source->lease(call);
    if (!is_held_up(leased)) co_return leased;
    co_await sleep(kWhileBusy);
  }
}

// Waits no longer than its last run.
Coro<Result<std::vector<LeasedJob>>> Worker::State::lease_until_idle(const LeaseCall& call, Duration wait) {
  Timeout until_idle(kNever);
  waiting = &until_idle;
  struct Over {
    Timeout*& waiting;
    ~Over() { waiting = nullptr; }
  } const over{waiting};
  try {
    co_return co_await until_idle.run(source->lease_within(call, wait));
  } catch (const TimeoutError&) {
    co_return std::vector<LeasedJob>{};
  }
}

// Whether one that works until_empty and was given nothing asks again.
Coro<Result<bool>> Worker::State::look_for_more(const LeaseCall& call) {
  for (;;) {
    auto left = co_await source->backlog({.queues = call.queues, .linger = options.linger});
    if (!left && left.error().code == Errc::cancelled) co_return false;  // the engine closes
    if (!is_held_up(left)) {
      backlog = co_await or_return(std::move(left));
      co_return backlog.is_left;
    }
    co_await sleep(kWhileBusy);
  }
}

void Worker::State::has_ended(std::uint64_t token) {
  runs.erase(token);
  counts.running = runs.size();
  changed.set();
  if (runs.empty() && waiting != nullptr && !waiting->expired()) waiting->reschedule(loop->time());
}

// Begun at once: a task that is cancelled before its first step would end without settling its job.
void Worker::State::begin(LeasedJob&& job) {
  const std::uint64_t token = job.token;
  Run& begun = runs[token];
  begun.lease_time = job.lease_time;
  set_next_beat(begun);
  begun.context = std::unique_ptr<JobContext>(new JobContext(*source, std::move(job)));
  counts.running = runs.size();
  Task<void> task = loop->create_task(run_job(shared_from_this(), token), "job", Start::eagerly);
  const auto run = runs.find(token);
  if (run == runs.end()) return;
  run->second.task = std::move(task);
  if (run->second.lost || run->second.give_back) interrupt(run->second);  // asked for in its first step
}

Coro<void> Worker::State::run_job(std::shared_ptr<State> self, std::uint64_t token) {
  struct End {
    State& state;
    std::uint64_t token;
    ~End() { state.has_ended(token); }
  } const end{*self, token};
  Run& run = self->runs.at(token);
  Verdict verdict;
  bool cancelled = false;
  try {
    verdict = co_await self->attempt(*run.context);
  } catch (const CancelledError&) {
    cancelled = true;
  }
  if (cancelled) {
    // Not asked for by the engine nor by a drain: the function has cancelled itself.
    verdict.outcome = run.lost ? Outcome::cancel : run.give_back ? Outcome::release : Outcome::retry;
    verdict.error = run.lost ? "cancelled" : run.give_back ? "" : "the function was cancelled";
  }
  co_await self->settle(run, std::move(verdict));
}

Coro<void> Worker::State::settle(Run& run, Verdict verdict) {
  run.settling = true;
  Outcome outcome = verdict.outcome;
  bool settled = false;
  try {
    if (auto answer = co_await source->settle(run.context->token(), std::move(verdict)); answer) {
      settled = *answer;
    } else if (answer.error().code != Errc::cancelled) {  // else the engine has gone
      spdlog::error("job {}: {}", run.context->job().id, answer.error().message);
      settled = !source->failure();  // as failed: a follow-up was refused
      if (outcome == Outcome::done) outcome = Outcome::retry;
    }
  } catch (const CancelledError&) {
    settled = true;  // what was asked still takes effect
  }
  if (!settled || outcome == Outcome::release || outcome == Outcome::cancel) {
    ++counts.cancelled;
  } else {
    ++(outcome == Outcome::done ? counts.done : counts.failed);
  }
}

Verdict Worker::State::judge(const JobRecord& job, const std::exception_ptr& exception) const {
  if (!options.verdict) return {.outcome = Outcome::retry, .error = what_of(exception)};
  try {
    return options.verdict(job, exception);
  } catch (...) {
    return {.outcome = Outcome::retry,
            .error = fmt::format("{} (and the rule that judges errors has thrown: {})", what_of(exception),
                                 what_of(std::current_exception()))};
  }
}

Coro<Verdict> Worker::State::attempt(JobContext& context) {
  const JobRecord& job = context.job();
  const auto named = functions.find(job.function.empty() ? job.queue : job.function);
  const JobFunction* function = named != functions.end() ? &named->second
                                : default_function       ? &default_function
                                                         : nullptr;
  if (function == nullptr) {
    co_return Verdict{.outcome = Outcome::retry,
                      .error = fmt::format("worker {} has no function \"{}\"", options.name,
                                           job.function.empty() ? job.queue : job.function)};
  }
  Verdict verdict;
  try {
    co_await (*function)(context);
    verdict.result = std::move(context.result_);
    verdict.error = std::move(context.remark_);
    verdict.is_finding = context.is_finding_;
    verdict.follow_ups = std::move(context.follow_ups_);
  } catch (const CancelledError&) {
    throw;
  } catch (const RetryJob& retry) {
    verdict = {.outcome = Outcome::retry, .error = retry.what(), .delay = retry.delay};
  } catch (const BuryJob& bury) {
    verdict = {.outcome = Outcome::bury, .error = bury.what()};
  } catch (const SnoozeJob& snooze) {
    verdict = {.outcome = Outcome::release, .delay = snooze.delay};
  } catch (const WorkerUnfit& why) {
    verdict = {.outcome = Outcome::release};
    if (!unfit) unfit = Error{Errc::io, why.what()};
    stop(false);
  } catch (...) {
    verdict = judge(job, std::current_exception());
  }
  // The result that it has set before it failed.
  if (verdict.result.empty()) verdict.result = std::move(context.result_);
  co_return verdict;
}

// --- executors -----------------------------------------------------------------------------------------------------

JobFunction on_threads(ThreadPoolExecutor& executor, std::function<std::string(const JobRecord&)> function) {
  return [&executor, function = std::move(function)](JobContext& context) -> Coro<void> {
    // A copy: the run may be over, for a cancellation, before the thread is.
    std::string result = co_await run_in_executor(executor, [function, job = context.job()] { return function(job); });
    context.set_result(std::move(result));
  };
}

}  // namespace argiope
