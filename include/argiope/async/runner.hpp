// run() and Runner: a loop with an orderly end, for main(). As asyncio.run().
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "argiope/async/event_loop.hpp"

namespace argiope {
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

}  // namespace argiope
