// Time as a parameter: what "now" is, is asked of a Clock that was passed in. Also spans of time as text.
//
// Two time lines, never mixed. TimePoint is monotonic and is what deadlines, delays and leases are measured on;
// WallTime is the calendar's and is what is stored and shown. Below the command line only an AsioBackend that was given
// no clock creates a SystemClock.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"

namespace argiope {

using Duration = std::chrono::nanoseconds;

// Tag of the monotonic time line; its epoch is the clock's own and means nothing outside the process.
struct MonotonicTimeline {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonotonicTimeline, Duration>;
  static constexpr bool is_steady = true;
};

using TimePoint = MonotonicTimeline::time_point;
// Nanoseconds since 1970-01-01T00:00:00Z; reaches to the year 2262.
using WallTime = std::chrono::sys_time<Duration>;

// Farther than any deadline: "never".
inline constexpr TimePoint kNever = TimePoint::max();

constexpr double to_seconds(Duration d) noexcept { return std::chrono::duration<double>(d).count(); }
// Rounds towards zero and saturates, so that a huge option value is "for ever" and not an overflow.
Duration from_seconds(double seconds) noexcept;
// `t + d`, but kNever (or the earliest time there is) instead of an overflow.
constexpr TimePoint saturating_add(TimePoint t, Duration d) noexcept {
  Duration::rep sum{};
  if (__builtin_add_overflow(t.time_since_epoch().count(), d.count(), &sum)) {
    return d.count() > 0 ? kNever : TimePoint::min();
  }
  return TimePoint{Duration{sum}};
}

// Source of both time lines.
//
// Threads: every implementation may be read from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  // Never steps back.
  virtual TimePoint now() const noexcept = 0;
  // May jump either way when the machine's clock is set.
  virtual WallTime wall_now() const noexcept = 0;
};

// The machine's clocks (CLOCK_MONOTONIC and CLOCK_REALTIME).
class SystemClock final : public Clock {
 public:
  TimePoint now() const noexcept override;
  WallTime wall_now() const noexcept override;
};

// A clock that stands still until told to move: for tests, and the clock of the virtual-time loop.
// Threads: one thread moves it; others may read.
class ManualClock final : public Clock {
 public:
  // Starts at `wall`, 2026-01-01T00:00:00Z unless given, with the monotonic line at zero.
  explicit ManualClock(WallTime wall = WallTime{std::chrono::seconds{1767225600}}) noexcept : wall_at_zero_(wall) {}
  TimePoint now() const noexcept override { return now_; }
  WallTime wall_now() const noexcept override { return wall_at_zero_ + now_.time_since_epoch(); }
  void advance(Duration by) noexcept { now_ += by; }
  // Moves to `to`; a time in the past leaves the clock where it is.
  void advance_to(TimePoint to) noexcept {
    if (to > now_) now_ = to;
  }
  // Sets the calendar without touching the monotonic line: an administrator's clock jump.
  void set_wall(WallTime wall) noexcept { wall_at_zero_ = wall - now_.time_since_epoch(); }

 private:
  TimePoint now_{};
  WallTime wall_at_zero_;
};

// Spans of time as text: one notation for options, files and what is printed.

// "90s", "1h30m", "1.5h", "2w 3d", "250ms": numbers with the units w, d, h, m (or min), s, ms, us, ns. A bare number is
// seconds: "90", "0.5". From 0 to 200 years.
// Errors: invalid_input, quoting the text.
Result<Duration> parse_span(std::string_view text);
// The same, but more than 0.
Result<Duration> parse_duration(std::string_view text);
// "1h30m", which both read back; "0s" for nothing and less.
std::string format_duration(Duration duration);
// The same to three figures or so, for people: "3d4h", "1m30s", "1.25s", "12ms".
std::string format_roughly(Duration duration);

}  // namespace argiope
