// Several coroutines at once: gather and TaskGroup, with asyncio's rules, and first_of, which keeps one of them; and
// wait, as_completed and shield, which wait for futures in other ways.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "argiope/async/detail/awaitable.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/sync.hpp"

namespace argiope {

// The exception of a TaskGroup: every exception of its tasks and body, in the order they happened.
class ExceptionGroup : public std::runtime_error {
 public:
  explicit ExceptionGroup(std::vector<std::exception_ptr> exceptions);
  const std::vector<std::exception_ptr>& exceptions() const noexcept { return exceptions_; }

 private:
  std::vector<std::exception_ptr> exceptions_;
};

// The outcome of one of several: its value, or what it threw (CancelledError too).
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

template <class T>
using MonostateIfVoid = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class F>
MonostateIfVoid<typename F::value_type> gathered_value_or_monostate(F& future) {
  if constexpr (std::is_void_v<typename F::value_type>) {
    future.result();
    return {};
  } else {
    return gathered_value(future);
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
using GatheredVector = std::conditional_t<std::is_void_v<T>, void, std::vector<MonostateIfVoid<T>>>;

}  // namespace detail

// Awaits all of them at once: coroutines, and awaitables such as queue.join(), as tasks that start when the gather is
// awaited. Gives their values in the order given (nothing where awaiting gives nothing). The value of a Future or Task
// is copied, or moved out of it when it cannot be copied.
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
        return std::tuple<detail::MonostateIfVoid<AwaitValue<As>>...>{detail::gathered_value_or_monostate(future)...};
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

namespace detail {

// The branches of one first_of, which are tasks. They share it with the one that awaits them.
class Race {
 public:
  template <class T>
  Task<T> start(Coro<T> branch) {
    Task<T> task = EventLoop::current().create_task(std::move(branch));
    branches_.push_back(task);
    return task;
  }
  // A branch says so as its last act, before any other task runs: so the others are cancelled before they can take what
  // they have been handed. `cancelled`: it ends by CancelledError.
  void ended(std::size_t branch, bool cancelled);
  // Suspends until all have ended. Gives the first that did; CancelledError when the caller was cancelled before that.
  Coro<std::size_t> winner();

 private:
  void cancel_branches();

  std::vector<AnyTask> branches_;
  std::optional<std::size_t> winner_;
  // Cancelled from outside, before any had ended.
  bool stopped_ = false;
};

// The awaitable of a branch.
template <class A>
struct Contestant {
  A awaitable;
  explicit Contestant(A given) : awaitable(std::move(given)) {
    if constexpr (IsCoro<A>) {
      if (!awaitable) throw std::invalid_argument("first_of an empty coroutine");
    }
  }
};

template <Awaitable A>
Coro<AwaitValue<A>> compete(std::shared_ptr<Race> race, std::size_t branch, Contestant<A> contestant) {
  try {
    if constexpr (std::is_void_v<AwaitValue<A>>) {
      co_await for_await(contestant.awaitable);
      race->ended(branch, false);
    } else {
      AwaitValue<A> value = co_await for_await(contestant.awaitable);
      race->ended(branch, false);
      co_return value;
    }
  } catch (const CancelledError&) {
    race->ended(branch, true);
    throw;
  } catch (...) {
    race->ended(branch, false);
    throw;
  }
}

// Moves the value of one of the tasks out of it.
template <class... Ts>
std::variant<MonostateIfVoid<Ts>...> value_at(std::size_t index, std::tuple<Task<Ts>...>& tasks) {
  std::optional<std::variant<MonostateIfVoid<Ts>...>> value;
  const auto take = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
    if (I == index) value.emplace(std::in_place_index<I>, gathered_value_or_monostate(std::get<I>(tasks)));
  };
  const auto take_it = [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    (take(std::integral_constant<std::size_t, Is>{}), ...);
  };
  take_it(std::index_sequence_for<Ts...>{});
  return std::move(*value);
}

}  // namespace detail

// Awaits several at once and keeps the first that ends; the others are cancelled and have ended, too, when it returns.
// They are tasks that start, in the order given, when first_of is awaited: coroutines, and awaitables such as
// queue.get().
//
//   auto first = co_await first_of(orders.get(), stop.wait());
//   if (Order* order = std::get_if<0>(&first)) …
//
// Gives:    the value of the first, at its place in the variant (index()); std::monostate where awaiting gives nothing.
//           The value of a Future or Task is copied, or moved out of it when it cannot be copied.
// Errors:   what the first throws; CancelledError when that was cancelled by others. An exception of another meanwhile
//           goes to the loop's exception handler. std::logic_error for a future of another loop; std::invalid_argument,
//           before any starts, for an empty Coro.
// Cancel:   cancels them all, and throws CancelledError when all have ended. Where one had ended before, or ends in
//           spite of it, its outcome is given, and the caller's next await throws.
// Order:    of those that could end in one turn the first to run wins. The others take nothing: an item, a permit or
//           the lock that they had been handed goes back. Only the value of one that ends in spite of its cancellation
//           (a put() that was let in, a coroutine that catches CancelledError) is dropped.
// Lifetime: a Future or Task that loses is cancelled: shield() it to have it go on.
// Threads:  the loop's own.
template <Awaitable... As>
requires(sizeof...(As) > 0) Coro<std::variant<detail::MonostateIfVoid<AwaitValue<As>>...>> first_of(As... awaitables) {
  const auto race = std::make_shared<detail::Race>();
  std::tuple contestants{detail::Contestant<As>(std::move(awaitables))...};
  const auto start_all = [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    return std::tuple<Task<AwaitValue<As>>...>{
        race->start(detail::compete(race, Is, std::move(std::get<Is>(contestants))))...};
  };
  auto tasks = start_all(std::index_sequence_for<As...>{});
  co_return detail::value_at(co_await race->winner(), tasks);
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
  // The same for a function that returns a Coro, which the task keeps.
  template <CoroFunction F>
  requires(!Awaitable<F>) Task<detail::FunctionValue<F>> create_task(
      F function, std::string_view name = {}, Start start = Start::next_turn,
      const std::source_location& where = std::source_location::current()) {
    return create_task(detail::keeping(std::move(function)), name, start, where);
  }
  template <class A, class... Options>
  requires(!Awaitable<A> && !CoroFunction<A>) void create_task(A, Options...) ARGIOPE_DELETED(
      "create_task takes what can be awaited (a Coro, a Task, a Future, or an awaitable such as queue.join()), or a "
      "function without parameters that returns a Coro: create_task(work(1)), create_task(std::bind_front(work, 1))");

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

// Waiting for several futures in other ways than gather does: wait, as_completed, shield.

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
