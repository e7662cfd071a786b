// Virtual time with real descriptors, for servers and clients of one thread that talk over Unix sockets: what one has
// written the other can read at once, so that time only passes when nobody has anything to do, and all happens in the
// same order each time. Argiope's own tests run over this file.
#pragma once

#include <memory>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/coro.hpp"
#include "argiope/async/io_backend.hpp"

namespace argiope {

// Time stands still while another thread owes the loop something.
//
// Not here: TCP, whose bytes may be under way while nobody has anything to do.
class SocketsInVirtualTime final : public IoBackend {
 public:
  explicit SocketsInVirtualTime(WallTime start) : clock_(start) {}

  const Clock& clock() const noexcept override { return clock_; }
  bool runs_in_real_time() const noexcept override { return false; }
  void poll() override { io_.poll(); }
  void wait(TimePoint until, bool outside_work) override {
    if (io_.context().poll() > 0 || until <= clock_.now()) return;
    if (outside_work) return io_.wait(kNever, true);
    if (until == kNever) throw DeadlockError("every task waits, and nothing is left that could wake one");
    clock_.advance_to(until);
  }
  std::unique_ptr<Watch> watch(int fd) override { return io_.watch(fd); }
  void wake() noexcept override { io_.wake(); }

 private:
  ManualClock clock_;
  AsioBackend io_{clock_};
};

}  // namespace argiope
