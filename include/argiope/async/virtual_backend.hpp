// Simulated time: when every task waits, the clock jumps to the next deadline. A month of schedules runs in
// milliseconds, in the same order every time.
#pragma once

#include <condition_variable>
#include <mutex>

#include "argiope/async/io_backend.hpp"

namespace argiope {

// No I/O. Time stands still while work of other threads (executors) is outstanding, so that a thread's
// speed cannot change what a simulation does.
//
// Threads: the loop's own, but for wake().
class VirtualBackend final : public IoBackend {
 public:
  VirtualBackend() = default;
  explicit VirtualBackend(WallTime start) : clock_(start) {}

  const Clock& clock() const noexcept override { return clock_; }
  // The same clock, to be set by a test: an administrator's clock jump.
  ManualClock& manual_clock() noexcept { return clock_; }

  void poll() override {}
  void wait(TimePoint until, bool outside_work) override;
  void wake() noexcept override;

 private:
  ManualClock clock_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool wake_pending_ = false;
};

}  // namespace argiope
