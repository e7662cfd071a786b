#include "cli/end_signals.hpp"

#include <signal.h>

#include <utility>

#include "cli/commands.hpp"

namespace argiope {
namespace {

constexpr int kEndSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

// Nobody sends these to be obeyed at once: the terminal or the reader of the output is gone, and that is told as often
// as it is noticed.
bool is_told_again(int number) noexcept { return number == SIGHUP || number == SIGPIPE; }

bool is_ignored(int number) noexcept {
  struct sigaction now {};
  return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

void EndSignals::listen(EventLoop& loop, std::function<void()> heard) {
  heard_ = std::move(heard);
  for (const int number : kEndSignals) {
    if (is_told_again(number) && is_ignored(number)) continue;
    loop.add_signal_handler(number, [this, &loop, number] { take(loop, number); });
  }
}

void EndSignals::forget(EventLoop& loop) {
  for (const int number : kEndSignals) loop.remove_signal_handler(number);
}

void EndSignals::take(EventLoop& loop, int number) {
  if (is_told_again(number) && first_ != 0) return;
  if (first_ == 0) {
    first_ = number;
    // To the end of the process: the loop is gone while the last files are written.
    for (const int again : {SIGHUP, SIGPIPE}) {
      loop.remove_signal_handler(again);
      ::signal(again, SIG_IGN);
    }
  }
  heard_();
}

int EndSignals::exit_status() const noexcept {
  return first_ == SIGHUP ? kExitHungUp : first_ == SIGPIPE ? kExitNotRead : kExitInterrupted;
}

}  // namespace argiope
