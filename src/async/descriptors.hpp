// The records that a loop keeps of the descriptors that are watched for it, by readers and writers or by tasks.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <unordered_map>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"

namespace argiope::detail {

// EventLoop's members of these names say what they do. A descriptor is registered with the backend from the first
// interest in it to the last.
class Descriptors {
 public:
  explicit Descriptors(EventLoop& loop) noexcept : loop_(loop) {}

  void add(int fd, Interest interest, std::function<void()> function);
  bool remove(int fd, Interest interest) noexcept;
  Watch& claim(int fd, Interest interest);
  void give_up(int fd, Interest interest) noexcept;

 private:
  struct Side {
    // Shared, because it may remove itself while it runs.
    std::shared_ptr<std::function<void()>> function;
    Handle scheduled;
    // A task waits here.
    bool claimed = false;
  };
  struct Watched {
    std::unique_ptr<Watch> watch;
    std::array<Side, 2> sides;
    Side& side(Interest interest) noexcept { return sides[static_cast<std::size_t>(interest)]; }
  };

  // The side, for the caller; throws std::logic_error when another has it.
  Side& free_side(int fd, Interest interest);
  void arm(int fd, Interest interest);
  void forget_if_idle(int fd) noexcept;

  EventLoop& loop_;
  std::unordered_map<int, Watched> watched_;
};

}  // namespace argiope::detail
