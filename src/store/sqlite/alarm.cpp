#include "store/sqlite/internal/alarm.hpp"

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace argiope {

using namespace std::chrono_literals;

Alarm::Alarm() : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (timer_ < 0) throw std::system_error(errno, std::generic_category(), "timerfd_create");
}

Alarm::~Alarm() { ::close(timer_); }

void Alarm::set(Duration after) noexcept {
  const Duration span = std::max(after, Duration{1ns});  // 0 would never go off
  itimerspec at{};
  at.it_value.tv_sec = static_cast<time_t>(span / 1s);
  at.it_value.tv_nsec = static_cast<long>((span % 1s).count());
  (void)::timerfd_settime(timer_, 0, &at, nullptr);
}

bool Alarm::has_gone_off() const noexcept {
  pollfd look{.fd = timer_, .events = POLLIN};
  return ::poll(&look, 1, 0) == 1;
}

Duration Alarm::left() const noexcept {
  itimerspec at{};
  (void)::timerfd_gettime(timer_, &at);
  return std::chrono::seconds{at.it_value.tv_sec} + Duration{at.it_value.tv_nsec};
}

}  // namespace argiope
