// EventLoop, with the futures and tasks that it runs; run() and Runner, which run it; sleep, timeouts and signals.
// EventLoop and Future are in files of their own below detail, because what else is here is built on them: a program
// includes this header.
#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "argiope/async/detail/awaitable.hpp"
#include "argiope/async/detail/event_loop.hpp"  // IWYU pragma: export
#include "argiope/async/detail/future.hpp"      // IWYU pragma: export

namespace argiope {

// run() and Runner: a loop with an orderly end, for main(). As asyncio.run().

namespace detail {

// For as long as it lives, SIGINT cancels `main`; a second one stops the loop, and a third has its default effect
// again. Does nothing where SIGINT is handled or ignored already, and on other threads than the main one: as in
// asyncio, one loop of a program with several is the one that Ctrl-C ends.
class InterruptGuard {
 public:
  InterruptGuard(EventLoop& loop, AnyTask main);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  int count() const noexcept { return state_->count; }

 private:
  struct State {
    AnyTask main;
    int count = 0;
  };
  EventLoop& loop_;
  std::shared_ptr<State> state_;
};

// If it is not caught, the process ends with status 130 and not by abort().
[[noreturn]] void throw_keyboard_interrupt();

}  // namespace detail

// Owns a loop, runs coroutines on it, and ends it in order.
//
//   Runner runner;
//   return runner.run(amain());
//
// Threads: one at a time; the loop's own while it runs.
class Runner {
 public:
  // In real time, with real I/O.
  // Errors: std::system_error when descriptors run out.
  Runner() : Runner(detail::make_real_backend()) {}
  // `backend` must outlive the runner.
  explicit Runner(IoBackend& backend, bool debug = false);
  // close(); what that throws goes to the loop's exception handler.
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Throws std::logic_error after close().
  EventLoop& loop();

  // Runs `main` as a task to its end; what it returned or threw. May be called again: the loop stays the same, and
  // tasks that are left go on.
  // Errors: KeyboardInterrupt when SIGINT came and `main` ended cancelled by it, or when a second SIGINT came before
  //         its end (uncaught, it ends the process with status 130): on the process's main thread, since others leave
  //         SIGINT alone. std::logic_error after close(), and from within a run, when `main` is dropped unrun; as
  //         EventLoop::run_until_complete.
  template <class T>
  T run(Coro<T> main, const std::source_location& where = std::source_location::current()) {
    // Else the coroutine that is refused would become a task.
    if (loop().is_running()) throw std::logic_error("this runner is running already");
    Task<T> task = loop_->create_task(std::move(main), "main", Start::next_turn, where);
    const detail::InterruptGuard interrupts(*loop_, task);
    try {
      return loop_->run_until_complete(static_cast<const Future<T>&>(task));
    } catch (const CancelledError&) {
      if (interrupts.count() > 0 && task.uncancel() == 0) detail::throw_keyboard_interrupt();
      throw;
    } catch (...) {
      if (interrupts.count() > 1 && !task.done()) detail::throw_keyboard_interrupt();
      throw;
    }
  }

  // The same for a function that returns the Coro; it is kept until that has ended.
  template <CoroFunction F>
  detail::FunctionValue<F> run(F main, const std::source_location& where = std::source_location::current()) {
    return run(detail::keeping(std::move(main)), where);
  }

  // Cancels the tasks that are left and waits until they have ended, shuts the default executor down, and ends the
  // loop. Exceptions of the tasks meanwhile go to the exception handler. May be called twice.
  void close();

 private:
  explicit Runner(std::unique_ptr<IoBackend> backend);

