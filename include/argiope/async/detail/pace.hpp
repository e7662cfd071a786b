// Pace: when a loop that always has something ready looks at I/O, timers and other threads.
//
// Used by EventLoop alone. Reading a clock after every step would cost more than a step does; so the processor's
// counter is read, and after so many steps as took little time before: from 1, where steps are long, to a whole turn.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace argiope::detail {

// A counter that goes with time, of about a hundred million to five billion a second. It may differ between processors.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

class Pace {
 public:
  // Not `timed`: for a loop whose time stands still while it runs. It looks after so many steps, whatever they take.
  explicit Pace(bool timed) noexcept : timed_(timed), left_(timed ? 1 : kStepsPerLook) {}

  bool timed() const noexcept { return timed_; }
  // After `steps` more: whether to look outside now.
  bool ran(int steps) noexcept {
    left_ -= steps;
    return left_ <= 0 && check();
  }
  // The loop has looked outside.
  void looked() noexcept {
    if (timed_) looked_at_ = checked_at_ = ticks();
  }
  // The loop has waited: the steps that follow may be of another kind.
  void waited() noexcept {
    looked();
    if (timed_) left_ = stride_ = 1;
  }

 private:
  static constexpr int kStepsPerLook = 256;
  // 50 to 300 µs.
  static constexpr std::uint64_t kTicksPerLook = 1 << 18;
  static constexpr std::uint64_t kLong = kTicksPerLook / 4;
  static constexpr int kLongestStride = 32;

  bool check() noexcept {
    if (!timed_) {
      left_ = kStepsPerLook;
      return true;
    }
    const std::uint64_t now = ticks();
    const std::uint64_t took = now - std::exchange(checked_at_, now);
    if (took > kLong) {
      stride_ = 1;
    } else if (took < kLong / 2) {
      stride_ = std::min(stride_ * 2, kLongestStride);
    }
    left_ = stride_;
    return now - looked_at_ >= kTicksPerLook;
  }

  bool timed_;
  // Steps until the next check, and from one check to the next.
  int left_;
  int stride_ = 1;
  std::uint64_t checked_at_ = 0;
  std::uint64_t looked_at_ = 0;
};

}  // namespace argiope::detail
