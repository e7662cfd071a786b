// Running several coroutines at once: gather and TaskGroup, with asyncio's rules.
#pragma once

#include <concepts>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "argiope/async/awaitable.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"

namespace argiope {

// What a TaskGroup throws: every exception of its tasks and body, in the order they happened.
class ExceptionGroup : public std::runtime_error {
 public:
  explicit ExceptionGroup(std::vector<std::exception_ptr> exceptions);
  const std::vector<std::exception_ptr>& exceptions() const noexcept { return exceptions_; }

 private:
  std::vector<std::exception_ptr> exceptions_;
};

// What became of one of several: its value, or what it threw (CancelledError too).
template <class T>
using GatherOutcome = std::expected<T, std::exception_ptr>;

// Tag of a gather that gives outcomes instead of throwing.
struct ReturnExceptions {};
inline constexpr ReturnExceptions return_exceptions{};

namespace detail {

// Suspends until all futures are done, or one has failed and `throwing`; then throws what that one did. When the
// calling task is cancelled, cancels them all, waits until each has ended, and throws CancelledError.
Coro<void> gather_wait(std::vector<FutureCore*> futures, bool throwing);

// A future of the caller's stays apart from the tasks that gather makes.
template <class T>
Future<T> gathered(Future<T> future) {
  return future;
}
template <Awaitable A>
requires(!IsFuture<A>) auto gathered(A awaitable) { return ensure_future(std::move(awaitable)); }

template <Awaitable A>
auto gathered_all(std::vector<A> awaitables) {
  std::vector<decltype(gathered(std::declval<A>()))> futures;
  futures.reserve(awaitables.size());
  for (A& awaitable : awaitables) futures.push_back(gathered(std::move(awaitable)));
  return futures;
}

// The value of a task that gather made is moved out of it; a future of the caller's keeps its own where it can.
template <class T>
T gathered_value(Task<T>& task) {
  if constexpr (std::is_void_v<T>) {
    task.result();
  } else {
    return std::move(const_cast<T&>(task.result()));
  }
}
template <class T>
T gathered_value(Future<T>& future) {
  if constexpr (kKeepsItsValue<T>) {
    return future.result();
  } else {
    return std::move(const_cast<T&>(future.result()));
  }
}

template <class F>
GatherOutcome<typename F::value_type> gathered_outcome(F& future) {
  try {
    if constexpr (std::is_void_v<typename F::value_type>) {
      future.result();
      return {};
    } else {
      return gathered_value(future);
    }
  } catch (...) {
    return std::unexpected(std::current_exception());
  }
}

template <class T>
using MonostateIfVoid = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
template <class T>
using GatheredVector = std::conditional_t<std::is_void_v<T>, void, std::vector<MonostateIfVoid<T>>>;

}  // namespace detail

// Awaits all of them at once: coroutines, and awaitables such as queue.join(), as tasks that start when the gather is
// awaited. Gives their values in the order given (nothing where awaiting gives nothing). The value of a Future or Task is
// copied, or moved out of it when it cannot be copied.
// Errors: the first exception any of them throws, at once; the others run on, and what they throw later is dropped. A
//         cancelled one throws CancelledError. std::logic_error for a future of another loop.
// Cancel: cancels them all, and throws CancelledError when all have ended.
template <Awaitable A>
Coro<detail::GatheredVector<AwaitValue<A>>> gather(std::vector<A> awaitables) {
  auto futures = detail::gathered_all(std::move(awaitables));
  co_await detail::gather_wait(detail::cores_of(futures), true);
  if constexpr (!std::is_void_v<AwaitValue<A>>) {
    std::vector<AwaitValue<A>> values;
    values.reserve(futures.size());
    for (auto& future : futures) values.push_back(detail::gathered_value(future));
    co_return values;
  }
}

// The same for different types; where awaiting gives nothing, the value is std::monostate.
template <Awaitable... As>
Coro<std::tuple<detail::MonostateIfVoid<AwaitValue<As>>...>> gather(As... awaitables) {
  std::tuple futures{detail::gathered(std::move(awaitables))...};
  co_await detail::gather_wait(
      std::apply([](auto&... future) { return std::vector<detail::FutureCore*>{future.core()...}; }, futures), true);
  co_return std::apply(
      [](auto&... future) {
        auto value_of = []<class F>(F& one) -> detail::MonostateIfVoid<typename F::value_type> {
          if constexpr (std::is_void_v<typename F::value_type>) {
            one.result();
            return {};
          } else {
            return detail::gathered_value(one);
          }
        };
        return std::tuple<detail::MonostateIfVoid<AwaitValue<As>>...>{value_of(future)...};
      },
      futures);
}

// As gather, but waits for all whatever they throw, and gives the outcome of each:
// `co_await gather(return_exceptions, std::move(coros))`.
// Errors: none of theirs.
// Cancel: as gather.
template <Awaitable A>
Coro<std::vector<GatherOutcome<AwaitValue<A>>>> gather(ReturnExceptions, std::vector<A> awaitables) {
  auto futures = detail::gathered_all(std::move(awaitables));
  co_await detail::gather_wait(detail::cores_of(futures), false);
  std::vector<GatherOutcome<AwaitValue<A>>> outcomes;
  outcomes.reserve(futures.size());
  for (auto& future : futures) outcomes.push_back(detail::gathered_outcome(future));
  co_return outcomes;
}

template <Awaitable... As>
Coro<std::tuple<GatherOutcome<AwaitValue<As>>...>> gather(ReturnExceptions, As... awaitables) {
  std::tuple futures{detail::gathered(std::move(awaitables))...};
  co_await detail::gather_wait(
      std::apply([](auto&... future) { return std::vector<detail::FutureCore*>{future.core()...}; }, futures), false);
  co_return std::apply(
      [](auto&... future) { return std::tuple<GatherOutcome<AwaitValue<As>>...>{detail::gathered_outcome(future)...}; },
      futures);
}

// A scope that does not end before every task started in it has.
//
//   co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
//     group.create_task(first());
//     group.create_task(second());
//     co_return;
//   });
//
// Errors: when a task or the body throws anything but CancelledError, the others are cancelled, and run() throws an
//         ExceptionGroup after all have ended. A task that ends cancelled is no failure.
// Cancel: cancels the tasks, waits for them, and throws CancelledError; or the ExceptionGroup, when something failed
//         meanwhile, and CancelledError at the caller's next await.
// Lifetime: the body's own variables go when it ends, which a cancellation makes it do before the tasks: what they use
//         stands outside the body. The body object with its captures stays until all have ended.
// Threads: the loop's own.
class TaskGroup {
 public:
  using Body = std::function<Coro<void>(TaskGroup&)>;
  // Suspends until the body and all tasks have ended.
  static Coro<void> run(Body body);
  // The same for a body that awaits nothing: an ordinary function.
  template <class F>
  requires std::is_void_v<std::invoke_result_t<F&, TaskGroup&>>
  static Coro<void> run(F body) {
    TaskGroup group;
    Body coroutine = [&body](TaskGroup& self) -> Coro<void> {
      body(self);
      co_return;
    };
    co_await group.run_body(coroutine);
  }
  template <class F>
  requires(!std::is_constructible_v<Body, F> &&
           !requires(F & f, TaskGroup& group) {
             { f(group) } -> std::same_as<void>;
           }) static Coro<void> run(F body)
      ARGIOPE_DELETED(
          "the body of a TaskGroup is a function that takes a TaskGroup& and returns Coro<void> or nothing");