  // The runner's own, where it was given none.
  std::unique_ptr<IoBackend> backend_;
  std::optional<EventLoop> loop_;
};

namespace detail {

template <class T>
T run_and_close(std::optional<Runner>& runner, Coro<T> main, const std::source_location& where) {
  try {
    if constexpr (std::is_void_v<T>) {
      runner->run(std::move(main), where);
      runner->close();
    } else {
      T value = runner->run(std::move(main), where);
      runner->close();
      return value;
    }
  } catch (...) {
    // Here, because an exception that nobody catches may unwind no stack.
    runner.reset();
    throw;
  }
}

}  // namespace detail

// A Runner for one coroutine, in real time and with real I/O: as asyncio.run().
//
//   int main() { return run(amain()); }
//
// A function that returns the Coro, run([&]() -> Coro<int> { … }), is kept until that has ended.
//
// Gives:   what `main` returned.
// Errors:  what `main` threw, when the tasks it left have been cancelled and have ended; KeyboardInterrupt as
//          Runner::run: Ctrl-C cancels the `main` of the main thread, and then ends a program that does not catch it
//          with status 130.
// Threads: the calling one, until `main` has ended.
template <class T>
T run(Coro<T> main, const std::source_location& where = std::source_location::current()) {
  std::optional<Runner> runner(std::in_place);
  return detail::run_and_close(runner, std::move(main), where);
}
template <CoroFunction F>
detail::FunctionValue<F> run(F main, const std::source_location& where = std::source_location::current()) {
  return run(detail::keeping(std::move(main)), where);
}
template <class F>
requires(std::is_invocable_v<F&> && !CoroFunction<F>) void run(F)
    ARGIOPE_DELETED("run takes a Coro, or a function that returns one: run(amain()), run(amain)");
// The same on `backend`: a VirtualBackend for simulated time.
template <class T>
T run(IoBackend& backend, Coro<T> main, const std::source_location& where = std::source_location::current()) {
  std::optional<Runner> runner(std::in_place, backend);
  return detail::run_and_close(runner, std::move(main), where);
}
template <CoroFunction F>
detail::FunctionValue<F> run(IoBackend& backend, F main,
                             const std::source_location& where = std::source_location::current()) {
  return run(backend, detail::keeping(std::move(main)), where);
}

// Waiting for a signal. For a callback instead of a task see EventLoop::add_signal_handler.

// `co_await until_signal(SIGTERM)` suspends until the process gets that signal. It is handled from the first step on,
// and has its default effect again afterwards: a second SIGTERM ends a program that takes long to stop.
// Errors:  those of EventLoop::add_signal_handler.
// Cancel:  throws CancelledError; the signal has its default effect again.
// Threads: the loop's own; one wait for each signal, on one loop.
Coro<void> until_signal(int signal_number);

// Waiting for time to pass.

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

// Bounding the time something may take.

// A deadline on what runs inside it, as asyncio.timeout(): when it comes, the task is cancelled at its await point,
// and run() turns that cancellation, and only that one, into TimeoutError.
//
// Errors:   std::logic_error from a second run(), at once or later: a Timeout is for one. Nothing else changes by it.
// Lifetime: must outlive its run().
// Threads:  the loop's own. Not to be shared between tasks.
class Timeout {
 public:
  // kNever: no deadline (yet).
  explicit Timeout(TimePoint when) noexcept : when_(when) {}
  Timeout(const Timeout&) = delete;
  Timeout& operator=(const Timeout&) = delete;
  ~Timeout() { handle_.cancel(); }

  TimePoint when() const noexcept { return when_; }
  // True once the deadline has struck, whether or not what ran has ended.
  bool expired() const noexcept { return expired_; }
  // Moves the deadline; works before and during run(). Throws std::logic_error once it has struck, or run() has ended.
  void reschedule(TimePoint when);

  // Awaits `awaitable` in the calling task. To be called once.
  // Errors: TimeoutError when the deadline struck first; what `awaitable` throws.
  template <Awaitable A>
  Coro<AwaitValue<A>> run(A awaitable) {
    using T = AwaitValue<A>;
    enter();
    try {
      if constexpr (std::is_void_v<T>) {
        co_await detail::for_await(awaitable);
        leave();
      } else {
        T value = co_await detail::for_await(awaitable);
        leave();
        co_return value;
      }
    } catch (const CancelledError&) {
      if (leave()) throw TimeoutError();
      throw;
    } catch (...) {
      leave();
      throw;
    }
  }

 private:
  void enter();
  // Disarms; true when this deadline's own cancellation, and no other, is what ended the run.
  bool leave() noexcept;
  void arm();

  TimePoint when_;
  detail::TaskCore* task_ = nullptr;
  Handle handle_;
  int cancelling_before_ = 0;
  bool entered_ = false;
  bool expired_ = false;
};

// `co_await timeout(2s).run(coro)`: asyncio's names. timeout() counts from the call, on a running loop.
inline Timeout timeout_at(TimePoint when) noexcept { return Timeout{when}; }
inline Timeout timeout(Duration limit) { return Timeout{saturating_add(EventLoop::current().time(), limit)}; }
template <detail::NoDuration T>
Timeout timeout(T) ARGIOPE_SAY_THE_UNIT;

// Awaits `awaitable` for `limit` at most; then it is cancelled and TimeoutError thrown. A future or task is cancelled
// too: shield() it to have it go on.
// Nothing is lost at the deadline: an item or a permit that `awaitable` had been handed and had not run on with goes
// back, as after any cancellation; and one that ends in spite of its cancellation gives its result.
template <Awaitable A>
Coro<AwaitValue<A>> wait_for(A awaitable, Duration limit) {
  Timeout timeout(saturating_add(EventLoop::current().time(), limit));
  if constexpr (std::is_void_v<AwaitValue<A>>) {
    co_await timeout.run(std::move(awaitable));
  } else {
    co_return co_await timeout.run(std::move(awaitable));
  }
}
template <class A, detail::NoDuration T>
Coro<void> wait_for(A&&, T) ARGIOPE_SAY_THE_UNIT;

}  // namespace argiope
