// TokenBucket: at most `rate` permits a second, in bursts of at most `burst`.
#pragma once

#include <cmath>
#include <limits>

#include "argiope/base/clock.hpp"

namespace argiope {

inline constexpr double kUnlimitedRate = std::numeric_limits<double>::infinity();

// Kept as one instant, the moment at which the bucket will be full again (the generic cell rate algorithm), in whole
// nanoseconds: no drift, and in any window of length t no more than burst + rate·t permits.
//
// Units:   permits a second. A rate of 0 or less gives nothing, ever; infinity always. A burst below 1 counts as 1.
// Errors:  none. Time that steps back is treated as standing still.
// Threads: one at a time. Cost: O(1), 24 bytes.
// Source:  pyspider's Bucket, less its faults (docs/jobs.md).
class TokenBucket {
 public:
  explicit TokenBucket(double rate = kUnlimitedRate, double burst = 1) noexcept { set(rate, burst, TimePoint{}); }

  // Takes effect at once: a lower burst forgets the permits above it.
  void set(double rate, double burst, TimePoint now) noexcept {
    // Rounded up: never a permit too many.
    const double interval = rate > 0 ? std::ceil(1e9 / rate) : kMostNanoseconds;
    interval_ = interval < kMostNanoseconds ? Duration{static_cast<Duration::rep>(interval)} : Duration::max();
    const double tolerance = std::isfinite(rate) && rate > 0 ? (std::fmax(burst, 1) - 1) / rate : 0;
    tolerance_ = from_seconds(tolerance);
    // What a slower rate had borrowed is not owed at the new one.
    const TimePoint most = saturating_add(now, saturating_sum(interval_, tolerance_));
    if (full_at_ > most) full_at_ = most;
  }

  // When a permit is there, at `now` or later; kNever for a rate of 0.
  TimePoint next(TimePoint now) const noexcept {
    if (interval_ == Duration::zero()) return now;
    if (interval_ == Duration::max()) return kNever;
    const TimePoint allowed = full_at_ - tolerance_;
    return allowed > now ? allowed : now;
  }
  bool ready(TimePoint now) const noexcept { return next(now) <= now; }

  // Takes a permit; call it only when ready.
  void take(TimePoint now) noexcept {
    if (interval_ == Duration::zero() || interval_ == Duration::max()) return;
    full_at_ = saturating_add(full_at_ > now ? full_at_ : now, interval_);
  }
  // Gives back the permit taken last.
  void give_back() noexcept {
    if (interval_ != Duration::zero() && interval_ != Duration::max()) full_at_ -= interval_;
  }
  bool try_take(TimePoint now) noexcept {
    if (!ready(now)) return false;
    take(now);
    return true;
  }

 private:
  static constexpr double kMostNanoseconds = 9.2e18;
  static constexpr Duration saturating_sum(Duration a, Duration b) noexcept {
    return a > Duration::max() - b ? Duration::max() : a + b;
  }

  Duration interval_{};   // zero: no limit; max: nothing
  Duration tolerance_{};  // how far full_at_ may lie ahead: burst − 1 intervals
  TimePoint full_at_{};
};

}  // namespace argiope
