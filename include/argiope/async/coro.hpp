// Coro<T>: what an asynchronous function returns. Lazy: it runs when awaited, inside the task that awaits it.
//
// Here live the coroutine promise and the symmetric transfer between caller and callee; scheduling
// does not (see event_loop.hpp).
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include "argiope/async/frame_pool.hpp"

namespace argiope {

template <class T = void>
class Coro;

namespace detail {

// Called when a task's outermost coroutine ends.
void root_coroutine_ended() noexcept;
// Called when a coroutine is destroyed that never ran, which is a forgotten co_await. Warns in the loop's debug mode.
void coroutine_never_started(const std::source_location& created_at) noexcept;

class PromiseBase {
 public:
  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* block, std::size_t bytes) noexcept { free_frame(block, bytes); }

  std::suspend_always initial_suspend() const noexcept { return {}; }

  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      if (std::coroutine_handle<> caller = ended.promise().caller_) return caller;
      root_coroutine_ended();
      return std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  FinalAwaiter final_suspend() const noexcept { return {}; }

  void unhandled_exception() noexcept { exception_ = std::current_exception(); }

  void set_caller(std::coroutine_handle<> caller) noexcept { caller_ = caller; }
  // The coroutine's own place in the source until it is made a task; then where that happened.
  const std::source_location& created_at() const noexcept { return created_at_; }
  void set_created_at(const std::source_location& where) noexcept { created_at_ = where; }
  const std::exception_ptr& exception() const noexcept { return exception_; }

 protected:
  explicit PromiseBase(const std::source_location& where) noexcept : created_at_(where) {}

 private:
  std::coroutine_handle<> caller_;
  std::exception_ptr exception_;
  std::source_location created_at_;
};

template <class T>
class Promise final : public PromiseBase {
 public:
  explicit Promise(const std::source_location& where = std::source_location::current()) noexcept : PromiseBase(where) {}
  Coro<T> get_return_object() noexcept;
  template <class U>
  requires std::is_constructible_v<T, U&&>
  void return_value(U&& value) { value_.emplace(std::forward<U>(value)); }
  T take() {
    if (exception()) [[unlikely]]
      std::rethrow_exception(exception());
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class Promise<void> final : public PromiseBase {
 public:
  explicit Promise(const std::source_location& where = std::source_location::current()) noexcept : PromiseBase(where) {}
  Coro<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void take() {
    if (exception()) [[unlikely]]
      std::rethrow_exception(exception());
  }
};

}  // namespace detail

// An asynchronous function's result-to-be.
//
// Suspends: awaiting it runs the function at once, in the awaiting task; it suspends where the function does.
// Errors:   what the function throws is thrown from the co_await.
// Cancel:   a cancelled task throws CancelledError at its innermost await, and it travels outwards from there.
// Lifetime: the function's parameters are copied or moved into the frame; references must outlive the await.
//           A lambda that captures must itself outlive it (docs/coroutine-pitfalls.md). Awaited at most once.
// Threads:  the loop's own.
template <class T>
class [[nodiscard("a coroutine does nothing until it is awaited or made a task")]] Coro {
 public:
  using promise_type = detail::Promise<T>;
  using value_type = T;
  using Handle = std::coroutine_handle<promise_type>;

  Coro() = default;
  explicit Coro(Handle handle) noexcept : handle_(handle) {}
  Coro(Coro && other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Coro& operator=(Coro&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Coro() {
    if (!handle_) return;
    detail::coroutine_never_started(handle_.promise().created_at());
    handle_.destroy();
  }

  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  // Gives the frame away; whoever takes it destroys it.
  Handle release() noexcept { return std::exchange(handle_, {}); }

  auto operator co_await()&& noexcept {
    // Owns the frame from here on: what a Coro still owns at its end has never run.
    struct Awaiter {
      Handle callee;
      explicit Awaiter(Handle handle) noexcept : callee(handle) {}
      Awaiter(const Awaiter&) = delete;
      Awaiter& operator=(const Awaiter&) = delete;
      ~Awaiter() { callee.destroy(); }
      bool await_ready() const noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) const noexcept {
        callee.promise().set_caller(caller);
        return callee;
      }
      T await_resume() const { return callee.promise().take(); }
    };
    return Awaiter{release()};
  }

 private:
  Handle handle_;
};

template <class T>
Coro<T> detail::Promise<T>::get_return_object() noexcept {
  return Coro<T>{std::coroutine_handle<Promise>::from_promise(*this)};
}
inline Coro<void> detail::Promise<void>::get_return_object() noexcept {
  return Coro<void>{std::coroutine_handle<Promise>::from_promise(*this)};
}

}  // namespace argiope
