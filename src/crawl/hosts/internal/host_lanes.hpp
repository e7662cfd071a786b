// Which hosts may hold how many of a shard's connections. A host that is known to answer may use them all; those of
// which nobody knows share three quarters, and those that were asked and did not answer an eighth. So silence can hold
// up nobody but other silence, however many hosts are silent.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "crawl/hosts/internal/host_health.hpp"

namespace argiope {

// Threads: one at a time.
template <class Waiting>
class LanesOf {
 public:
  enum class Lane : std::uint8_t { open, fresh, slow };
  static Lane lane_of(const HostHealth& health) noexcept {
    return health.known_to_answer() ? Lane::open : health.is_slow() ? Lane::slow : Lane::fresh;
  }

  explicit LanesOf(std::size_t connections)
      : most_{connections, std::max<std::size_t>(connections - (connections + 3) / 4, 1),
              std::max<std::size_t>(connections / 8, 1)} {}

  // Takes a place in the lane. False: there is none, and the host waits until wake() gives it out.
  bool enter(Lane lane, Waiting& host) {
    if (free_places(lane) > 0) {
      ++inside_[index(lane)];
      return true;
    }
    if (lane != Lane::open) waiting_[index(lane)].push_back(&host);
    return false;
  }
  void leave(Lane lane) noexcept { --inside_[index(lane)]; }

  // The hosts that may try again, those nobody has asked yet first; each is told of once, and enters or waits anew.
  template <class Wake>
  void wake(Wake&& wake) {
    for (const Lane lane : {Lane::fresh, Lane::slow}) {
      std::deque<Waiting*>& waiting = waiting_[index(lane)];
      for (std::size_t places = free_places(lane); places > 0 && !waiting.empty(); --places) {
        Waiting* host = waiting.front();
        waiting.pop_front();
        wake(*host);
      }
    }
  }

 private:
  static std::size_t index(Lane lane) noexcept { return static_cast<std::size_t>(lane); }
  // The slow ones count against the share of all that are not known to answer, too.
  std::size_t free_places(Lane lane) const noexcept {
    if (lane == Lane::open) return 1;  // bounded by the shard itself
    const std::size_t unknown = inside_[index(Lane::fresh)] + inside_[index(Lane::slow)];
    const std::size_t left = most_[index(Lane::fresh)] - std::min(unknown, most_[index(Lane::fresh)]);
    if (lane == Lane::fresh) return left;
    const std::size_t slow = inside_[index(Lane::slow)];
    return std::min(left, most_[index(Lane::slow)] - std::min(slow, most_[index(Lane::slow)]));
  }

  std::array<std::size_t, 3> most_;
  std::array<std::size_t, 3> inside_{};
  std::array<std::deque<Waiting*>, 3> waiting_;
};

struct Host;
using HostLanes = LanesOf<Host>;

}  // namespace argiope
