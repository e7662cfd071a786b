// AccessRight: what the gate has let a caller in by, for as long as that holds. All that waits on the caller's behalf,
// a request or a stream, ends with it (docs/http-api.md, "Tokens").
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/detail/intrusive_list.hpp"

namespace argiope {

// The exception that while_it_holds() throws.
struct AccessEnded : std::runtime_error {
  AccessEnded() : std::runtime_error("the right to ask has ended") {}
};

// Time:    an expiry is a time of the wall clock. Where that clock jumps ahead, holds() knows at once, and what waits
//          ends when the time that was left has passed.
// Threads: the loop's own.
class AccessRight {
 public:
  // Until `expires_at` and `ends_at`, whichever comes first, or end(). The clock outlives it.
  explicit AccessRight(const Clock& clock, std::optional<WallTime> expires_at = {}, TimePoint ends_at = kNever)
      : clock_(clock), expires_at_(expires_at), ends_at_(ends_at) {}
  AccessRight(const AccessRight&) = delete;

  bool holds() const noexcept;
  // Ends all that waits by it.
  void end();

 private:
  template <Awaitable A>
  friend Coro<AwaitValue<A>> while_it_holds(std::shared_ptr<AccessRight> right, A work);

  struct Wait : ListHook {
    explicit Wait(AccessRight& right) : limit(right.last_moment()) { right.waits_.push_back(*this); }
    Timeout limit;
  };
  TimePoint last_moment() const noexcept;

  const Clock& clock_;
  const std::optional<WallTime> expires_at_;
  const TimePoint ends_at_;
  bool ended_ = false;
  IntrusiveList<Wait> waits_;
};

// Null is a right without an end.
inline bool holds(const std::shared_ptr<AccessRight>& right) noexcept { return right == nullptr || right->holds(); }

// Awaits `work` in the calling task.
// Errors: AccessEnded when the right ended first, and `work` was cancelled where it waited; what `work` throws.
template <Awaitable A>
Coro<AwaitValue<A>> while_it_holds(std::shared_ptr<AccessRight> right, A work) {
  if (right == nullptr) co_return co_await std::move(work);
  AccessRight::Wait wait(*right);
  try {
    if constexpr (std::is_void_v<AwaitValue<A>>) {
      co_await wait.limit.run(std::move(work));
      co_return;
    } else {
      co_return co_await wait.limit.run(std::move(work));
    }
  } catch (const TimeoutError&) {
    if (!wait.limit.expired()) throw;
  }
  throw AccessEnded();
}

// The grant of a right: the right ends with its grant.
class AccessGrant {
 public:
  explicit AccessGrant(std::shared_ptr<AccessRight> right) noexcept : right_(std::move(right)) {}
  AccessGrant(AccessGrant&&) noexcept = default;
  AccessGrant& operator=(AccessGrant&& other) noexcept {
    if (this != &other) end();
    right_ = std::move(other.right_);
    return *this;
  }
  ~AccessGrant() { end(); }
  const std::shared_ptr<AccessRight>& right() const noexcept { return right_; }

 private:
  void end() noexcept {
    if (right_ != nullptr) right_->end();
  }

  std::shared_ptr<AccessRight> right_;
};

}  // namespace argiope
