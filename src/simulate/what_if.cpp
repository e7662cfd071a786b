// The daemon's what-if questions, as simulations.
#include <fmt/format.h>

#include "argiope/base/clock.hpp"
#include "simulate/internal/simulation.hpp"

namespace argiope {

namespace {

// The first that fits counts: each names its queue alone.
SimulatedJobs behaviour_of_queue(const WhatIfQueue& queue) {
  SimulatedJobs jobs;
  jobs.queue = queue.name;
  jobs.failures = queue.failures;
  if (!queue.mean_duration) return jobs;
  jobs.duration.kind = SimulatedDuration::Kind::exponential;
  jobs.duration.low = *queue.mean_duration;
  return jobs;
}

Configuration configuration_of(const WhatIf& question) {
  Configuration configuration;
  configuration.schedules = question.schedules;
  configuration.simulation.seed = question.seed;
  for (const WhatIfQueue& queue : question.queues) {
    configuration.queues.push_back({.name = queue.name, .config = queue.config, .workers = queue.workers});
    if (queue.mean_duration || queue.failures > 0) {
      configuration.simulation.jobs.push_back(behaviour_of_queue(queue));
    }
  }
  return configuration;
}

}  // namespace

Result<std::string> answer(const WhatIf& question, const Clock& clock, Duration limit) {
  SimulationOptions options{.from = question.from, .span = question.span, .zone = question.zone};
  options.most_jobs = question.most_jobs;
  for (const WhatIfQueue& queue : question.queues) {
    const ExpectedJobs& jobs = queue.jobs;
    if (jobs.waiting.empty() && jobs.more_waiting == 0 && jobs.arrivals_per_second <= 0) continue;
    options.expected.emplace(queue.name, jobs);
  }
  const TimePoint deadline = saturating_add(clock.now(), limit);
  options.give_up = [&]() -> std::optional<std::string> {
    if (question.abandoned && question.abandoned()) return "nobody waits for it any more";
    if (clock.now() >= deadline) return fmt::format("it has taken more than {}", format_duration(limit));
    return std::nullopt;
  };
  auto report = simulate(configuration_of(question), options);
  if (!report) return std::unexpected(std::move(report.error()));
  return json_report(*report);
}

}  // namespace argiope
