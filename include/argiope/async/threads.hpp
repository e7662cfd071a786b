// What crosses threads: work for other threads (ThreadPoolExecutor, run_in_executor), coroutines from other threads
// (run_coroutine_threadsafe), and a queue between them (Channel).
#pragma once

#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/detail/ring_buffer.hpp"

namespace argiope {

// Threads for work that would block a loop: ThreadPoolExecutor and run_in_executor.

// A fixed number of threads that run functions in the order submitted.
//
// Lifetime: declare it after the loop it serves; its destructor finishes what was submitted and joins, and what it
//           still owes the loop must find the loop alive.
// Errors:   the constructor throws std::system_error when the system gives no thread.
// Threads:  submit() from any thread.
class ThreadPoolExecutor {
 public:
  explicit ThreadPoolExecutor(std::size_t threads);
  ~ThreadPoolExecutor();

  // Throws std::logic_error after shutdown(). An exception out of `function` ends the process: catch inside.
  void submit(std::move_only_function<void()> function);
  // Takes no more work, finishes what was submitted, joins. May be called twice.
  void shutdown();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable filled_;
  RingBuffer<std::move_only_function<void()>> functions_;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

namespace detail {

// One function on its way to a thread and its result on the way back. The future belongs to the loop's thread
// and is not touched by the other.
template <class F, class R>
struct Errand {
  EventLoop& loop;
  Future<R> future;
  F function;
  Slot<R> result{};
  std::exception_ptr exception{};

  void run() noexcept {
    try {
      if constexpr (std::is_void_v<R>) {
        function();
      } else {
        result.value.emplace(function());
      }
    } catch (...) {
      exception = std::current_exception();
    }
  }
  void deliver() {
    loop.end_outside_work();
    if (future.done()) return;  // cancelled meanwhile: the result has no taker
    if (exception) {
      future.set_exception(std::move(exception));
    } else if constexpr (std::is_void_v<R>) {
      future.set_result();
    } else {
      future.set_result(std::move(*result.value));
    }
  }
};

}  // namespace detail

// Runs `function` on one of the executor's threads; the future has its result or exception.
// Cancel: cancels the future; the function itself runs to its end, and its result is dropped.
template <class F, class R = std::invoke_result_t<F>>
Future<R> run_in_executor(ThreadPoolExecutor& executor, F function) {
  EventLoop& loop = EventLoop::current();
  Future<R> future = loop.create_future<R>();
  using Errand = detail::Errand<F, R>;
  auto errand = std::make_unique<Errand>(loop, future, std::move(function));
  loop.begin_outside_work();
  try {
    executor.submit([errand = std::move(errand)]() mutable {
      errand->run();
      EventLoop& home = errand->loop;
      home.call_soon_threadsafe([back = std::move(errand)] { back->deliver(); });
    });
  } catch (...) {
    loop.end_outside_work();
    throw;
  }
  return future;
}

// Runs `function` on a thread of the running loop's default executor; otherwise as run_in_executor.
// Errors: std::logic_error after shutdown_default_executor().
template <class F, class R = std::invoke_result_t<F>>
Future<R> to_thread(F function) {
  return run_in_executor(EventLoop::current().default_executor(), std::move(function));
}

// run_coroutine_threadsafe: other threads' way to run a coroutine on a loop and wait for it.

namespace detail {

template <class T>
struct ThreadsafeState {
  explicit ThreadsafeState(EventLoop& on) noexcept : loop(on) {}
  EventLoop& loop;
  // The task while there is one to cancel; the loop's thread alone looks at it.
  FutureCore* task = nullptr;

  std::mutex mutex;
  std::condition_variable changed;
  // These belong to the mutex.
  bool done = false;
  Slot<T> result;
  std::exception_ptr exception;
};

// The duty to tell the waiting thread what became of its coroutine, passed from callback to callback. Dropped with the
// loop, it says so: no thread waits for ever.
template <class T>
class ThreadsafeDelivery {
 public:
  explicit ThreadsafeDelivery(std::shared_ptr<ThreadsafeState<T>> state) noexcept : state_(std::move(state)) {}
  ThreadsafeDelivery(ThreadsafeDelivery&&) noexcept = default;
  ~ThreadsafeDelivery() {
    if (state_ == nullptr) return;
    finish([](ThreadsafeState<T>& state) {
      state.exception = std::make_exception_ptr(CancelledError("the event loop ended"));
    });
  }

