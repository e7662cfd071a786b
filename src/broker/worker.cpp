#include "argiope/broker/worker.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "argiope/async/sleep.hpp"
#include "argiope/async/timeout.hpp"
#include "argiope/async/waiting.hpp"
#include "argiope/base/printable.hpp"

namespace argiope {

Worker::Worker(Broker& broker, WorkerOptions options) : broker_(broker), options_(std::move(options)) {}

void Worker::add(std::string function, JobFunction run) { functions_[std::move(function)] = std::move(run); }

void Worker::stop(bool at_once) {
  stopping_ = true;
  if (at_once) {
    for (auto& [token, run] : runs_) {
      run.give_back = true;
      run.task.cancel();
    }
  }
  changed_.set();
  if (working_ && !working_.done()) working_.cancel();
}

void Worker::ask_to_stop(std::uint64_t token) {
  const auto run = runs_.find(token);
  if (run == runs_.end()) return;
  run->second.lost = true;
  run->second.task.cancel();
}

Duration Worker::shortest_lease() const {
  // One that is not there yet is made by the first lease, and may have any lease time then.
  constexpr Duration kUnknown = std::chrono::seconds{3};
  Duration shortest = std::chrono::hours{1};
  const auto shorten = [&](const std::string& queue) {
    const auto config = broker_.config(queue);
    shortest = std::min(shortest, config ? config->lease_time : kUnknown);
  };
  for (const std::string& queue : options_.queues) shorten(queue);
  if (options_.queues.empty()) {
    for (const auto& [name, function] : functions_) shorten(name);
  }
  return shortest;
}

Coro<void> Worker::beat() {
  for (;;) {
    co_await sleep(std::max<Duration>(shortest_lease() / 3, std::chrono::milliseconds{1}));
    std::vector<std::uint64_t> lost;
    for (const auto& [token, run] : runs_) {
      if (!broker_.renew(token)) lost.push_back(token);
    }
    for (const std::uint64_t token : lost) ask_to_stop(token);
  }
}

Coro<Result<void>> Worker::run() {
  Task<void> heart = EventLoop::current().create_task(beat(), "heartbeats");
  working_ = EventLoop::current().create_task(work(), "worker");
  Result<void> result;
  bool cancelled = false;
  try {
    result = co_await working_;
  } catch (const CancelledError&) {
    cancelled = !stopping_;
  }
  stopping_ = true;
  co_await drain();
  heart.cancel();
  if (cancelled) throw CancelledError();
  co_return result;
}

Coro<Result<void>> Worker::work() {
  LeaseCall call{.queues = options_.queues, .worker = options_.name};
  if (call.queues.empty()) {
    for (const auto& [name, function] : functions_) call.queues.push_back(name);
  }
  call.on_cancel = [this](std::uint64_t token) { ask_to_stop(token); };
  while (!stopping_) {
    while (runs_.size() >= options_.concurrency && !stopping_) {
      changed_.clear();
      co_await changed_.wait();
    }
    if (stopping_) break;
    call.most = options_.concurrency - runs_.size();
    auto leased = options_.until_empty ? co_await broker_.lease_now(call) : co_await broker_.lease(call);
    if (!leased) co_return std::unexpected(std::move(leased.error()));
    for (LeasedJob& job : *leased) {
      const std::uint64_t token = job.token;
      Run& run = runs_[token];
      run.context = std::make_unique<JobContext>(broker_, std::move(job));
      run.task = EventLoop::current().create_task(run_job(token), "job");
    }
    counts_.running = runs_.size();
    if (!leased->empty()) continue;
    if (!options_.until_empty) break;  // the broker closes
    if (runs_.empty()) break;
    changed_.clear();
    co_await changed_.wait();
  }
  co_return Result<void>{};
}

Coro<void> Worker::drain() {
  const TimePoint limit = saturating_add(EventLoop::current().time(), options_.drain_limit);
  bool cancelled = false;
  const auto give_all_back = [&] {
    for (auto& [token, run] : runs_) {
      run.give_back = true;
      run.task.cancel();
    }
    cancelled = true;
  };
  while (!runs_.empty()) {
    try {
      changed_.clear();
      co_await Timeout(cancelled ? kNever : limit).run([](Event& changed) -> Coro<void> {
        co_await changed.wait();
      }(changed_));
    } catch (const TimeoutError&) {
      give_all_back();
    } catch (const CancelledError&) {
      give_all_back();  // asked to end at once; that they are given back is waited for
    }
  }
}

Coro<Verdict> Worker::attempt(JobContext& context) {
  const JobRecord& job = context.job();
  const auto named = functions_.find(job.function.empty() ? job.queue : job.function);
  const JobFunction* function = named != functions_.end() ? &named->second : default_ ? &default_ : nullptr;
  if (function == nullptr) {
    co_return Verdict{.outcome = Outcome::retry,
                      .error = fmt::format("worker {} has no function {}", options_.name,
                                           in_quotes(job.function.empty() ? job.queue : job.function))};
  }
  Verdict verdict;
  try {
    co_await (*function)(context);
    verdict.result = std::move(context.result_);
    verdict.follow_ups = std::move(context.follow_ups_);
  } catch (const CancelledError&) {
    throw;
  } catch (const RetryJob& retry) {
    verdict = {.outcome = Outcome::retry, .error = retry.what(), .delay = retry.delay};
  } catch (const BuryJob& bury) {
    verdict = {.outcome = Outcome::bury, .error = bury.what()};
  } catch (const SnoozeJob& snooze) {
    verdict = {.outcome = Outcome::release, .delay = snooze.delay};
  } catch (const std::exception& error) {
    verdict = options_.verdict ? options_.verdict(job, std::current_exception())
                               : Verdict{.outcome = Outcome::retry, .error = error.what()};
  } catch (...) {
    verdict = options_.verdict ? options_.verdict(job, std::current_exception())
                               : Verdict{.outcome = Outcome::retry, .error = "an exception of an unknown type"};
  }
  co_return verdict;
}

Coro<void> Worker::run_job(std::uint64_t token) {
  JobContext& context = *runs_.at(token).context;
  Verdict verdict;
  bool cancelled = false;
  try {
    verdict = co_await attempt(context);
  } catch (const CancelledError&) {
    cancelled = true;
  }
  if (cancelled) {
    const Run& run = runs_.at(token);
    // Not asked for by the broker nor by a drain: the function has cancelled itself.
    verdict.outcome = run.lost ? Outcome::cancel : run.give_back ? Outcome::release : Outcome::retry;
    verdict.error = run.lost ? "cancelled" : run.give_back ? "" : "the function was cancelled";
  }
  Outcome outcome = verdict.outcome;
  bool settled = false;
  try {
    if (auto answer = co_await broker_.settle(token, std::move(verdict)); answer) {
      settled = *answer;
    } else {
      spdlog::error("job {}: {}", context.job().id, answer.error().message);
      settled = !broker_.failure();  // as failed: a follow-up was refused
      if (outcome == Outcome::done) outcome = Outcome::retry;
    }
  } catch (const CancelledError&) {
    settled = true;  // what was asked takes effect all the same
  }
  if (!settled || outcome == Outcome::release || outcome == Outcome::cancel) {
    ++counts_.cancelled;
  } else {
    ++(outcome == Outcome::done ? counts_.done : counts_.failed);
  }
  runs_.erase(token);
  counts_.running = runs_.size();
  changed_.set();
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
