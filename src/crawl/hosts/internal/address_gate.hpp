// The limit of requests under way at one IP address, across all hosts and shards that share it.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "argiope/base/detail/ring_buffer.hpp"
#include "argiope/web/detail/ip_address.hpp"

namespace argiope {

// Threads: any. A waker is called on the thread that released; it must only pass the message on.
class AddressGate {
 public:
  // False: nobody waits there any more, and the place is another's.
  using Waker = std::move_only_function<bool()>;

  explicit AddressGate(std::uint32_t limit) : limit_(limit) {}

  // Takes a place, or keeps `waker` and calls it once when one may be free. An empty one is not kept.
  bool enter(const IpAddress& address, Waker waker) {
    std::lock_guard lock(mutex_);
    Place& place = places_[address];
    if (place.inside < limit_) {
      ++place.inside;
      return true;
    }
    if (waker) place.waiting.push_back(std::move(waker));
    return false;
  }

  void leave(const IpAddress& address) {
    {
      std::lock_guard lock(mutex_);
      --places_.find(address)->second.inside;
    }
    wake(address);
  }

  // Calls as many of those that wait as there are places. Also for who was woken and does not enter.
  void wake(const IpAddress& address) {
    for (std::uint32_t woken = 0;;) {
      Waker next;
      {
        std::lock_guard lock(mutex_);
        const auto found = places_.find(address);
        if (found == places_.end()) return;
        Place& place = found->second;
        if (place.waiting.empty()) {
          if (place.inside == 0) places_.erase(found);
          return;
        }
        if (place.inside + woken >= limit_) return;
        next = place.waiting.pop_front();
      }
      if (next()) ++woken;
    }
  }

 private:
  struct Place {
    std::uint32_t inside = 0;
    RingBuffer<Waker> waiting;
  };
  std::mutex mutex_;
  std::uint32_t limit_;
  std::unordered_map<IpAddress, Place> places_;
};

}  // namespace argiope
