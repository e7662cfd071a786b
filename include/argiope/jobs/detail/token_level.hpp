// TokenLevel: how full a bucket is that gives at most `rate` permits a second, in bursts of at most `burst`.
//
// The arithmetic alone, for code that keeps many of them and knows the time: a queue and each of its keys. TokenBucket
// has it for tasks that wait.
#pragma once

#include <cstdint>
#include <limits>

#include "argiope/base/clock.hpp"

namespace argiope {

inline constexpr double kUnlimitedRate = std::numeric_limits<double>::infinity();

// Kept as one instant, the moment at which the bucket will be full again (the generic cell rate algorithm), in whole
// numbers of 2⁻³² ns: in any window of length t there are no more than burst + rate·t permits, however long it runs.
//
// Units:   permits a second. A rate of 0 (or less, or no number) gives nothing; infinity always gives. A burst is in
//          whole permits and at least 1: 0.1 counts as 1, 2.9 as 2.
// Time:    comes with each call. One that steps back gives nothing it would not have given, and stalls nothing.
// Threads: one at a time. Cost: O(1), 32 bytes, no allocation.
// Source:  pyspider's Bucket, less its faults (it gives at rate 0, never gives with a burst below 1, and keeps the
//          tokens of an old, larger burst).
class TokenLevel {
 public:
  // Without a limit.
  TokenLevel() noexcept = default;
  // Begins full.
  explicit TokenLevel(double rate, double burst = 1) noexcept { set(rate, burst, TimePoint{}); }

  // Takes effect at once, and the bucket is then as full, in proportion, as it was: a lower burst forgets the permits
  // above it, a larger one has none in advance. After an unlimited rate, which counts nothing, it is full.
  void set(double rate, double burst, TimePoint now) noexcept;

  // When a permit is there, at `now` or later; kNever at rate 0.
  TimePoint next_available(TimePoint now) const noexcept {
    return kind_ == Kind::unlimited ? now : kind_ == Kind::nothing ? kNever : next_limited(now);
  }
  bool ready(TimePoint now) const noexcept { return next_available(now) <= now; }
  bool is_unlimited() const noexcept { return kind_ == Kind::unlimited; }
  // As if nothing had been taken for long: there is nothing here worth keeping.
  bool full(TimePoint now) const noexcept { return full_at_.ns < now.time_since_epoch().count(); }

  bool try_take(TimePoint now) noexcept {
    if (!ready(now)) return false;
    take(now);
    return true;
  }
  // Takes a permit; call it only when ready.
  void take(TimePoint now) noexcept {
    if (kind_ == Kind::limited) take_limited(now);
  }
  // Undoes the last take(). Undoing an earlier one would let more through than the rate allows: that permit's time has
  // passed.
  void undo_take() noexcept;

 private:
  enum class Kind : std::uint8_t { limited, unlimited, nothing };
  // A time or a span in nanoseconds and fractions of 2⁻³².
  struct [[gnu::packed, gnu::aligned(4)]] Fixed {
    std::int64_t ns = 0;
    std::uint32_t fraction = 0;
  };

  static __int128 wide(Fixed f) noexcept { return static_cast<__int128>(f.ns) * kOne + f.fraction; }
  static Fixed narrow(__int128 value) noexcept;
  TimePoint next_limited(TimePoint now) const noexcept;
  void take_limited(TimePoint now) noexcept;

  static constexpr __int128 kOne = __int128{1} << 32;

  static constexpr Fixed kLongAgo{std::numeric_limits<std::int64_t>::min(), 0};

  Fixed full_at_ = kLongAgo;
  Fixed interval_;  // between permits; 0 while no finite rate has been set
  std::uint32_t burst_ = 1;
  Kind kind_ = Kind::unlimited;
};

}  // namespace argiope
