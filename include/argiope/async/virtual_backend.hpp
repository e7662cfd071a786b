// Simulated time: when every task waits, the clock jumps to the next deadline. A month of schedules runs in
// milliseconds, in the same order every time.
#pragma once

#include <semaphore.h>

#include <atomic>

#include "argiope/async/io_backend.hpp"

namespace argiope {

// No I/O. Time stands still while work of other threads (executors) is outstanding, so that a thread's
// speed cannot change what a simulation does.
//
// Threads: the loop's own, but for wake(), which is also safe in a signal handler.
class VirtualBackend final : public IoBackend {
 public:
  VirtualBackend() : VirtualBackend(ManualClock{}) {}
  explicit VirtualBackend(WallTime start) : VirtualBackend(ManualClock{start}) {}
  ~VirtualBackend() override;

  const Clock& clock() const noexcept override { return clock_; }
  // The same clock, to be set by a test: an administrator's clock jump.
  ManualClock& manual_clock() noexcept { return clock_; }

  bool runs_in_real_time() const noexcept override { return false; }
  void poll() override {}
  void wait(TimePoint until, bool outside_work) override;
  // Throws std::logic_error: a descriptor lives in real time.
  std::unique_ptr<Watch> watch(int fd) override;
  void wake() noexcept override;

 private:
  explicit VirtualBackend(const ManualClock& clock) noexcept;

  ManualClock clock_;
  // A POSIX semaphore and no mutex, because a signal handler may post it. At most one wake-up is pending.
  sem_t wake_ups_;
  std::atomic<bool> wake_pending_{false};
};

}  // namespace argiope
