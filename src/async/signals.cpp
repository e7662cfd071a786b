// Signals: the handler only sets a bit and wakes the loop; the work is done on the loop's own thread.
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"

namespace argiope {
namespace {

constexpr int kSignals = 64;
std::array<std::atomic<EventLoop*>, kSignals> signal_loops{};

extern "C" void pass_signal_on(int signal_number) {
  const int saved_errno = errno;
  if (EventLoop* loop = signal_loops[static_cast<std::size_t>(signal_number)].load()) loop->note_signal(signal_number);
  errno = saved_errno;
}

void set_disposition(int signal_number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  if (::sigaction(signal_number, &action, nullptr) != 0) {
    throw std::system_error(errno, std::system_category(), "sigaction");
  }
}

}  // namespace

void EventLoop::add_signal_handler(int signal_number, std::function<void()> function) {
  if (signal_number <= 0 || signal_number >= kSignals) throw std::invalid_argument("signal number: 1 to 63");
  EventLoop* expected = nullptr;
  auto& owner = signal_loops[static_cast<std::size_t>(signal_number)];
  if (!owner.compare_exchange_strong(expected, this) && expected != this) {
    throw std::logic_error("another event loop handles this signal already");
  }
  try {
    set_disposition(signal_number, &pass_signal_on);
  } catch (...) {
    owner.store(expected);
    throw;
  }
  std::erase_if(signal_handlers_, [&](const auto& entry) { return entry.first == signal_number; });
  signal_handlers_.emplace_back(signal_number, std::move(function));
}

void EventLoop::remove_signal_handler(int signal_number) {
  if (std::erase_if(signal_handlers_, [&](const auto& entry) { return entry.first == signal_number; }) == 0) return;
  set_disposition(signal_number, SIG_DFL);
  signal_loops[static_cast<std::size_t>(signal_number)].store(nullptr);
}

void EventLoop::note_signal(int signal_number) noexcept {
  pending_signals_.fetch_or(std::uint64_t{1} << signal_number);
  backend_.wake();
}

void EventLoop::drain_signals() {
  const std::uint64_t pending = pending_signals_.exchange(0);
  for (const auto& [signal_number, function] : signal_handlers_) {
    if ((pending >> signal_number & 1) != 0) call_soon(function);
  }
}

Coro<void> until_signal(int signal_number) {
  EventLoop& loop = EventLoop::current();
  // Shared, because a signal may have been noted, and the handler be on its way, when the wait ends.
  const auto came = std::make_shared<Event>();
  loop.add_signal_handler(signal_number, [came] { came->set(); });
  struct Handling {
    EventLoop& loop;
    int signal_number;
    ~Handling() { loop.remove_signal_handler(signal_number); }
  } const handling{loop, signal_number};
  co_await came->wait();
}

}  // namespace argiope
