// Things that can be awaited, and ensure_future, which makes a task of it.
//
// gather, first_of, wait, wait_for, shield and TaskGroup::create_task take any of it: a Coro, a Task or Future, and
// awaitables such as queue.join(), which are moved into the coroutine that awaits them.
#pragma once

#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>
#include <vector>

#include "argiope/async/detail/event_loop.hpp"
#include "argiope/async/detail/future.hpp"

namespace argiope {
namespace detail {

template <class A>
concept Awaiter = requires(A& awaiter, std::coroutine_handle<> self) {
  static_cast<bool>(awaiter.await_ready());
  awaiter.await_suspend(self);
  awaiter.await_resume();
};

// As the language finds it for `co_await awaitable`.
template <class A>
decltype(auto) awaiter_of(A&& awaitable) {
  if constexpr (requires { std::forward<A>(awaitable).operator co_await(); }) {
    return std::forward<A>(awaitable).operator co_await();
  } else if constexpr (requires { operator co_await(std::forward<A>(awaitable)); }) {
    return operator co_await(std::forward<A>(awaitable));
  } else {
    return std::forward<A>(awaitable);
  }
}

}  // namespace detail

// The operands of `co_await`: a Coro by std::move or as a call's result, a Future, a Task, or the results of sleep(),
// Queue::get() and Event::wait() return.
template <class A>
concept Awaitable = detail::Awaiter<std::remove_reference_t<decltype(detail::awaiter_of(std::declval<A>()))>>;

// The result of awaiting it, as a value.
template <Awaitable A>
using AwaitValue = std::remove_cvref_t<decltype(detail::awaiter_of(std::declval<A>()).await_resume())>;

namespace detail {

// A Future or a Task.
template <class A>
concept IsFuture = requires {
  typename A::value_type;
}
&&std::derived_from<A, Future<typename A::value_type>>;
// An awaitable that is on its way without being awaited.
template <class A>
concept UnderWay = IsFuture<A> || std::same_as<A, AnyTask>;

template <class T>
inline constexpr bool kKeepsItsValue = std::is_void_v<T> || std::is_copy_constructible_v<T>;

// `co_await for_await(awaitable)` uses it up; but a future has other readers, and keeps its value where that can be
// copied.
template <class A>
decltype(auto) for_await(A& awaitable) noexcept {
  if constexpr (IsFuture<A> && kKeepsItsValue<AwaitValue<A>>) {
    return (awaitable);
  } else {
    return std::move(awaitable);
  }
}

template <Awaitable A>
Coro<AwaitValue<A>> await_it(A awaitable) {
  co_return co_await for_await(awaitable);
}

}  // namespace detail

// A task or future for `awaitable`, as asyncio's: a Task or Future is returned as it is, anything else is made a task
// that awaits it. Call it on a running loop.
template <Awaitable A>
auto ensure_future(A awaitable) {
  if constexpr (detail::IsFuture<A>) {
    return awaitable;
  } else if constexpr (detail::IsCoro<A>) {
    return EventLoop::current().create_task(std::move(awaitable));
  } else {
    return EventLoop::current().create_task(detail::await_it(std::move(awaitable)));
  }
}

namespace detail {

// Of each, in order.
template <Awaitable A>
auto ensure_futures(std::vector<A> awaitables) {
  std::vector<decltype(ensure_future(std::declval<A>()))> futures;
  futures.reserve(awaitables.size());
  for (A& awaitable : awaitables) futures.push_back(ensure_future(std::move(awaitable)));
  return futures;
}

}  // namespace detail
}  // namespace argiope
