// TokenBucket: tasks that wait for permits, at most `rate` of them a second, in bursts of at most `burst`.
//
//   TokenBucket bucket(5, 10);
//   for (const Order& order : orders) {
//     co_await bucket.acquire();
//     co_await send(order);
//   }
#pragma once

#include <coroutine>
#include <cstdint>

#include "argiope/async/event_loop.hpp"
#include "argiope/jobs/detail/token_level.hpp"

namespace argiope {

// Units:     permits a second; a burst is in whole permits and at least 1. A rate of 0 gives nothing until set()
//            changes it; an infinite one (kUnlimitedRate) always gives.
// Time:      the loop's clock, which may be simulated.
// Suspends:  acquire(), while no permit is there or others wait.
// Cancel:    a cancelled acquire() throws CancelledError and takes no permit, even when it had been given one and had
//            not run on: that goes to the next waiter, or back.
// Order:     first come, first served.
// Lifetime:  must outlive the tasks that wait; destroying it leaves them parked until they are cancelled.
// Threads:   the loop's own.
// Cost:      O(1). Allocates nothing while permits are there; a timer while tasks wait.
class TokenBucket {
  struct AcquireAwaiter;

 public:
  // Without a limit.
  TokenBucket() noexcept = default;
  // Begins full.
  explicit TokenBucket(double rate, double burst = 1) noexcept : level_(rate, burst) {}
  TokenBucket(const TokenBucket&) = delete;
  TokenBucket& operator=(const TokenBucket&) = delete;
  ~TokenBucket() { timer_.cancel(); }

  AcquireAwaiter acquire() noexcept;
  // Takes a permit that is there at `now`, the loop's time. False when there is none, or when tasks wait for it.
  bool try_take(TimePoint now) noexcept {
    if (!waiters_.empty() || !level_.ready(now)) return false;
    take(now);
    return true;
  }
  // When the next permit is there, for the longest waiter, at `now` or later; kNever at rate 0.
  TimePoint next_available(TimePoint now) const noexcept { return level_.next_available(now); }
  // Takes effect at once, for those who wait too. As TokenLevel::set.
  void set(double rate, double burst, TimePoint now);

 private:
  struct AcquireAwaiter : detail::Waiter {
    explicit AcquireAwaiter(TokenBucket& from) noexcept : bucket(from) {}
    bool await_ready() noexcept;
    void await_suspend(std::coroutine_handle<> self);
    void await_resume() const;
    TokenBucket& bucket;
    // Of the bucket, when it gave the permit.
    std::uint64_t times_full = 0;
    bool granted = false;
  };

  void take(TimePoint now) noexcept {
    if (level_.full(now)) ++times_full_;
    level_.take(now);
  }
  void take_for(AcquireAwaiter& waiter, TimePoint now) noexcept;
  // Until it runs on, the permit can be taken back.
  void hand_over(AcquireAwaiter& waiter) noexcept;
  void serve();
  void arm(EventLoop& loop);
  static void leave(detail::Waiter& waiter) noexcept;
  static void take_back(detail::Waiter& waiter);

  TokenLevel level_;
  // How often a permit was taken while it was full: what had been taken before then counts no longer.
  std::uint64_t times_full_ = 0;
  IntrusiveList<detail::Waiter> waiters_;
  // Those who have a permit and have not run on since.
  IntrusiveList<detail::Waiter> served_;
  // Runs while acquire() waits.
  Handle timer_;
};

inline TokenBucket::AcquireAwaiter TokenBucket::acquire() noexcept { return AcquireAwaiter{*this}; }

}  // namespace argiope
