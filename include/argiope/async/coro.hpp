// Coro<T>: what an asynchronous function returns. Lazy: it runs when awaited, inside the task that awaits it. With
// or_return, which passes an error on, and the runtime's exceptions.
//
// Here live the coroutine promise and the symmetric transfer between caller and callee; scheduling
// does not (see event_loop.hpp).
#pragma once

#include <bit>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "argiope/async/detail/frame_pool.hpp"
#include "argiope/base/error.hpp"

// A function that returns a Coro and has no co_await, co_return or co_yield is no coroutine, and runs off its end where
// it has no return either. Compilers warn of that; from here on it is an error. Write co_return; at its end, or let a
// body that awaits nothing return nothing (TaskGroup::run takes it).
#pragma GCC diagnostic error "-Wreturn-type"

// `= delete`, with what to do instead where the compiler can tell it.
#if defined(__clang__) && __clang_major__ >= 19
#define ARGIOPE_DELETED(what_to_do)                                                             \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wc++26-extensions\"") = \
      delete (what_to_do)_Pragma("clang diagnostic pop")
#elif defined(__cpp_deleted_function)
#define ARGIOPE_DELETED(what_to_do) = delete (what_to_do)
#else
#define ARGIOPE_DELETED(what_to_do) = delete
#endif

// The compiler's message where a Result is awaited and dropped.
#define ARGIOPE_UNREAD_RESULT \
  "its error is lost: write value_or_throw(co_await ...), co_await or_return(...), or look at the Result"

namespace argiope {

template <class T = void>
class Coro;

namespace detail {

// Called when a task's outermost coroutine ends.
void root_coroutine_ended() noexcept;
// Called when a coroutine is destroyed that never ran, which is a forgotten co_await: warns as EventLoop::set_debug
// says.
void coroutine_never_started(const std::source_location& created_at) noexcept;

// The exception with which a coroutine of this thread has just ended, from the catch block on. The coroutine that
// awaited it resumes at once and takes it, so a thread has one at most, and no frame needs room for it.
void keep_thrown() noexcept;
std::exception_ptr take_thrown() noexcept;
[[noreturn]] void rethrow_thrown();

class PromiseBase;

template <class T>
inline constexpr bool kIsResult = false;
template <class T>
inline constexpr bool kIsResult<Result<T>> = true;

// How a coroutine waits for one whose end may be its own end, too (or_return). Lives in the frame of the one that
// waits.
struct Gate {
  // The awaited coroutine has ended. Null: the one that waits goes on. Else it has ended by this, where it stands: its
  // promise. `free_awaited`: the awaited frame may be destroyed at once.
  PromiseBase* (*pass)(Gate& self, bool free_awaited) noexcept = nullptr;
  std::coroutine_handle<> caller;
};

// The next to run when a coroutine ends that nobody awaits, or a gate does. Its frame stays, suspended where it is.
std::coroutine_handle<> after_end(PromiseBase& ended) noexcept;

// The part that every coroutine's frame holds: one word, because the memory of a waiting task is frames. Until the
// coroutine is awaited, the word says where it was made; from then on, who awaits it. Nobody awaits the outermost one
// of a task: its word says where the task was made. The lowest bits, which no address uses, tell these apart.
class PromiseBase {
 public:
  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* block, std::size_t bytes) noexcept { free_frame(block, bytes); }

  std::suspend_always initial_suspend() const noexcept { return {}; }

  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      const PromiseBase& promise = ended.promise();
      if (promise.is_awaited()) [[likely]]
        return promise.caller();
      if (promise.gate() != nullptr) return after_end(ended.promise());
      root_coroutine_ended();
      return std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  FinalAwaiter final_suspend() const noexcept { return {}; }

  void unhandled_exception() noexcept {
    keep_thrown();
    link_ |= kThrew;
  }

  void set_caller(std::coroutine_handle<> caller) noexcept {
    link_ = reinterpret_cast<std::uintptr_t>(caller.address());
  }
  void set_gate(Gate& gate) noexcept { link_ = reinterpret_cast<std::uintptr_t>(&gate) | kGated; }
  // Makes it the outermost coroutine of a task that is made at `where`.
  void set_outermost(const std::source_location& where) noexcept {
    link_ = std::bit_cast<std::uintptr_t>(where) | kOutermost;
  }
  // Of a coroutine that has run: neither a task's outermost one nor behind a gate. Only then it has a caller().
  bool is_awaited() const noexcept { return (link_ & (kOutermost | kGated)) == 0; }
  std::coroutine_handle<> caller() const noexcept {
    return std::coroutine_handle<>::from_address(reinterpret_cast<void*>(link_ & ~kFlags));
  }
  // Null for a task's outermost coroutine; else only of one that is not awaited.
  Gate* gate() const noexcept { return (link_ & kGated) == 0 ? nullptr : reinterpret_cast<Gate*>(link_ & ~kFlags); }
  // The coroutine's own place in the source; of a task's outermost one, where the task was made. Not of a coroutine
  // that another has awaited.
  std::source_location created_at() const noexcept { return std::bit_cast<std::source_location>(link_ & ~kFlags); }
  // It ended by an exception, which its caller or its task takes.
  bool threw() const noexcept { return (link_ & kThrew) != 0; }

