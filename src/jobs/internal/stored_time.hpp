// How every store keeps a time: in whole milliseconds since 1970, none before, and "never" as such.
#pragma once

#include <chrono>
#include <cstdint>

#include "argiope/base/clock.hpp"

namespace argiope {

// Under which name the owner's clock remembers in the store by how much job time differs from the calendar.
inline constexpr const char* kCalendarOffset = "calendar_offset_ns";

namespace stored_time {

inline constexpr std::int64_t kNeverMs =
    std::chrono::floor<std::chrono::milliseconds>(WallTime::max()).time_since_epoch().count();

inline std::int64_t to_ms(WallTime time) noexcept {
  return time <= WallTime{} ? 0 : std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch().count();
}
inline WallTime from_ms(std::int64_t ms) noexcept {
  return ms >= kNeverMs ? WallTime::max() : WallTime{std::chrono::milliseconds{ms}};
}
// As it comes back from a store.
inline WallTime stored(WallTime time) noexcept { return from_ms(to_ms(time)); }

}  // namespace stored_time
}  // namespace argiope
