#include "engine/calendar_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "argiope/async/coro.hpp"

namespace argiope {
namespace {

// How many there have been; the last kMostJumps are kept, each in the place of one that is forgotten.
constexpr const char* kJumps = "calendar_jumps";
std::string place_of(std::int64_t jump, const char* what) {
  return fmt::format("calendar_jump_{}_{}", jump % static_cast<std::int64_t>(JobClock::kMostJumps), what);
}

}  // namespace

void to_calendar(JobRecord& record, const JobClock& clock) {
  for (WallTime* time : {&record.due_at, &record.created_at, &record.ended_at, &record.lease_until}) {
    *time = clock.to_calendar(*time);
  }
}

Coro<Result<CalendarMemory>> recall_calendar(const StoreUse& store) {
  CalendarMemory memory;
  const auto offset = co_await or_return(store(&Store::recall, kCalendarOffset));
  memory.offset = Duration{offset.value_or(0)};
  const auto count = co_await or_return(store(&Store::recall, kJumps));
  const std::int64_t jumps = count.value_or(0);
  for (std::int64_t i = std::max<std::int64_t>(0, jumps - static_cast<std::int64_t>(JobClock::kMostJumps)); i < jumps;
       ++i) {
    const auto at = co_await or_return(store(&Store::recall, place_of(i, "at_ms")));
    const auto before = co_await or_return(store(&Store::recall, place_of(i, "offset_ns")));
    memory.jumps.push_back({WallTime{std::chrono::milliseconds{at.value_or(0)}}, Duration{before.value_or(0)}});
  }
  co_return memory;
}

Coro<Result<void>> remember_jump(StoreUse& store, Duration offset, JobClock::Jump jump) {
  const auto count = co_await or_return(store(&Store::recall, kJumps));
  const std::int64_t number = count.value_or(0);
  const auto at = std::chrono::floor<std::chrono::milliseconds>(jump.at).time_since_epoch().count();
  // The offset last: a reader that sees it finds the rest.
  const std::pair<std::string, std::int64_t> notes[] = {{place_of(number, "at_ms"), at},
                                                        {place_of(number, "offset_ns"), jump.before.count()},
                                                        {kJumps, number + 1},
                                                        {kCalendarOffset, offset.count()}};
  for (const auto& [name, value] : notes) {
    co_await or_return(store(&Store::remember, name, value));
  }
  co_return Result<void>{};
}

}  // namespace argiope