 protected:
  explicit PromiseBase(const std::source_location& where) noexcept : link_(std::bit_cast<std::uintptr_t>(where)) {}

 private:
  static_assert(sizeof(std::source_location) == sizeof(std::uintptr_t), "a place in the source is a pointer");
  static constexpr std::uintptr_t kThrew = 1;
  static constexpr std::uintptr_t kOutermost = 2;
  static constexpr std::uintptr_t kGated = 4;
  static constexpr std::uintptr_t kFlags = kThrew | kOutermost | kGated;

  std::uintptr_t link_;
};

template <class T>
class Promise final : public PromiseBase {
 public:
  explicit Promise(const std::source_location& where = std::source_location::current()) noexcept : PromiseBase(where) {}
  Coro<T> get_return_object() noexcept;
  template <class U = T>
  requires std::is_constructible_v<T, U&&>
  void return_value(U&& value) { value_.emplace(std::forward<U>(value)); }
  T take() {
    if (threw()) [[unlikely]]
      rethrow_thrown();
    return std::move(*value_);
  }
  // The value that was returned; null when it threw.
  T* value() noexcept { return value_ && !threw() ? &*value_ : nullptr; }

 private:
  std::optional<T> value_;
};

template <>
class Promise<void> final : public PromiseBase {
 public:
  explicit Promise(const std::source_location& where = std::source_location::current()) noexcept : PromiseBase(where) {}
  Coro<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void take() const {
    if (threw()) [[unlikely]]
      rethrow_thrown();
  }
};
static_assert(sizeof(Promise<void>) == 8, "part of every parked task: see docs/decisions.md");

}  // namespace detail

// An asynchronous function's result-to-be.
//
// Suspends: awaiting it runs the function at once, in the awaiting task; it suspends where the function does.
// Errors:   what the function throws is thrown from the co_await.
// Cancel:   a cancelled task throws CancelledError at its innermost await, and it travels outwards from there.
// Lifetime: the function's parameters are copied or moved into the frame; references must outlive the await.
//           A lambda that captures must itself outlive it: pass the lambda and not its call to create_task(), which
//           keeps it (CoroFunction; docs/coroutine-pitfalls.md). Awaited at most once.
// Threads:  the loop's own.
template <class T>
class [[nodiscard("a coroutine does nothing until it is awaited or made a task")]] Coro {
 public:
  using promise_type = detail::Promise<T>;
  using value_type = T;
  using Handle = std::coroutine_handle<promise_type>;

  Coro() = default;
  explicit Coro(Handle handle) noexcept : handle_(handle) {}
  Coro(const Coro&)
      ARGIOPE_DELETED("a Coro runs once: pass it on with std::move(coro), or pass the call that returns it");
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
  // Gives the frame away; its taker destroys it.
  Handle release() noexcept { return std::exchange(handle_, {}); }
  // Destroys it unrun, on purpose: nobody is warned of a coroutine that was never awaited. Harmless on an empty one.
  void close() noexcept {
    if (handle_) release().destroy();
  }

