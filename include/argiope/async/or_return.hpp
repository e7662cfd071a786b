// or_return: passes an error on in one word.
//
//   Coro<Result<Receipt>> order(Store& store, Job job) {
//     const JobId id = co_await or_return(store.put(std::move(job)));   // its error is order()'s error
//     co_return Receipt{id};
//   }
#pragma once

#include <coroutine>
#include <type_traits>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"

namespace argiope {
namespace detail {

template <class P>
inline constexpr bool kReturnsResult = false;
template <class T>
inline constexpr bool kReturnsResult<Promise<T>> = kIsResult<T>;

// Has the coroutine of `promise` return `error`.
template <class P>
void return_error(P& promise, Error&& error) {
  static_assert(kReturnsResult<P>,
                "co_await or_return(...) ends a coroutine with an error, so that coroutine has to return a "
                "Coro<Result<T>>; in others write value_or_throw(co_await ...)");
  if constexpr (kReturnsResult<P>) promise.return_value(std::unexpected(std::move(error)));
}

// Awaits a coroutine in whose error the awaiting one ends. Owns its frame.
template <class T>
struct GatedAwaiter : Gate {
  std::coroutine_handle<Promise<Result<T>>> awaited;

  explicit GatedAwaiter(std::coroutine_handle<Promise<Result<T>>> handle) noexcept : awaited(handle) {}
  GatedAwaiter(const GatedAwaiter&) = delete;
  GatedAwaiter& operator=(const GatedAwaiter&) = delete;
  ~GatedAwaiter() {
    if (awaited) awaited.destroy();
  }

  bool await_ready() const noexcept { return false; }
  template <class Awaiting>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Awaiting> awaiting) noexcept {
    this->caller = awaiting;
    this->pass = [](Gate& gate, bool free_awaited) noexcept -> PromiseBase* {
      auto& self = static_cast<GatedAwaiter&>(gate);
      Result<T>* const result = self.awaited.promise().value();
      if (result == nullptr || result->has_value()) return nullptr;
      Awaiting& promise = std::coroutine_handle<Awaiting>::from_address(self.caller.address()).promise();
      return_error(promise, std::move(result->error()));
      if (free_awaited) std::exchange(self.awaited, {}).destroy();
      return &promise;
    };
    awaited.promise().set_gate(*this);
    return awaited;
  }
  T await_resume() {
    Result<T> result = awaited.promise().take();
    std::exchange(awaited, {}).destroy();
    if constexpr (!std::is_void_v<T>) return std::move(*result);
  }
};

template <class T>
class [[nodiscard("or_return does nothing until it is awaited")]] CoroOrReturn {
 public:
  explicit CoroOrReturn(Coro<Result<T>> coro) noexcept : coro_(std::move(coro)) {}
  auto operator co_await()&& noexcept { return GatedAwaiter<T>{coro_.release()}; }

 private:
  Coro<Result<T>> coro_;
};

// The same for a result that is there.
template <class T>
class [[nodiscard("or_return does nothing until it is awaited")]] ResultOrReturn {
 public:
  explicit ResultOrReturn(Result<T> result) noexcept : result_(std::move(result)) {}

  bool await_ready() const noexcept { return result_.has_value(); }
  template <class Awaiting>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Awaiting> awaiting) noexcept {
    return_error(awaiting.promise(), std::move(result_.error()));
    return after_end(awaiting.promise());
  }
  T await_resume() {
    if constexpr (!std::is_void_v<T>) return std::move(*result_);
  }

 private:
  Result<T> result_;
};

}  // namespace detail

// `T value = co_await or_return(coro)` in a coroutine that returns a Coro<Result<U>>: awaits `coro` and gives the value
// of its Result. When that is an error, the awaiting coroutine returns the error: as by
// `co_return std::unexpected(…)`, its variables are destroyed, innermost first, before its own caller runs on, and no
// catch block sees it. In a coroutine that returns something else it does not compile.
//
// Errors:   what `coro` throws, CancelledError too, is thrown here.
// Suspends: where `coro` does.
// Cancel:   as awaiting `coro`.
// Lifetime: as awaiting `coro`.
// Threads:  the loop's own.
// Cost:     none over co_await and an if: no frame, no allocation.
template <class T>
detail::CoroOrReturn<T> or_return(Coro<Result<T>> coro) noexcept {
  return detail::CoroOrReturn<T>{std::move(coro)};
}
// The same for a Result that is there; never suspends.
template <class T>
detail::ResultOrReturn<T> or_return(Result<T> result) noexcept {
  return detail::ResultOrReturn<T>{std::move(result)};
}

}  // namespace argiope
