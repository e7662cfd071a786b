// Bounding the time something may take.
#pragma once

#include <type_traits>
#include <utility>

#include "argiope/async/detail/awaitable.hpp"
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
