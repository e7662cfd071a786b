#include "argiope/base/clock.hpp"

#include <time.h>

namespace argiope {
namespace {

Duration read_clock(clockid_t id) noexcept {
  timespec ts{};
  ::clock_gettime(id, &ts);
  return std::chrono::seconds{ts.tv_sec} + Duration{ts.tv_nsec};
}

}  // namespace

Duration from_seconds(double seconds) noexcept {
  constexpr double kLimit = 9.2e9;  // seconds that still fit into 63 bits of nanoseconds
  if (!(seconds < kLimit)) return seconds != seconds ? Duration::zero() : Duration::max();
  if (seconds < -kLimit) return Duration::min();
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

TimePoint SystemClock::now() const noexcept { return TimePoint{read_clock(CLOCK_MONOTONIC)}; }
WallTime SystemClock::wall_now() const noexcept { return WallTime{read_clock(CLOCK_REALTIME)}; }

}  // namespace argiope
