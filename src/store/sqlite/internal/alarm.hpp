// Alarm: the end of a span of time, for a thread that waits for descriptors with poll(). It is the system's timer, so
// nobody reads a clock.
#pragma once

#include "argiope/base/clock.hpp"

namespace argiope {

// Threads: any.
class Alarm {
 public:
  // Not set. Errors: std::system_error where the system refuses a descriptor.
  Alarm();
  ~Alarm();
  Alarm(const Alarm&) = delete;

  // Goes off after that time, also where it has gone off before; at once where it is 0 or less.
  void set(Duration after) noexcept;
  bool has_gone_off() const noexcept;
  // 0: it has gone off, or was never set.
  Duration left() const noexcept;
  // Can be read (POLLIN) once it has gone off.
  int descriptor() const noexcept { return timer_; }

 private:
  const int timer_;
};

}  // namespace argiope
