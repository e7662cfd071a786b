// EndSignals: what ends a long command in good order. Ctrl-C, SIGTERM, SIGHUP, which comes when its terminal is closed,
// and SIGPIPE, which comes when nobody reads its output any more (`| head`). A process that was started to ignore one
// of the last two (nohup) goes on.
#pragma once

#include <functional>

#include "argiope/async/event_loop.hpp"

namespace argiope {

// Lifetime: outlives the loop, or forget() is called before it goes.
class EndSignals {
 public:
  // `heard` runs on the loop for each signal that counts: one SIGHUP or SIGPIPE at most, and none after another signal,
  // as the system and the shell both send the first for one closed terminal, and each write the second.
  void listen(EventLoop& loop, std::function<void()> heard);
  void forget(EventLoop& loop);

  bool came() const noexcept { return first_ != 0; }
  // As a shell counts the first that came. Pre: came().
  int exit_status() const noexcept;

 private:
  void take(EventLoop& loop, int number);

  std::function<void()> heard_;
  int first_ = 0;
};

}  // namespace argiope
