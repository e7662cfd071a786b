// Waiting for several futures in other ways than gather does: wait, as_completed, shield.
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "argiope/async/detail/awaitable.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/queue.hpp"

namespace argiope {

// When wait() has waited enough. first_exception: when one has failed, else when all are done; one that was cancelled
// has not failed.
enum class When { all_completed, first_completed, first_exception };

// The result of wait(): every future it was given, in the order given, in one of the two.
template <class F>
struct Waited {
  std::vector<F> done;
  std::vector<F> pending;
};

namespace detail {

// Suspends until `when` holds for the futures, or `deadline` has come. Does not look at their results.
Coro<void> wait_until(std::vector<FutureCore*> futures, When when, TimePoint deadline);

}  // namespace detail

// Waits for futures or tasks (F: Future<T>, Task<T> or AnyTask) without taking their results; their exceptions are
// thrown when they are asked.
//
// Units:    `timeout` is a duration of the loop's clock; without one there is no limit. When it has passed, wait()
//           returns what is done: nothing is thrown, and nothing is cancelled.
// Errors:   std::invalid_argument when `futures` is empty; std::logic_error when one belongs to another loop.
// Suspends: unless enough of them are done already.
// Cancel:   throws CancelledError at once; the futures are left alone.
// Threads:  the loop's own.
template <detail::UnderWay F>
Coro<Waited<F>> wait(std::vector<F> futures, When when = When::all_completed,
                     std::optional<Duration> timeout = std::nullopt) {
  const TimePoint deadline = timeout ? saturating_add(EventLoop::current().time(), *timeout) : kNever;
  co_await detail::wait_until(detail::cores_of(futures), when, deadline);
  Waited<F> result;
  for (F& future : futures) (future.done() ? result.done : result.pending).push_back(std::move(future));
  co_return result;
}
// The same for anything else that can be awaited, which is made tasks when wait() is awaited.
template <Awaitable A>
requires(!detail::UnderWay<A>) Coro<Waited<Task<AwaitValue<A>>>> wait(std::vector<A> awaitables,
                                                                      When when = When::all_completed,
                                                                      std::optional<Duration> timeout = std::nullopt) {
  co_return co_await wait(detail::ensure_futures(std::move(awaitables)), when, timeout);
}
template <class A, class T>
requires(!std::is_convertible_v<T, std::optional<Duration>>) Coro<Waited<A>> wait(std::vector<A>, When, T)
ARGIOPE_SAY_THE_UNIT;

namespace detail {

template <class A>
AnyTask any_task(A awaitable) {
  if constexpr (std::is_constructible_v<AnyTask, A>) {
    return awaitable;
  } else if constexpr (IsFuture<A>) {
    return EventLoop::current().create_task(await_it(std::move(awaitable)));
  } else {
    return ensure_future(std::move(awaitable));
  }
}

}  // namespace detail

// The same for some of different types: `co_await wait(When::first_completed, queue.join(), failed.wait(), task)`.
template <Awaitable... As>
requires(sizeof...(As) > 0) Coro<Waited<AnyTask>> wait(When when, As... awaitables) {
  std::vector<AnyTask> tasks;
  (tasks.push_back(detail::any_task(std::move(awaitables))), ...);
  co_return co_await wait(std::move(tasks), when);
}

// The futures given to as_completed, one after another as they end.
//
//   auto completed = as_completed(std::move(tasks));
//   while (completed.remaining() > 0) use((co_await completed.next()).result());
//
// Order:    in which they end; those of one turn in the order given.
// Lifetime: may go before all have ended; the futures are then left alone.
// Threads:  the loop's own; several tasks may await next() at once and are served first come, first served.
template <class F>
class AsCompleted {
 public:
  AsCompleted(std::vector<F> futures, TimePoint deadline) : futures_(std::move(futures)) {
    handles_.reserve(futures_.size() + 1);
    for (std::size_t i = 0; i < futures_.size(); ++i) {
      handles_.push_back(futures_[i].add_done_callback([this, i] { ended_.put_nowait(i); }));
    }
    if (deadline != kNever) handles_.push_back(EventLoop::current().call_at(deadline, [this] { strike_soon(); }));
  }
  AsCompleted(const AsCompleted&) = delete;
  AsCompleted& operator=(const AsCompleted&) = delete;
  ~AsCompleted() { forget(); }

  // How many have not been given by next() yet.
  std::size_t remaining() const noexcept { return futures_.size() - given_; }

  // Suspends until one has ended that was not given before.
  // Errors: TimeoutError once the deadline has come and what had ended before has been given; std::logic_error when
  //         remaining() is 0. The future throws its own exception when it is asked.
  // Cancel: throws CancelledError; no future is lost.
  Coro<F> next() {
    if (remaining() == 0) throw std::logic_error("as_completed: every future was given already");
    std::size_t index = 0;
    try {
      index = co_await ended_.get();
    } catch (const QueueShutDown&) {
      throw TimeoutError();
    }
    if (++given_ == futures_.size()) forget();
    co_return std::move(futures_[index]);
  }

 private:
  // Behind the callbacks of what has ended by now: those are ready and have not run yet.
  void strike_soon() {
    handles_.back() = EventLoop::current().call_soon([this] { strike(); });
  }
  void strike() {
    forget();
    ended_.shutdown();
  }
  void forget() noexcept {
    for (Handle& handle : handles_) handle.cancel();
    handles_.clear();
  }

  std::vector<F> futures_;
  std::vector<Handle> handles_;
  std::size_t given_ = 0;
  Queue<std::size_t> ended_;
};

// Call it on a running loop. `timeout` counts from the call.
template <detail::UnderWay F>
AsCompleted<F> as_completed(std::vector<F> futures, std::optional<Duration> timeout = std::nullopt) {
  return {std::move(futures), timeout ? saturating_add(EventLoop::current().time(), *timeout) : kNever};
}
// The same for coroutines and anything else that can be awaited, which is made tasks at once.
template <Awaitable A>
requires(!detail::UnderWay<A>) AsCompleted<Task<AwaitValue<A>>> as_completed(
    std::vector<A> awaitables, std::optional<Duration> timeout = std::nullopt) {
  return as_completed(detail::ensure_futures(std::move(awaitables)), timeout);
}
template <class A, class T>
requires(!std::is_convertible_v<T, std::optional<Duration>>) AsCompleted<A> as_completed(std::vector<A>, T)
ARGIOPE_SAY_THE_UNIT;

// Awaits `future` without passing a cancellation on to it.
//
// Gives:    a copy of its value; a value that cannot be copied is moved out of it.
// Errors:   what the future throws; CancelledError also when the future itself was cancelled.
// Cancel:   throws CancelledError at once, and the future goes on. An exception that it throws later goes, if nothing
//           else asks for it, to the loop's exception handler.
// Threads:  the loop's own.
template <class T>
Coro<T> shield(Future<T> future) {
  if (!future.done()) co_await detail::wait_until({future.core()}, When::all_completed, kNever);
  if constexpr (detail::kKeepsItsValue<T>) {
    co_return future.result();
  } else {
    co_return co_await std::move(future);
  }
}
// Makes anything else that can be awaited a task at once, which nobody cancels but the loop's end. Call it on a running
// loop.
template <Awaitable A>
requires(!detail::IsFuture<A>) Coro<AwaitValue<A>> shield(A awaitable) {
  return shield(static_cast<Future<AwaitValue<A>>&&>(ensure_future(std::move(awaitable))));
}

}  // namespace argiope