  void start(Coro<T> coro, const std::source_location& where) {
    try {
      Task<T> task = state_->loop.create_task(std::move(coro), {}, Start::next_turn, where);
      FutureCore& core = *task.core();
      state_->task = &core;
      // Not held by a handle, or the loop's end could not free it.
      task.add_done_callback([&core, delivery = std::move(*this)]() mutable { delivery.deliver(core); });
    } catch (...) {
      if (state_ == nullptr) return;  // moved into the callback that could not be added, and told there
      finish([](ThreadsafeState<T>& state) { state.exception = std::current_exception(); });
    }
  }

 private:
  void deliver(FutureCore& core) {
    finish([&](ThreadsafeState<T>& state) {
      try {
        core.rethrow_unless_ready();
        if constexpr (!std::is_void_v<T>) {
          state.result.value.emplace(std::move(*slot_of<T>(core).value));
        }
      } catch (...) {
        state.exception = std::current_exception();
      }
    });
  }
  template <class Set>
  void finish(Set set) {
    const auto state = std::exchange(state_, nullptr);
    state->task = nullptr;
    std::lock_guard lock(state->mutex);
    set(*state);
    state->done = true;
    state->changed.notify_all();
  }

  std::shared_ptr<ThreadsafeState<T>> state_;
};

}  // namespace detail

// The result of a coroutine that runs on another thread's loop. Copies share it.
// Threads: any.
template <class T>
class ThreadsafeFuture {
 public:
  explicit ThreadsafeFuture(std::shared_ptr<detail::ThreadsafeState<T>> state) noexcept : state_(std::move(state)) {}

  bool done() const {
    std::lock_guard lock(state_->mutex);
    return state_->done;
  }
  // Asks the loop to cancel the task; get() still waits until that has ended. False when it was done already.
  bool cancel(std::string message = {}) {
    // Under the lock, so that the loop is there: its end has to tell this state first.
    std::lock_guard lock(state_->mutex);
    if (state_->done) return false;
    state_->loop.call_soon_threadsafe([state = state_, message = std::move(message)] {
      if (state->task != nullptr) state->task->cancel(message);
    });
    return true;
  }
  // Blocks the calling thread until it is done; then what the coroutine returned, moved out, or threw. To be called
  // once.
  // Errors: CancelledError when it was cancelled, or its loop ended before; std::logic_error on the loop's own thread,
  //         which would wait for itself.
  T get() {
    std::unique_lock lock(state_->mutex);
    require_other_thread();
    state_->changed.wait(lock, [&] { return state_->done; });
    return take();
  }
  // As get(), for `limit` of real time at most; TimeoutError then, and the coroutine goes on.
  T get(Duration limit) {
    std::unique_lock lock(state_->mutex);
    require_other_thread();
    if (!state_->changed.wait_for(lock, limit, [&] { return state_->done; })) throw TimeoutError();
    return take();
  }
  template <detail::NoDuration N>
  T get(N) ARGIOPE_SAY_THE_UNIT;

 private:
  void require_other_thread() const {
    if (!state_->done && detail::this_thread.loop == &state_->loop) {
      throw std::logic_error("get() on the thread of the loop that has to run it");
    }
  }
  T take() {
    if (state_->exception != nullptr) std::rethrow_exception(state_->exception);
    if constexpr (!std::is_void_v<T>) return std::move(*state_->result.value);
  }

  std::shared_ptr<detail::ThreadsafeState<T>> state_;
};

// Runs `coro` as a task of `loop`, from any thread.
// Lifetime: the loop must be alive at the call; afterwards it may end at any time.
template <class T>
ThreadsafeFuture<T> run_coroutine_threadsafe(Coro<T> coro, EventLoop& loop,
                                             const std::source_location& where = std::source_location::current()) {
  if (!coro) throw std::invalid_argument("run_coroutine_threadsafe of an empty coroutine");
  auto state = std::make_shared<detail::ThreadsafeState<T>>(loop);
  loop.call_soon_threadsafe([delivery = detail::ThreadsafeDelivery<T>(state), coro = std::move(coro), where]() mutable {
    delivery.start(std::move(coro), where);
  });
  return ThreadsafeFuture<T>{std::move(state)};
}
// The same for a function that returns the Coro. The loop's thread calls it, and destroys it when its coroutine has
// ended.
template <CoroFunction F>
ThreadsafeFuture<detail::FunctionValue<F>> run_coroutine_threadsafe(
    F function, EventLoop& loop, const std::source_location& where = std::source_location::current()) {
  return run_coroutine_threadsafe(detail::keeping(std::move(function)), loop, where);
}

// Channel<T>: a queue between threads. Tasks of several loops put into it and get from it.
//
// One mutex guards the items and the lists of who waits. A task that waits on another loop is served under the mutex
// and then woken by its own loop: those served in between are collected, so a burst costs each loop one wake-up.

namespace detail {

// The part of a channel that does not depend on its type: who waits, on which loop, and how it is woken.
// Members that say so are called with `mutex` held.
class ChannelCore : public std::enable_shared_from_this<ChannelCore> {
 public:
  // A loop with tasks that have waited here.
  struct Port;

