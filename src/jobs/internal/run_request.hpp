// From a plan to what a store writes.
#pragma once

#include "argiope/jobs/job.hpp"
#include "jobs/internal/plan.hpp"

namespace argiope {

// The part that is the same for all runs of one plan.
struct RunRequest {
  const JobTemplate& job;
  std::string_view name;  // of the schedule
  const TimeZone& zone;
  WallTime now{};
};
// The job of a run.
inline NewJob job_of(const RunRequest& request, const PlannedRun& run) {
  const JobTemplate& made = request.job;
  NewJob job{.queue = made.queue,
             .key = made.key,
             .priority = made.priority,
             .function = made.function,
             .max_attempts = made.max_attempts,
             .waits_for = run.waits_for,
             .if_failed = DependencyPolicy::run};
  job.payload = fill_in(made, request.name, request.zone, run.entry, run.planned, request.now);
  return job;
}

}  // namespace argiope
