// Waiting for time to pass.
#pragma once

#include <coroutine>

#include "argiope/async/event_loop.hpp"

namespace argiope {

// Suspends the task until `when` on the loop's clock; always yields at least once, as asyncio's sleep(0).
// Cancel: wakes at once with CancelledError.
class SleepUntil {
 public:
  explicit SleepUntil(TimePoint when) noexcept : when_(when) {}
  // Before it is awaited.
  SleepUntil(SleepUntil&& other) noexcept : when_(other.when_) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> self) {
    detail::TaskCore& task = *detail::this_thread.task;
    if (when_ <= detail::this_thread.loop->time()) {
      task.requeue(self);
      return;
    }
    task.check_cancelled();
    detail::this_thread.loop->arm(timer_, when_);
    task.park(self, timer_);
    timer_.on_cancel = [](detail::Waiter& waiter) {
      auto& timer = static_cast<Timer&>(waiter);
      timer.cut_short = true;
      timer.armed_on->disarm(timer);
      timer.target.task()->wake_cancelled(waiter);
    };
  }
  void await_resume() const {
    detail::this_thread.task->check_cancelled();
    if (timer_.cut_short) throw CancelledError();  // and the cancellation taken back since
  }

 private:
  struct Timer : detail::TimerNode {
    bool cut_short = false;
  };

  TimePoint when_;
  Timer timer_;
};

inline SleepUntil sleep_until(TimePoint when) noexcept { return SleepUntil{when}; }
// Call it on a running loop. A delay of zero or less is yield_now().
inline SleepUntil sleep(Duration delay) { return SleepUntil{saturating_add(EventLoop::current().time(), delay)}; }
template <detail::NoDuration T>
SleepUntil sleep(T) ARGIOPE_SAY_THE_UNIT;
// So that sleep(1u) is not the system's, which stops the thread.
SleepUntil sleep(unsigned) ARGIOPE_SAY_THE_UNIT;

}  // namespace argiope
