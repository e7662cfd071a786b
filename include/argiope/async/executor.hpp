// Threads for work that would block a loop: ThreadPoolExecutor and run_in_executor.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/detail/ring_buffer.hpp"

namespace argiope {

// A fixed number of threads that run functions in the order submitted.
//
// Lifetime: declare it after the loop it serves; its destructor finishes what was submitted and joins, and what it
//           still owes the loop must find the loop alive.
// Errors:   the constructor throws std::system_error when the system gives no thread.
// Threads:  submit() from any thread.
class ThreadPoolExecutor {
 public:
  explicit ThreadPoolExecutor(std::size_t threads);
  ~ThreadPoolExecutor();

  // Throws std::logic_error after shutdown(). An exception out of `function` ends the process: catch inside.
  void submit(std::move_only_function<void()> function);
  // Takes no more work, finishes what was submitted, joins. May be called twice.
  void shutdown();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable filled_;
  RingBuffer<std::move_only_function<void()>> functions_;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

namespace detail {

// One function on its way to a thread and its result on the way back. The future belongs to the loop's thread
// and is not touched by the other.
template <class F, class R>
struct Errand {
  EventLoop& loop;
  Future<R> future;
  F function;
  Slot<R> result{};
  std::exception_ptr exception{};

  void run() noexcept {
    try {
      if constexpr (std::is_void_v<R>) {
        function();
      } else {
        result.value.emplace(function());
      }
    } catch (...) {
      exception = std::current_exception();
    }
  }
  void deliver() {
    loop.end_outside_work();
    if (future.done()) return;  // cancelled meanwhile: the result has no taker
    if (exception) {
      future.set_exception(std::move(exception));
    } else if constexpr (std::is_void_v<R>) {
      future.set_result();
    } else {
      future.set_result(std::move(*result.value));
    }
  }
};

}  // namespace detail

// Runs `function` on one of the executor's threads; the future has its result or exception.
// Cancel: cancels the future; the function itself runs to its end, and its result is dropped.
template <class F, class R = std::invoke_result_t<F>>
Future<R> run_in_executor(ThreadPoolExecutor& executor, F function) {
  EventLoop& loop = EventLoop::current();
  Future<R> future = loop.create_future<R>();
  using Errand = detail::Errand<F, R>;
  auto errand = std::make_unique<Errand>(loop, future, std::move(function));
  loop.begin_outside_work();
  try {
    executor.submit([errand = std::move(errand)]() mutable {
      errand->run();
      EventLoop& home = errand->loop;
      home.call_soon_threadsafe([back = std::move(errand)] { back->deliver(); });
    });
  } catch (...) {
    loop.end_outside_work();
    throw;
  }
  return future;
}

// Runs `function` on a thread of the running loop's default executor; otherwise as run_in_executor.
// Errors: std::logic_error after shutdown_default_executor().
template <class F, class R = std::invoke_result_t<F>>
Future<R> to_thread(F function) {
  return run_in_executor(EventLoop::current().default_executor(), std::move(function));
}

}  // namespace argiope
