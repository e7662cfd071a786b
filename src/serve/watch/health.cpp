#include "serve/watch/health.hpp"

#include <fmt/format.h>

#include "argiope/base/clock.hpp"
#include "serve/base/scheduler_of.hpp"

namespace argiope {

namespace {

// Of an error that ended the engine: whatever its kind, the answer is that the service is not there.
Problem failed(const Error& error, std::string_view what) {
  Problem of_error = problem_of(error);
  if (status_of(of_error.type) != 503) of_error.type = ProblemType::io;
  of_error.detail = fmt::format("{}: {}", what, error.message);
  return of_error;
}

}  // namespace

std::optional<Problem> Health::why_not_alive() const {
  if (const auto failure = engine_.failure()) return failed(*failure, "the store has failed");
  const Scheduler* const scheduler = options_.fires_schedules ? scheduler_of(engine_) : nullptr;
  if (scheduler == nullptr) return std::nullopt;
  if (const auto failure = scheduler->failure()) return failed(*failure, "the scheduler has failed");
  return std::nullopt;
}

std::optional<Problem> Health::why_not_ready() const {
  if (draining_) return problem(ProblemType::draining, "the daemon is stopping");
  if (auto dead = why_not_alive()) return dead;
  if (options_.fires_schedules) {
    const Scheduler* const scheduler = scheduler_of(engine_);
    if (scheduler == nullptr || scheduler->state() == SchedulerState::stopped) {
      return problem(ProblemType::busy, "schedules are not fired yet");
    }
  }
  if (options_.projects_failure) {
    if (const auto failure = options_.projects_failure()) return failed(*failure, "the projects have failed");
  }
  const Duration waits = options_.waits_for_commit ? options_.waits_for_commit() : Duration::zero();
  if (waits > options_.commit_limit) {
    return problem(ProblemType::busy, fmt::format("a change has waited for its commit for {}", format_roughly(waits)));
  }
  if (watchdog_ != nullptr && watchdog_->is_stalled()) return problem(ProblemType::busy, "the loop stands still");
  return std::nullopt;
}

ServerResponse Health::answered(const std::optional<Problem>& problem) {
  auto response = problem ? answer(*problem) : ServerResponse::json(200, "{\"status\":\"ok\"}\n");
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

}  // namespace argiope
