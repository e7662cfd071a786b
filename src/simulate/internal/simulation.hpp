// A configuration run on the real engine, workers and memory store over virtual time. Only what jobs do is
// simulated: they take their time, and fail or not.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "argiope/base/error.hpp"
#include "config/internal/configuration.hpp"
#include "serve/api/internal/what_if.hpp"
#include "simulate/internal/report.hpp"

namespace argiope {

struct SimulationOptions {
  WallTime from{};
  Duration span = std::chrono::days{30};
  TimeZone zone;
  // Jobs that have not ended. Where more would pile up the simulation ends early: that is what it has found.
  std::uint64_t most_jobs = 2'000'000;
  // Told now and then how far it is.
  std::function<void(WallTime now, std::uint64_t runs)> progress;
  // Jobs of queues that no schedule puts, by queue.
  std::map<std::string, ExpectedJobs> expected;
  // Asked now and then, also when time does not get on. A reason ends the simulation early.
  std::function<std::optional<std::string>()> give_up;
};

// The same configuration and options give the same report.
Result<SimulationReport> simulate(const Configuration& configuration, const SimulationOptions& options);

// The answer to a WhatIf, as json_report() writes it. It ends early when it has taken `limit` of the clock's time.
// Errors: of the simulation.
Result<std::string> answer(const WhatIf& question, const Clock& clock, Duration limit);

// The times of the schedules' cron and calendar triggers that changes of the clocks leave out or repeat.
std::vector<DaylightSurprise> find_daylight_surprises(const std::vector<Schedule>& schedules, WallTime from,
                                                      WallTime until);

}  // namespace argiope
