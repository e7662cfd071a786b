// Sums of times of the wall clock.
#pragma once

#include "argiope/base/clock.hpp"

namespace argiope {

// `t + d`, but the last time there is (or the first) instead of an overflow.
constexpr WallTime saturating_add(WallTime t, Duration d) noexcept {
  return WallTime{saturating_add(TimePoint{t.time_since_epoch()}, d).time_since_epoch()};
}

}  // namespace argiope