  struct ChannelWaiter : Waiter {
    explicit ChannelWaiter(ChannelCore& awaited) noexcept : core(&awaited) {}
    // Before it is awaited.
    ChannelWaiter(ChannelWaiter&& other) noexcept : Waiter(std::move(other)), core(other.core) {}
    virtual ~ChannelWaiter() {
      if (parked) leave();
    }
    // Out of the list it is in, on its own loop's thread. Returns with the mutex free.
    void leave() noexcept;
    // With the mutex held, when its task is cancelled: gives back what it was served, if it was. False when others may
    // have used that.
    virtual bool give_back() = 0;
    ChannelCore* core;
    // The same, from park() on: what is given back has somewhere to go.
    std::shared_ptr<ChannelCore> kept;
    Port* port = nullptr;
    // Its own loop's to read and write: linked in a list that other threads change.
    bool parked = false;
    bool refused = false;
  };
  using Waiters = IntrusiveList<Waiter>;

  // With the mutex held: parks the running task at the end of `waiters`.
  void park(std::coroutine_handle<> self, ChannelWaiter& waiter, Waiters& waiters);
  // With the mutex held: the running task was served at once, but has spent its budget and lets others run first.
  void yield_served(std::coroutine_handle<> self, ChannelWaiter& waiter);
  // With the mutex held: wakes a waiter that was served or refused; at once, or through its own loop.
  void wake(ChannelWaiter& waiter);
  // With the mutex held: everybody in `waiters` gets QueueShutDown.
  void refuse_all(Waiters& waiters);

  std::mutex mutex;

  ChannelCore();
  ~ChannelCore();

 private:
  class Delivery;

  static void cancel(Waiter& waiter);
  // On its own loop's thread: it has been served or refused.
  static void tell(ChannelWaiter& waiter) noexcept;
  void attach(std::coroutine_handle<> self, ChannelWaiter& waiter);
  Port& port_of(EventLoop& loop);
  void deliver(Port& port) noexcept;

  std::vector<std::unique_ptr<Port>> ports_;
};

}  // namespace detail

// A queue of at most `maxsize` items (0 or less: no limit) for tasks of several loops, each on its thread. There is no
// task_done() and no join().
//
// Suspends: put() while full, get() while empty.
// Errors:   QueueFull, QueueEmpty from the _nowait forms; QueueShutDown after shutdown(). An item that could not be put
//           is destroyed.
// Cancel:   as Queue's: a put() that throws CancelledError has put nothing, a get() that does has taken nothing. A
//           put() that was let in before, though its task does not know yet, returns normally: the task's next await
//           throws, and a task without one ends as if it had not been cancelled.
// Order:    first in, first out; waiters of all loops together are served first come, first served.
// Threads:  any. put() and get() are awaited by tasks; the other members need no loop. Items are moved, and never
//           destroyed, with the mutex held. qsize(), empty() and full() are out of date when they return.
// Lifetime: must outlive the tasks that wait on it. An item handed to a task whose loop is destroyed goes with it: let
//           tasks end first. A virtual loop does not know what other threads do: waiting for one is DeadlockError.
// Cost:     an uncontended mutex for each item; a burst to a loop whose tasks wait posts one call to it.
template <class T>
class Channel {
  struct GetAwaiter;
  struct PutAwaiter;

 public:
  explicit Channel(std::ptrdiff_t maxsize = 0)
      : core_(std::make_shared<Core>(maxsize > 0 ? static_cast<std::size_t>(maxsize) : 0)) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  std::size_t qsize() const {
    std::lock_guard lock(core_->mutex);
    return core_->items.size();
  }
  // 0 when there is no limit.
  std::size_t maxsize() const noexcept { return core_->maxsize; }
  bool empty() const { return qsize() == 0; }
  bool full() const {
    std::lock_guard lock(core_->mutex);
    return core_->full();
  }

  PutAwaiter put(T item) { return PutAwaiter{*core_, std::move(item)}; }
  void put_nowait(T item) {
    std::lock_guard lock(core_->mutex);
    if (core_->shut_down) throw QueueShutDown();
    if (core_->full()) throw QueueFull();
    core_->accept(item);
  }
  GetAwaiter get() { return GetAwaiter{*core_}; }
  T get_nowait() {
    std::lock_guard lock(core_->mutex);
    if (core_->items.empty()) {
      if (core_->shut_down) throw QueueShutDown();
      throw QueueEmpty();
    }
    return core_->take();
  }

