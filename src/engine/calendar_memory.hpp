// The store's record of the calendar for the owner and who is beside him: by how much job time differs from it, and the
// jumps that made it so.
#pragma once

#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/job.hpp"
#include "engine/internal/job_clock.hpp"
#include "engine/store_use.hpp"

namespace argiope {

struct CalendarMemory {
  Duration offset{};
  std::vector<JobClock::Jump> jumps;  // the oldest first
};

// All times of a record, from the store's to the calendar's.
void to_calendar(JobRecord& record, const JobClock& clock);

Coro<Result<CalendarMemory>> recall_calendar(const StoreUse& store);
// The clock's last jump, and where it has led.
Coro<Result<void>> remember_jump(StoreUse& store, Duration offset, JobClock::Jump jump);

}  // namespace argiope
