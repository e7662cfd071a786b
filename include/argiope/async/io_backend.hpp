// The ground that an EventLoop stands on: a clock, and a way to wait for the outside world.
//
// The loop itself only orders tasks and timers; sockets, descriptors and the passing of time belong to the backend.
// asio_backend.hpp is the real one; VirtualBackend, the simulated one, is here.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "argiope/base/clock.hpp"

namespace argiope {

// The event that one can wait for at a descriptor: that reading, or writing, would not block. The end of the input, a
// hang-up and an error count as ready for both, since a read or write tells of them.
enum class Interest : std::uint8_t { read, write };

// A descriptor registered with a backend, which lasts as long as this object does. The descriptor stays the caller's.
//
// Lifetime: destroy it before closing the descriptor, and before the backend.
// Threads:  the loop's own.
class Watch {
 public:
  virtual ~Watch() = default;

  // Calls `ready` once, from poll() or wait(), as soon as the descriptor is ready; replaces what this interest had
  // before. Level, not edge: what is ready already counts, and readiness that was not used up is told again.
  // As always with readiness, something else may have used it up in between: make the descriptor non-blocking.
  // `ready` must not throw; it may call start() and stop(), and may destroy the Watch.
  virtual void start(Interest interest, std::move_only_function<void()> ready) = 0;
  // The callback that start() was given is dropped uncalled.
  virtual void stop(Interest interest) noexcept = 0;
};

class IoBackend {
 public:
  virtual ~IoBackend() = default;

  virtual const Clock& clock() const noexcept = 0;

  // Runs the completion handlers of whatever I/O is ready, without waiting.
  virtual void poll() = 0;

  // As poll(), but first waits until something is ready, wake() is called, or `until` has come (kNever: no limit; a
  // time that has passed: no wait). May return early. `outside_work` says whether another thread still owes the loop a
  // call_soon_threadsafe; a backend whose time is simulated waits for that before it lets time pass. Throws
  // DeadlockError when nothing could ever end the wait.
  virtual void wait(TimePoint until, bool outside_work) = 0;

  // Registers `fd`, once at a time. A descriptor that cannot be waited for, such as a file's, is always ready.
  // Errors: std::system_error when `fd` is not open or is registered already; std::logic_error from a backend without
  //         I/O.
  virtual std::unique_ptr<Watch> watch(int fd) = 0;

  // Whether time passes while tasks run. A loop that is never idle then polls after so much of it, else after so many
  // steps, whatever they take.
  virtual bool runs_in_real_time() const noexcept { return true; }

  // Ends a wait that is under way, or the next one. Any thread; also from a signal handler.
  virtual void wake() noexcept = 0;
};

namespace detail {

// An AsioBackend on the machine's clock. Its callers include nothing of Asio's, and others link nothing.
std::unique_ptr<IoBackend> make_real_backend();

}  // namespace detail

// Simulated time: when every task waits, the clock jumps to the next deadline. A month of schedules runs in
// milliseconds, in the same order every time.

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