  void operator co_await() const& ARGIOPE_DELETED(
      "a Coro is awaited once: write co_await std::move(coro), or make it a task to await it more than once");
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
      T await_resume() { return callee.promise().take(); }
      [[nodiscard(ARGIOPE_UNREAD_RESULT)]] T await_resume() requires detail::kIsResult<T> {
        // One that ended at an or_return still has its locals, which go before the caller does anything else.
        if (!callee.done()) [[unlikely]] {
          T value = callee.promise().take();
          std::exchange(callee, Handle::from_address(std::noop_coroutine().address())).destroy();
          return value;
        }
        return callee.promise().take();
      }
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

namespace detail {

template <class A>
concept IsCoro = requires {
  typename A::value_type;
}
&&std::same_as<A, Coro<typename A::value_type>>;

// A function that is called once is called as an rvalue where that is possible: what std::bind_front holds is moved.
template <class F>
using CalledOnce = std::conditional_t<std::is_invocable_v<F>, F, F&>;
template <class F>
using ResultOfOneCall = std::invoke_result_t<CalledOnce<F>>;

}  // namespace detail

// A function without parameters that returns a Coro: a function, a lambda with or without captures, a std::function,
// what std::bind_front makes of a function and its arguments. Functions that make a task of a Coro take it too.
//
//   loop.create_task([order = std::move(order)]() -> Coro<void> { co_await ship(order); });
//   loop.create_task(std::bind_front(&Shop::ship, &shop, std::move(order)));
//
// Lifetime: it is copied or moved to the task, and is destroyed when its coroutine has ended, before anybody who awaits
//           the task goes on: what it captures by value may be used to the end. An object that it captures by reference
//           may be used no longer than it lives.
// Order:    it is called in the task's first step, and never when the task is cancelled before.
// Errors:   std::invalid_argument, at once, for an empty std::function or a null pointer. Exceptions of the call
//           itself, before there is a Coro, are thrown from the task, and std::invalid_argument for an empty Coro.
template <class F>
concept CoroFunction = std::move_constructible<F> && requires {
  requires detail::IsCoro<detail::ResultOfOneCall<F>>;
};

namespace detail {

template <CoroFunction F>
using FunctionValue = ResultOfOneCall<F>::value_type;

template <CoroFunction F>
ResultOfOneCall<F> call_and_await(F function) {
  ResultOfOneCall<F> coro = std::invoke(static_cast<CalledOnce<F>&&>(function));
  if (!coro) throw std::invalid_argument("a function that was to make a coroutine returned an empty one");
  co_return co_await std::move(coro);
}

// A coroutine that calls `function`, and owns it to its end.
template <CoroFunction F>
ResultOfOneCall<F> keeping(F function) {
  if constexpr (requires { static_cast<bool>(function == nullptr); }) {
    if (function == nullptr) throw std::invalid_argument("an empty function makes no coroutine");
  }
  return call_and_await(std::move(function));
}

}  // namespace detail

// Deleted for functions that return a Coro where nobody would await it.
#define ARGIOPE_NO_CORO_FUNCTION                                                                     \
  ARGIOPE_DELETED(                                                                                   \
      "what this function returns is a Coro, which nobody would await: make it a task, for example " \
      "loop.create_task(function), or by call_soon([&] { loop.create_task(function); })")

// or_return: passes an error on in one word.
//
//   Coro<Result<Receipt>> order(Store& store, Job job) {
//     const JobId id = co_await or_return(store.put(std::move(job)));   // its error is order()'s error
//     co_return Receipt{id};
//   }

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

// The exceptions of the runtime, under asyncio's names.

// Thrown at the await point of a task that was cancelled. Deliberately no std::runtime_error: code that
// catches "any failure" to retry must not swallow it by accident. Catch it only to clean up, and rethrow.
class CancelledError : public std::exception {
 public:
  explicit CancelledError(std::string message = {}) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.empty() ? "cancelled" : message_.c_str(); }

 private:
  std::string message_;
};

// wait_for or timeout ran out.
class TimeoutError : public std::runtime_error {
 public:
  TimeoutError() : std::runtime_error("timed out") {}
};

// SIGINT ended what a Runner ran. Deliberately no std::runtime_error, as CancelledError.
class KeyboardInterrupt : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// A future was asked for a result it does not have, or given a second one.
class InvalidStateError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

class QueueEmpty : public std::runtime_error {
 public:
  QueueEmpty() : std::runtime_error("queue is empty") {}
};

class QueueFull : public std::runtime_error {
 public:
  QueueFull() : std::runtime_error("queue is full") {}
};

// put() after shutdown(), or get() from a queue that was shut down and is empty.
class QueueShutDown : public std::runtime_error {
 public:
  QueueShutDown() : std::runtime_error("queue was shut down") {}
};

// wait() at a barrier that is broken, or that was broken or reset meanwhile.
class BrokenBarrierError : public std::runtime_error {
 public:
  BrokenBarrierError() : std::runtime_error("barrier is broken") {}
};

// The loop has work that waits for something which nothing left in the program can bring about.
class DeadlockError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// A stream ended before all that was asked for had come.
class IncompleteReadError : public std::runtime_error {
 public:
  // `expected`: how many bytes were asked for; none when it was up to a separator.
  IncompleteReadError(std::string partial, std::optional<std::size_t> expected)
      : std::runtime_error("the stream ended after " + std::to_string(partial.size()) + " of " +
                           (expected ? std::to_string(*expected) + " bytes" : "the bytes up to a separator")),
        partial_(std::move(partial)),
        expected_(expected) {}
  // The bytes that did come; they are no longer in the stream.
  const std::string& partial() const noexcept { return partial_; }
  std::optional<std::size_t> expected() const noexcept { return expected_; }

 private:
  std::string partial_;
  std::optional<std::size_t> expected_;
};

// More bytes than the limit came before the separator (or the end). They are still in the stream.
class LimitOverrunError : public std::runtime_error {
 public:
  LimitOverrunError(const std::string& message, std::size_t consumed)
      : std::runtime_error(message), consumed_(consumed) {}
  // How many bytes can be read and dropped without missing the separator.
  std::size_t consumed() const noexcept { return consumed_; }

 private:
  std::size_t consumed_;
};

}  // namespace argiope
