// What the store keeps of the calendar for the owner and its guests: by how much job time differs from it, and the jumps
// that made it so.
#pragma once

#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"
#include "engine/internal/job_clock.hpp"
#include "engine/store_use.hpp"

namespace argiope {

struct CalendarMemory {
  Duration offset{};
  std::vector<JobClock::Jump> jumps;  // the oldest first
};

Coro<Result<CalendarMemory>> recall_calendar(const StoreUse& store);
// The clock's last jump, and where it has led.
Coro<Result<void>> remember_jump(StoreUse& store, Duration offset, JobClock::Jump jump);

}  // namespace argiope
