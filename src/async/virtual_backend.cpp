#include <stdexcept>

#include "argiope/async/coro.hpp"
#include "argiope/async/io_backend.hpp"

namespace argiope {

VirtualBackend::VirtualBackend(const ManualClock& clock) noexcept : clock_(clock) { ::sem_init(&wake_ups_, 0, 0); }

VirtualBackend::~VirtualBackend() { ::sem_destroy(&wake_ups_); }

void VirtualBackend::wait(TimePoint until, bool outside_work) {
  const bool block = outside_work && until > clock_.now();
  if ((block ? ::sem_wait(&wake_ups_) : ::sem_trywait(&wake_ups_)) == 0) {
    // A thread that finds this still set posts nothing; the loop, which looks now, sees the work it handed over.
    wake_pending_.exchange(false);
    return;
  }
  if (block) return;  // interrupted by a signal
  if (until == kNever) {
    throw DeadlockError("virtual loop: every task waits, and nothing is left that could wake one");
  }
  clock_.advance_to(until);
}

std::unique_ptr<Watch> VirtualBackend::watch(int) {
  throw std::logic_error(
      "virtual time has no I/O, so no descriptor can be waited for: run this on an AsioBackend, or give the code under "
      "test a source of bytes of its own");
}

void VirtualBackend::wake() noexcept {
  if (!wake_pending_.exchange(true)) ::sem_post(&wake_ups_);
}

}  // namespace argiope
