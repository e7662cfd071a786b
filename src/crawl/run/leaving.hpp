// An action for the moment when a scope is left.
#pragma once

#include <functional>
#include <utility>

namespace argiope {

// Does what it was given when it goes, however that comes.
class Leaving {
 public:
  template <class Leave>
  explicit Leaving(Leave leave) : leave_(std::move(leave)) {}
  Leaving(Leaving&& other) noexcept : leave_(std::exchange(other.leave_, nullptr)) {}
  ~Leaving() {
    if (leave_) leave_();
  }

 private:
  std::function<void()> leave_;
};

}  // namespace argiope
