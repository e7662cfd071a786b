#include "argiope/jobs/token_bucket.hpp"

#include "argiope/async/sync.hpp"

namespace argiope {

bool TokenBucket::AcquireAwaiter::await_ready() noexcept {
  const TimePoint now = detail::this_thread.loop->time();
  if (!bucket.waiters_.empty() || !bucket.level_.ready(now) || !detail::may_go_on()) return false;
  bucket.take(now);
  return granted = true;
}

void TokenBucket::AcquireAwaiter::await_suspend(std::coroutine_handle<> self) {
  detail::TaskCore& task = *detail::this_thread.task;
  EventLoop& loop = *detail::this_thread.loop;
  const TimePoint now = loop.time();
  if (bucket.waiters_.empty() && bucket.level_.ready(now)) {
    // Its budget is spent: others run first, but the permit is its own already.
    task.park(self, *this);
    bucket.take_for(*this, now);
    return;
  }
  task.check_cancelled();
  if (bucket.waiters_.empty()) bucket.arm(loop);
  on_cancel = leave;
  task.park(self, *this);
  bucket.waiters_.push_back(*this);
}

void TokenBucket::AcquireAwaiter::await_resume() const {
  if (!granted) detail::throw_cancelled_wait();
}

void TokenBucket::set(double rate, double burst, TimePoint now) {
  level_.set(rate, burst, now);
  serve();
}

void TokenBucket::take_for(AcquireAwaiter& waiter, TimePoint now) noexcept {
  take(now);
  waiter.times_full = times_full_;
  hand_over(waiter);
}

void TokenBucket::hand_over(AcquireAwaiter& waiter) noexcept {
  waiter.granted = true;
  waiter.unlink();
  served_.push_back(waiter);
  waiter.on_cancel = take_back;
  detail::wake_served(waiter);
}

void TokenBucket::serve() {
  if (waiters_.empty()) return timer_.cancel();
  EventLoop& loop = waiters_.front().target.task()->loop();
  const TimePoint now = loop.time();
  while (!waiters_.empty() && level_.ready(now)) take_for(static_cast<AcquireAwaiter&>(waiters_.front()), now);
  if (!waiters_.empty()) {
    arm(loop);
  } else {
    timer_.cancel();
  }
}

void TokenBucket::arm(EventLoop& loop) {
  timer_.cancel();
  const TimePoint when = level_.next_available(loop.time());
  if (when != kNever) timer_ = loop.call_at(when, [this] { serve(); });
}

void TokenBucket::leave(detail::Waiter& cancelled) noexcept {
  auto& waiter = static_cast<AcquireAwaiter&>(cancelled);
  detail::TaskCore& task = *waiter.target.task();
  // Else the bucket has gone.
  if (waiter.linked()) {
    waiter.unlink();
    if (waiter.bucket.waiters_.empty()) waiter.bucket.timer_.cancel();
  }
  task.wake_cancelled(waiter);
}

void TokenBucket::take_back(detail::Waiter& cancelled) {
  auto& waiter = static_cast<AcquireAwaiter&>(cancelled);
  detail::TaskCore& task = *waiter.target.task();
  // Else the bucket has gone, and nobody can take the permit.
  if (!waiter.linked()) return task.cancel_late();
  waiter.unlink();
  waiter.granted = false;
  task.cancel_served();
  TokenBucket& bucket = waiter.bucket;
  if (waiter.times_full == bucket.times_full_) bucket.level_.undo_take();
  bucket.serve();
}

}  // namespace argiope
