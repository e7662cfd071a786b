// Ticker: has a function of its owner called soon after that was asked for, or when it is due; once, however often it
// was.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "argiope/async/event_loop.hpp"

namespace argiope {

// Threads:  the loop's.
// Lifetime: may be destroyed at any moment, in the middle of a tick too, and after its loop. No tick begins afterwards.
class Ticker {
 public:
  // An exception from `tick` goes to the loop's exception handler.
  Ticker(EventLoop& loop, std::function<void()> tick) : state_(std::make_shared<State>(loop, std::move(tick))) {}
  ~Ticker() {
    state_->stopped = true;
    if (EventLoop::is_alive(&state_->loop)) state_->timer.cancel();
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // When all that is ready now has run.
  void soon() { state_->soon(); }
  // At the earliest instant asked for since the last one was reached; kNever asks for none.
  void at(TimePoint when) {
    State& state = *state_;
    if (when >= state.at || state.stopped) return;
    state.timer.cancel();
    state.at = when;
    state.timer = state.loop.call_at(when, [weak = std::weak_ptr(state_)] {
      const auto reached = weak.lock();
      if (reached == nullptr) return;
      reached->at = kNever;
      reached->soon();
    });
  }
  // Takes back what at() has asked for.
  void forget_time() {
    state_->timer.cancel();
    state_->at = kNever;
  }
  // From here on there is no tick, whatever is asked for.
  void stop() {
    state_->stopped = true;
    forget_time();
  }

 private:
  struct State : std::enable_shared_from_this<State> {
    State(EventLoop& its_loop, std::function<void()> its_tick) : loop(its_loop), tick(std::move(its_tick)) {}
    void soon() {
      if (stopped || std::exchange(asked, true)) return;
      loop.call_soon([weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self == nullptr || !std::exchange(self->asked, false) || self->stopped) return;
        self->tick();
      });
    }

    EventLoop& loop;
    const std::function<void()> tick;
    Handle timer;
    TimePoint at = kNever;
    bool asked = false;
    bool stopped = false;
  };

  const std::shared_ptr<State> state_;
};

}  // namespace argiope
