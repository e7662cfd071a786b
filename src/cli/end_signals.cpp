#include "cli/end_signals.hpp"

#include <signal.h>

#include <utility>

#include "cli/commands.hpp"

namespace argiope {
namespace {

bool is_hang_up_ignored() noexcept {
  struct sigaction now {};
  return ::sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

void EndSignals::listen(EventLoop& loop, std::function<void()> heard) {
  heard_ = std::move(heard);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    if (number == SIGHUP && is_hang_up_ignored()) continue;
    loop.add_signal_handler(number, [this, &loop, number] { take(loop, number); });
  }
}

void EndSignals::forget(EventLoop& loop) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) loop.remove_signal_handler(number);
}

void EndSignals::take(EventLoop& loop, int number) {
  if (number == SIGHUP && first_ != 0) return;
  if (first_ == 0) {
    first_ = number;
    // To the end of the process: the loop is gone while the last files are written.
    loop.remove_signal_handler(SIGHUP);
    ::signal(SIGHUP, SIG_IGN);
  }
  heard_();
}

int EndSignals::exit_status() const noexcept { return first_ == SIGHUP ? kExitHungUp : kExitInterrupted; }

}  // namespace argiope
