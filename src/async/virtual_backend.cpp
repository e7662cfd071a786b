#include "argiope/async/virtual_backend.hpp"

#include "argiope/async/errors.hpp"

namespace argiope {

void VirtualBackend::wait(TimePoint until, bool outside_work) {
  {
    std::unique_lock lock(mutex_);
    if (outside_work) woken_.wait(lock, [this] { return wake_pending_; });
    if (std::exchange(wake_pending_, false)) return;
  }
  if (until == kNever) {
    throw DeadlockError("virtual loop: every task waits, and nothing is left that could wake one");
  }
  clock_.advance_to(until);
}

void VirtualBackend::wake() noexcept {
  {
    std::lock_guard lock(mutex_);
    wake_pending_ = true;
  }
  woken_.notify_one();
}

}  // namespace argiope
