// How fast a host is asked that gives no other answer than how long its answers take. Pure: no clock, no chance, no
// I/O.
#pragma once

#include <algorithm>
#include <cmath>

#include "argiope/base/clock.hpp"

namespace argiope {

// The time from the start of one request to that of the next, so that on average `target` requests are under way: what
// an answer took, divided by `target`. A slower answer counts at once, a faster one by half each time. The time an
// error took, which may be nothing, never makes the pace faster.
struct Autothrottle {
  static constexpr Duration kSlowest = std::chrono::seconds{60};

  double target = 1;   // more than 0
  Duration fastest{};  // never a shorter time than this

  Duration next(Duration pace, Duration latency, bool is_error) const noexcept {
    const double wanted = static_cast<double>(std::max(latency, Duration::zero()).count()) / target;
    const Duration most = std::max(kSlowest, fastest);
    const Duration goal =
        wanted < static_cast<double>(most.count()) ? Duration(static_cast<Duration::rep>(wanted)) : most;
    const Duration next = std::max(goal, Duration((pace.count() + goal.count()) / 2));
    if (is_error && next < pace) return pace;
    return std::clamp(next, fastest, most);
  }
};

}  // namespace argiope