  // Starts a task in the group. Throws std::logic_error when the group is being cancelled or has ended.
  template <class T>
  Task<T> create_task(Coro<T> coro, std::string_view name = {}, Start start = Start::next_turn,
                      const std::source_location& where = std::source_location::current()) {
    require_open();
    Task<T> task = EventLoop::current().create_task(std::move(coro), name, start, where);
    watch(*task.core());
    return task;
  }
  // The same for anything else that can be awaited: a task that awaits it.
  template <Awaitable A>
  requires(!detail::IsCoro<A>) Task<AwaitValue<A>> create_task(
      A awaitable, std::string_view name = {}, Start start = Start::next_turn,
      const std::source_location& where = std::source_location::current()) {
    return create_task(detail::await_it(std::move(awaitable)), name, start, where);
  }
  template <class A, class... Options>
  requires(!Awaitable<A>) void create_task(A, Options...) ARGIOPE_DELETED(
      "create_task takes what can be awaited: a Coro (call the function that returns it), a Task, a "
      "Future, or an awaitable such as queue.join()");

  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

 private:
  struct Member : ListHook {
    detail::FutureCore* future = nullptr;
  };

  TaskGroup() = default;
  Coro<void> run_body(Body& body);
  void require_open() const;
  void watch(detail::FutureCore& future);
  void on_done(Member& member);
  void abort() noexcept;

  detail::TaskCore* parent_ = nullptr;
  IntrusiveList<Member> members_;
  Event idle_;
  std::vector<std::exception_ptr> exceptions_;
  bool body_ended_ = false;
  bool aborting_ = false;
  bool cancelled_parent_ = false;
};

}  // namespace argiope
