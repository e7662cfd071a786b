// The rules of all stores of schedules: how times and texts are kept, which requests are well formed. Pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/jobs/detail/requests.hpp"
#include "jobs/internal/stored_time.hpp"

namespace argiope::schedule_rules {

using stored_time::from_ms;
using stored_time::stored;
using stored_time::to_ms;

SchedulePlace stored(const SchedulePlace& place) noexcept;
ScheduleRun stored(ScheduleRun run);
// At most kMostRunErrorBytes of it, and no half character.
std::string_view cut_error(std::string_view error) noexcept;

// The check of a request that needs no look at the store.
Result<void> check(const std::vector<PutSchedule>& schedules);
// The outcome of a put where the schedule of its name has this version; nullopt: there is none.
PutScheduleOutcome outcome_of(const PutSchedule& wanted, std::optional<std::uint64_t> old_version) noexcept;
// Writes into the entry what its put has come to; whether it has a job now that is still to end.
bool take_put(ScheduleRun& run, const PutReply& put);
constexpr RunOutcome run_outcome(JobState ended) noexcept {
  return ended == JobState::done     ? RunOutcome::done
         : ended == JobState::buried ? RunOutcome::failed
                                     : RunOutcome::cancelled;
}

}  // namespace argiope::schedule_rules
