// run_coroutine_threadsafe: other threads' way to run a coroutine on a loop and wait for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <source_location>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "argiope/async/event_loop.hpp"

namespace argiope {
namespace detail {

template <class T>
struct ThreadsafeState {
  explicit ThreadsafeState(EventLoop& on) noexcept : loop(on) {}
  EventLoop& loop;
  // The task while there is one to cancel; the loop's thread alone looks at it.
  FutureCore* task = nullptr;

  std::mutex mutex;
  std::condition_variable changed;
  // These belong to the mutex.
  bool done = false;
  Slot<T> result;
  std::exception_ptr exception;
};

// The duty to tell the waiting thread what became of its coroutine, passed from callback to callback. Dropped with the
// loop, it says so: no thread waits for ever.
template <class T>
class ThreadsafeDelivery {
 public:
  explicit ThreadsafeDelivery(std::shared_ptr<ThreadsafeState<T>> state) noexcept : state_(std::move(state)) {}
  ThreadsafeDelivery(ThreadsafeDelivery&&) noexcept = default;
  ~ThreadsafeDelivery() {
    if (state_ == nullptr) return;
    finish([](ThreadsafeState<T>& state) {
      state.exception = std::make_exception_ptr(CancelledError("the event loop ended"));
    });
  }

  void start(Coro<T> coro, const std::source_location& where) {
    try {
      Task<T> task = state_->loop.create_task(std::move(coro), {}, Start::next_turn, where);
      FutureCore& core = *task.core();
      state_->task = &core;
      // Not held by a handle, or the loop's end could not free it.
      task.add_done_callback([&core, delivery = std::move(*this)]() mutable { delivery.deliver(core); });
    } catch (...) {
      if (state_ == nullptr) return;  // moved into the callback that could not be added, and told there
      finish([](ThreadsafeState<T>& state) { state.exception = std::current_exception(); });
    }
  }

 private:
  void deliver(FutureCore& core) {
    finish([&](ThreadsafeState<T>& state) {
      try {
        core.rethrow_unless_ready();
        if constexpr (!std::is_void_v<T>) {
          state.result.value.emplace(std::move(*slot_of<T>(core).value));
        }
      } catch (...) {
        state.exception = std::current_exception();
      }
    });
  }
  template <class Set>
  void finish(Set set) {
    const auto state = std::exchange(state_, nullptr);
    state->task = nullptr;
    std::lock_guard lock(state->mutex);
    set(*state);
    state->done = true;
    state->changed.notify_all();
  }

  std::shared_ptr<ThreadsafeState<T>> state_;
};

}  // namespace detail

// The result of a coroutine that runs on another thread's loop. Copies share it.
// Threads: any.
template <class T>
class ThreadsafeFuture {
 public:
  explicit ThreadsafeFuture(std::shared_ptr<detail::ThreadsafeState<T>> state) noexcept : state_(std::move(state)) {}

  bool done() const {
    std::lock_guard lock(state_->mutex);
    return state_->done;
  }
  // Asks the loop to cancel the task; get() still waits until that has ended. False when it was done already.
  bool cancel(std::string message = {}) {
    // Under the lock, so that the loop is there: its end has to tell this state first.
    std::lock_guard lock(state_->mutex);
    if (state_->done) return false;
    state_->loop.call_soon_threadsafe([state = state_, message = std::move(message)] {
      if (state->task != nullptr) state->task->cancel(message);
    });
    return true;
  }
  // Blocks the calling thread until it is done; then what the coroutine returned, moved out, or threw. To be called
  // once.
  // Errors: CancelledError when it was cancelled, or its loop ended before; std::logic_error on the loop's own thread,
  //         which would wait for itself.
  T get() {
    std::unique_lock lock(state_->mutex);
    require_other_thread();
    state_->changed.wait(lock, [&] { return state_->done; });
    return take();
  }
  // As get(), for `limit` of real time at most; TimeoutError then, and the coroutine goes on.
  T get(Duration limit) {
    std::unique_lock lock(state_->mutex);
    require_other_thread();
    if (!state_->changed.wait_for(lock, limit, [&] { return state_->done; })) throw TimeoutError();
    return take();
  }
  template <detail::NoDuration N>
  T get(N) ARGIOPE_SAY_THE_UNIT;

 private:
  void require_other_thread() const {
    if (!state_->done && detail::this_thread.loop == &state_->loop) {
      throw std::logic_error("get() on the thread of the loop that has to run it");
    }
  }
  T take() {
    if (state_->exception != nullptr) std::rethrow_exception(state_->exception);
    if constexpr (!std::is_void_v<T>) return std::move(*state_->result.value);
  }

  std::shared_ptr<detail::ThreadsafeState<T>> state_;
};

// Runs `coro` as a task of `loop`, from any thread.
// Lifetime: the loop must be alive at the call; afterwards it may end at any time.
template <class T>
ThreadsafeFuture<T> run_coroutine_threadsafe(Coro<T> coro, EventLoop& loop,
                                             const std::source_location& where = std::source_location::current()) {
  if (!coro) throw std::invalid_argument("run_coroutine_threadsafe of an empty coroutine");
  auto state = std::make_shared<detail::ThreadsafeState<T>>(loop);
  loop.call_soon_threadsafe([delivery = detail::ThreadsafeDelivery<T>(state), coro = std::move(coro), where]() mutable {
    delivery.start(std::move(coro), where);
  });
  return ThreadsafeFuture<T>{std::move(state)};
}
// The same for a function that returns the Coro. The loop's thread calls it, and destroys it when its coroutine has
// ended.
template <CoroFunction F>
ThreadsafeFuture<detail::FunctionValue<F>> run_coroutine_threadsafe(
    F function, EventLoop& loop, const std::source_location& where = std::source_location::current()) {
  return run_coroutine_threadsafe(detail::keeping(std::move(function)), loop, where);
}

}  // namespace argiope
