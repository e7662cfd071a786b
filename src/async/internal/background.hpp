// Background: work that an owner starts and does not wait for, and whose end it can wait for.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "argiope/async/detail/future.hpp"
#include "argiope/async/sync.hpp"

namespace argiope {

// Threads:  the loop's.
// Lifetime: may be destroyed while work goes on. Work keeps what it is given as `owner` from its first step to its
// last.
class Background {
 public:
  // `name`: of its tasks, for debugging.
  Background(EventLoop& loop, std::string name) : loop_(loop), name_(std::move(name)) {}

  void run(std::shared_ptr<const void> owner, Coro<void> work, Start start = Start::next_turn) {
    ++state_->count;
    loop_.create_task(watched(state_, std::move(owner), std::move(work)), name_, start);
  }
  // Runs `work` to its end, even when the caller is cancelled. An exception of it reaches the caller, or the loop's
  // handler if nobody waits any more.
  template <class T>
  Coro<T> to_its_end(std::shared_ptr<const void> owner, Coro<T> work) {
    Future<T> answer = loop_.create_future<T>();
    run(std::move(owner), deliver(std::move(work), answer), Start::eagerly);
    co_return co_await std::move(answer);
  }
  // Until nothing is under way.
  Coro<void> quiet() {
    const std::shared_ptr<State> state = state_;
    while (state->count > 0) {
      state->quiet.clear();
      co_await state->quiet.wait();
    }
  }

 private:
  struct State {
    std::size_t count = 0;
    Event quiet{true};
  };

  // Parameters end last to first: the owner after what works on it.
  static Coro<void> watched(std::shared_ptr<State> state, [[maybe_unused]] std::shared_ptr<const void> owner,
                            Coro<void> work) {
    struct Count {
      State& state;
      ~Count() {
        if (--state.count == 0) state.quiet.set();
      }
    } const count{*state};
    co_await std::move(work);
  }
  template <class T>
  static Coro<void> deliver(Coro<T> work, Future<T> answer) {
    try {
      T result = co_await std::move(work);
      if (!answer.done()) answer.set_result(std::move(result));
    } catch (const CancelledError&) {
      answer.cancel();
      throw;
    } catch (...) {
      if (answer.done()) throw;
      answer.set_exception(std::current_exception());
    }
  }

  EventLoop& loop_;
  const std::string name_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace argiope
