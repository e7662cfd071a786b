#include "store/jobs/internal/server_wait.hpp"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace argiope {

void ServerWait::begin() noexcept {
  if (in_trouble_) return;
  const std::lock_guard lock(mutex_);
  if (!given_up_) alarm_.set(limit_);
}

bool ServerWait::await(int descriptor, short events, const Alarm* sooner) const noexcept {
  for (;;) {
    std::array<pollfd, 3> waits{pollfd{.fd = descriptor, .events = events},
                                pollfd{.fd = alarm_.descriptor(), .events = POLLIN},
                                pollfd{.fd = sooner == nullptr ? -1 : sooner->descriptor(), .events = POLLIN}};
    const int found = ::poll(waits.data(), waits.size(), -1);
    if (found < 0 && errno == EINTR) continue;
    return found > 0 && waits[0].revents != 0;
  }
}

bool ServerWait::pause(std::string_view why, Duration pause) {
  {
    const std::lock_guard lock(mutex_);
    const bool was_in_trouble = std::exchange(in_trouble_, !is_over());
    if (in_trouble_ || !was_in_trouble) cause_ = why;
    if (!in_trouble_) {
      given_up_ = hurried_;
      return false;
    }
    if (!name_.empty() && !std::exchange(told_, true)) {
      spdlog::warn("{}: {}; calls wait for it, up to {:.0f} s", name_, why, to_seconds(limit_));
    }
  }
  Alarm rest;
  rest.set(pause);
  (void)await(-1, 0, &rest);
  return true;
}

bool ServerWait::has_given_up() const {
  const std::lock_guard lock(mutex_);
  return given_up_;
}

void ServerWait::answered() {
  in_trouble_ = false;
  if (std::exchange(told_, false)) spdlog::warn("{}: it answers again", name_);
}

void ServerWait::hurry(Duration limit) noexcept {
  const std::lock_guard lock(mutex_);
  limit_ = std::min(limit_, limit);
  hurried_ = true;
  given_up_ = given_up_ || limit_ <= Duration{};
  const Duration left = alarm_.left();
  if (given_up_ || left > limit_) alarm_.set(limit_);
}

}  // namespace argiope
