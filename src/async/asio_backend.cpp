#include "argiope/async/asio_backend.hpp"

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace argiope {
namespace {

int checked(int descriptor, const char* what) {
  if (descriptor < 0) throw std::system_error(errno, std::system_category(), what);
  return descriptor;
}

}  // namespace

AsioBackend::AsioBackend(const Clock& clock)
    : clock_(clock),
      context_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE),
      wake_up_(context_, checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")),
      timer_(context_, checked(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create")) {
  watch_wake_up();
  watch_timer();
}

AsioBackend::~AsioBackend() = default;

void AsioBackend::watch_wake_up() {
  wake_up_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& ec) {
    if (ec) return;
    std::uint64_t count = 0;
    // A failed read means another wake-up emptied it already: nothing is lost either way.
    [[maybe_unused]] const ssize_t n = ::read(wake_up_.native_handle(), &count, sizeof count);
    watch_wake_up();
  });
}

void AsioBackend::watch_timer() {
  timer_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& ec) {
    if (ec) return;
    std::uint64_t expirations = 0;
    [[maybe_unused]] const ssize_t n = ::read(timer_.native_handle(), &expirations, sizeof expirations);
    armed_for_ = kNever;
    watch_timer();
  });
}

void AsioBackend::arm_timer(TimePoint until) {
  // Relative, because the clock passed in need not share CLOCK_MONOTONIC's epoch. Zero would disarm.
  const Duration left = std::max(until - clock_.now(), Duration{1});
  itimerspec spec{};
  spec.it_value.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000);
  spec.it_value.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
  ::timerfd_settime(timer_.native_handle(), 0, &spec, nullptr);
  armed_for_ = until;
}

void AsioBackend::poll() { context_.poll(); }

void AsioBackend::wait(TimePoint until, bool) {
  if (until != kNever && until <= clock_.now()) {
    poll();
    return;
  }
  // An earlier deadline than asked for costs one needless turn of the loop; re-arming at every turn costs more.
  if (until < armed_for_) arm_timer(until);
  context_.run_one();
  context_.poll();
}

void AsioBackend::wake() noexcept {
  const std::uint64_t one = 1;
  // The counter cannot overflow in practice, and a full one is a pending wake-up all the same.
  [[maybe_unused]] const ssize_t n = ::write(wake_up_.native_handle(), &one, sizeof one);
}

}  // namespace argiope
