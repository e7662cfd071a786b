// What an EventLoop stands on: a clock, and a way to wait for the outside world.
//
// The loop itself only orders tasks and timers; sockets, descriptors and the passing of time belong to
// the backend. asio_backend.hpp is the real one, virtual_backend.hpp the simulated one.
#pragma once

#include "argiope/base/clock.hpp"

namespace argiope {

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

  // Ends a wait that is under way, or the next one. Any thread; also from a signal handler.
  virtual void wake() noexcept = 0;
};

}  // namespace argiope
