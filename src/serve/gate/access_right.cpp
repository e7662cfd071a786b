#include "serve/gate/access_right.hpp"

#include <algorithm>

namespace argiope {

bool AccessRight::holds() const noexcept {
  return !ended_ && clock_.now() < ends_at_ && (!expires_at_ || clock_.wall_now() < *expires_at_);
}

TimePoint AccessRight::last_moment() const noexcept {
  if (!holds()) return TimePoint::min();
  if (!expires_at_) return ends_at_;
  return std::min(ends_at_,
                  saturating_add(clock_.now(), std::chrono::duration_cast<Duration>(*expires_at_ - clock_.wall_now())));
}

void AccessRight::end() {
  if (std::exchange(ended_, true) || detail::this_thread.loop == nullptr) return;  // without a loop nothing goes on
  waits_.for_each([](Wait& wait) {
    if (!wait.limit.expired()) wait.limit.reschedule(TimePoint::min());
  });
}

}  // namespace argiope
