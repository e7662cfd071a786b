// Bounding the time something may take.
#pragma once

#include <type_traits>
#include <utility>

#include "argiope/async/event_loop.hpp"

namespace argiope {

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

  // Awaits `coro` in the calling task. To be called once.
  // Errors: TimeoutError when the deadline struck first; what `coro` throws.
  template <class T>
  Coro<T> run(Coro<T> coro) {
    enter();
    try {
      if constexpr (std::is_void_v<T>) {
        co_await std::move(coro);
        leave();
      } else {
        T value = co_await std::move(coro);
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

// Awaits `coro` for `limit` at most; then it is cancelled and TimeoutError thrown.
// Nothing is lost at the deadline: an item or a permit that `coro` had been handed and had not run on with goes back, as
// after any cancellation; and a `coro` that ends all the same gives its result.
template <class T>
Coro<T> wait_for(Coro<T> coro, Duration limit) {
  Timeout timeout(saturating_add(EventLoop::current().time(), limit));
  if constexpr (std::is_void_v<T>) {
    co_await timeout.run(std::move(coro));
  } else {
    co_return co_await timeout.run(std::move(coro));
  }
}

namespace detail {

// A copy of the future's value, or the value itself where it cannot be copied.
template <class T>
Coro<T> value_of(Future<T> future) {
  if constexpr (std::is_void_v<T>) {
    co_await future;
  } else if constexpr (std::is_copy_constructible_v<T>) {
    co_return co_await future;
  } else {
    co_return co_await std::move(future);
  }
}

}  // namespace detail

// The same for a future or task, which is cancelled when the time is up; shield() it to have it go on.
template <class T>
Coro<T> wait_for(Future<T> future, Duration limit) {
  return wait_for(detail::value_of(std::move(future)), limit);
}

}  // namespace argiope
