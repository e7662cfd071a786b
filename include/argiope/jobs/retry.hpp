// How long to wait before a failed job is tried again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/random.hpp"

namespace argiope {

// After attempt n: first · factor^(n−1), at most `longest`; or, when there is a table, its n-th entry (the last one
// from there on). A store and a configuration hold these fields of it.
struct RetryPolicy {
  std::uint32_t max_attempts = 3;  // the first included
  Duration first = std::chrono::seconds{1};
  double factor = 4;
  Duration longest = std::chrono::hours{1};
  // The wait is drawn evenly from [1 − jitter, 1] of itself, so that what failed together does not come back together.
  // 0: no chance in it; 1: "full jitter", anything down to no wait at all.
  double jitter = 0.25;
  std::vector<Duration> table;

  // The wait after the `attempts`-th attempt (from 1) has failed; nullopt when that was the last. Never negative, and
  // never an overflow, whatever the fields hold.
  std::optional<Duration> delay_after(std::uint32_t attempts, Random& random) const;
};

}  // namespace argiope
