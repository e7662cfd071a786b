// The time line on which jobs are due: the calendar's, but without its jumps.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "jobs/internal/stored_time.hpp"

namespace argiope {

// Stores keep milliseconds: rounded up, so that nothing is due before its time.
inline WallTime whole_ms(WallTime time) noexcept {
  if (time > WallTime::max() - std::chrono::milliseconds{1}) return std::chrono::floor<std::chrono::milliseconds>(time);
  return std::chrono::ceil<std::chrono::milliseconds>(time);
}

// Job time is what the store holds. It runs with the monotonic clock, so that a delay of an hour takes an hour whatever
// anyone does to the machine's calendar; it differs from the calendar by an offset, which the owner remembers in the
// store and which only a jump changes. Slow corrections, below kJump between two looks, are followed. So that a jump
// does not move what was before it, the last kMostJumps are remembered too: what happened then is shown as the calendar
// was.
//
// Threads: one at a time.
class JobClock {
 public:
  static constexpr Duration kJump = std::chrono::seconds{2};

  struct Jump {
    WallTime at{};      // in job time, whole milliseconds, as stores keep times
    Duration before{};  // the offset until then
    friend bool operator==(const Jump&, const Jump&) = default;
  };
  static constexpr std::size_t kMostJumps = 64;

  // `jumps`: the oldest first.
  JobClock(const Clock& clock, Duration offset, std::vector<Jump> jumps = {}) noexcept
      : clock_(clock),
        offset_(offset),
        anchor_(clock.now()),
        job_anchor_(clock.wall_now() + offset),
        jumps_(std::move(jumps)) {}

  // Looks whether the calendar has jumped since the last look; by how much, if it has.
  std::optional<Duration> look() {
    const WallTime job_now = now();
    const Duration moved = clock_.wall_now() + offset_ - job_now;
    const bool jumped = moved > kJump || moved < -kJump;
    if (jumped) {
      if (jumps_.size() == kMostJumps) jumps_.erase(jumps_.begin());
      jumps_.push_back({std::chrono::floor<std::chrono::milliseconds>(job_now), offset_});
      offset_ -= moved;
    } else {
      const TimePoint anchor_before = std::exchange(anchor_, clock_.now());
      const WallTime job_anchor_before = std::exchange(job_anchor_, job_now + moved);
      const Duration corrected = (job_anchor_ - job_anchor_before) - (anchor_ - anchor_before);
      corrections_ = std::max(corrections_ + corrected, Duration::zero());
    }
    return jumped ? std::optional(moved) : std::nullopt;
  }
  Duration offset() const noexcept { return offset_; }

  TimePoint monotonic_now() const noexcept { return clock_.now(); }
  WallTime now() const noexcept { return job_anchor_ + (clock_.now() - anchor_); }
  // The epoch, which stands for "no time", stays what it is; times beyond what either line holds become the last there
  // is.
  WallTime from_calendar(WallTime time) const noexcept { return time == WallTime{} ? time : shifted(time, offset_); }
  // As the calendar showed it then, or will show it if it does not jump again.
  WallTime to_calendar(WallTime time) const noexcept {
    if (time == WallTime{}) return time;
    for (const Jump& jump : jumps_) {
      if (time < jump.at) return shifted(time, -jump.before);
    }
    return shifted(time, -offset_);
  }
  const std::vector<Jump>& jumps() const noexcept { return jumps_; }
  TimePoint to_monotonic(WallTime job_time) const noexcept {
    return saturating_add(anchor_, saturating_difference(job_time, job_anchor_));
  }
  WallTime to_job_time(TimePoint time) const noexcept {
    Duration::rep since{};
    if (__builtin_sub_overflow(time.time_since_epoch().count(), anchor_.time_since_epoch().count(), &since)) {
      return WallTime::max();
    }
    return shifted(job_anchor_, Duration{since});
  }
  // The earliest job time that to_monotonic() has made `time` of, ever: it was another before a slow correction.
  WallTime earliest_job_time(TimePoint time) const noexcept { return shifted(to_job_time(time), -corrections_); }

 private:
  static WallTime shifted(WallTime time, Duration by) noexcept {
    return WallTime{saturating_add(TimePoint{time.time_since_epoch()}, by).time_since_epoch()};
  }
  static Duration saturating_difference(WallTime a, WallTime b) noexcept {
    Duration::rep difference{};
    if (__builtin_sub_overflow(a.time_since_epoch().count(), b.time_since_epoch().count(), &difference)) {
      return a > b ? Duration::max() : Duration::min();
    }
    return Duration{difference};
  }

  const Clock& clock_;
  Duration offset_;
  TimePoint anchor_;
  WallTime job_anchor_;
  Duration corrections_{};  // how far slow corrections have taken job time forward, from its lowest
  std::vector<Jump> jumps_;
};

}  // namespace argiope
