// The instants beside an instant. Triggers are asked for what is after or before a time, which is not itself among the
// answers.
#pragma once

#include "argiope/base/clock.hpp"

namespace argiope::detail {

inline constexpr Duration kTick{1};
inline WallTime just_before(WallTime time) { return time == WallTime::min() ? time : time - kTick; }
inline WallTime just_after(WallTime time) { return time == WallTime::max() ? time : time + kTick; }

}  // namespace argiope::detail
