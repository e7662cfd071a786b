// The ground that an EventLoop stands on: a clock, and a way to wait for the outside world.
//
// The loop itself only orders tasks and timers; sockets, descriptors and the passing of time belong to
// the backend. asio_backend.hpp is the real one, virtual_backend.hpp the simulated one.
#pragma once

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

}  // namespace argiope
