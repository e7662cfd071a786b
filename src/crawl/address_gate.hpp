// The limit of requests under way at one IP address, across all hosts and shards that share it.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "argiope/base/detail/ring_buffer.hpp"
#include "argiope/web/ip_address.hpp"

namespace argiope {

// Threads: any. A waker is called on the thread that released; it must only pass the message on.
class AddressGate {
 public:
  using Waker = std::move_only_function<void()>;

  explicit AddressGate(std::uint32_t limit) : limit_(limit) {}

  // Takes a place, or keeps `waker` and calls it once when one may be free.
  bool enter(const IpAddress& address, Waker waker) {
    std::lock_guard lock(mutex_);
    Place& place = places_[address];
    if (place.inside < limit_) {
      ++place.inside;
      return true;
    }
    place.waiting.push_back(std::move(waker));
    return false;
  }

  void leave(const IpAddress& address) {
    Waker next;
    {
      std::lock_guard lock(mutex_);
      auto found = places_.find(address);
      --found->second.inside;
      if (!found->second.waiting.empty()) {
        next = found->second.waiting.pop_front();
      } else if (found->second.inside == 0) {
        places_.erase(found);
      }
    }
    if (next) next();
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