  // No more put(); get() goes on until the channel is empty. Waiters get QueueShutDown. `immediate` also drops what is
  // queued. May be called again.
  void shutdown(bool immediate = false) {
    detail::FifoItems<T> dropped;
    std::lock_guard lock(core_->mutex);
    core_->shut_down = true;
    if (immediate) {
      core_->drops = true;
      dropped.swap(core_->items);
    }
    core_->refuse_all(core_->getters);
    core_->refuse_all(core_->putters);
  }
  // The other name for it.
  void close() { shutdown(); }

 private:
  struct Core : detail::ChannelCore {
    explicit Core(std::size_t limit) noexcept : maxsize(limit) {}
    bool full() const noexcept { return maxsize != 0 && items.size() >= maxsize; }
    // There is room. Getters wait only while there are no items, putters only while there is no room.
    void accept(T& item) {
      if (getters.empty()) {
        items.push(std::move(item));
      } else {
        hand_over(item, items.next_place());
      }
    }
    void hand_over(T& item, std::uint64_t place) {
      auto& getter = static_cast<GetAwaiter&>(getters.front());
      getter.item.emplace(std::move(item));
      getter.place = place;
      wake(getter);
    }
    // There is an item.
    T take(std::uint64_t* place = nullptr) {
      T item = place == nullptr ? items.pop() : items.pop(*place);
      if (!putters.empty() && !full()) {
        auto& putter = static_cast<PutAwaiter&>(putters.front());
        items.push(std::move(putter.item));
        putter.accepted = true;
        wake(putter);
      }
      return item;
    }
    void put_back(T& item, std::uint64_t place) {
      if (getters.empty()) {
        items.put_back(std::move(item), place);
      } else {
        hand_over(item, place);
      }
    }

    std::size_t maxsize;
    bool shut_down = false;
    // Shut down, and nothing is stored any more.
    bool drops = false;
    detail::FifoItems<T> items;
    detail::ChannelCore::Waiters getters;
    detail::ChannelCore::Waiters putters;
  };

  struct GetAwaiter final : detail::ChannelCore::ChannelWaiter {
    explicit GetAwaiter(Core& from) noexcept : ChannelWaiter(from) {}
    Core& channel() const noexcept { return static_cast<Core&>(*core); }
    bool await_ready() {
      std::lock_guard lock(channel().mutex);
      if (channel().items.empty()) return this->refused = channel().shut_down;
      if (!detail::may_go_on()) return false;
      item.emplace(channel().take());
      return true;
    }
    bool await_suspend(std::coroutine_handle<> self) {
      detail::this_thread.task->check_cancelled();
      std::lock_guard lock(channel().mutex);
      if (channel().items.empty()) {
        this->refused = channel().shut_down;
        if (!this->refused) channel().park(self, *this, channel().getters);
        return !this->refused;
      }
      item.emplace(channel().take(&place));
      if (detail::this_thread.budget > 0) return false;  // it came in between
      channel().yield_served(self, *this);
      return true;
    }
    bool give_back() override {
      if (!item) return true;
      if (channel().drops) return false;
      channel().put_back(*item, place);
      item.reset();
      return true;
    }
    T await_resume() {
      if (item) [[likely]]
        return std::move(*item);
      if (this->refused) throw QueueShutDown();
      detail::throw_cancelled_wait();
    }
    std::optional<T> item;
    // The item's, when it was got by waiting.
    std::uint64_t place = 0;
  };

  struct PutAwaiter final : detail::ChannelCore::ChannelWaiter {
    PutAwaiter(Core& into, T value) : ChannelWaiter(into), item(std::move(value)) {}
    Core& channel() const noexcept { return static_cast<Core&>(*core); }
    bool await_ready() {
      std::lock_guard lock(channel().mutex);
      if (channel().shut_down) return this->refused = true;
      if (channel().full() || !detail::may_go_on()) return false;
      channel().accept(item);
      return accepted = true;
    }
    bool await_suspend(std::coroutine_handle<> self) {
      detail::this_thread.task->check_cancelled();
      std::lock_guard lock(channel().mutex);
      this->refused = channel().shut_down;
      if (this->refused) return false;
      if (channel().full()) {
        channel().park(self, *this, channel().putters);
        return true;
      }
      channel().accept(item);
      accepted = true;
      if (detail::this_thread.budget > 0) return false;  // room was made in between
      channel().yield_served(self, *this);
      return true;
    }
    bool give_back() override { return !accepted; }
    void await_resume() const {
      if (accepted) [[likely]]
        return;
      if (this->refused) throw QueueShutDown();
      detail::throw_cancelled_wait();
    }
    T item;
    bool accepted = false;
  };

  std::shared_ptr<Core> core_;
};

}  // namespace argiope
