// Redirects that set cookies and come back to where they began: "not without a cookie", says the page, and is another
// with it. A crawl asks each URL once, so it has to know such a chain from a circle.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace argiope {

// Where chains of redirects under way began, by where each of them leads next. Few are under way at a time; of two
// whose places are the same, one is forgotten, and then its page counts as the redirect that it was.
//
// Threads: any.
class CookieDetours {
 public:
  struct Start {
    std::uint64_t fingerprint = 0;  // of the URL; 0: none
    std::int64_t id = 0;
    bool new_cookies = false;  // an answer on the way has set some
  };

  // A redirect of `start`'s chain leads to the URL of this fingerprint.
  void put(std::uint64_t target, const Start& start) {
    std::lock_guard lock(mutex_);
    if (places_ == nullptr) places_ = std::make_unique<Places>();
    place_of(target) = {target, start};
  }
  // The chain that has led to the URL, which is asked now.
  std::optional<Start> take(std::uint64_t target) {
    std::lock_guard lock(mutex_);
    if (places_ == nullptr || place_of(target).target != target) return std::nullopt;
    return std::exchange(place_of(target), {}).start;
  }

 private:
  struct Place {
    std::uint64_t target = 0;
    Start start;
  };
  using Places = std::array<Place, 4096>;
  Place& place_of(std::uint64_t target) noexcept { return (*places_)[target % 4096]; }

  std::mutex mutex_;
  std::unique_ptr<Places> places_;  // once there is one
};

}  // namespace argiope
