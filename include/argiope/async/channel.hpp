// Channel<T>: a queue between threads. Tasks of several loops put into it and get from it.
//
// One mutex guards the items and the lists of who waits. A task that waits on another loop is served under the mutex and
// then woken by its own loop: those served in between are collected, so a burst costs each loop one wake-up.
#pragma once

#include <coroutine>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/ring_buffer.hpp"

namespace argiope {
namespace detail {

// The part of a channel that does not depend on its type: who waits, on which loop, and how it is woken.
// Members that say so are called with `mutex` held.
class ChannelCore : public std::enable_shared_from_this<ChannelCore> {
 public:
  // A loop with tasks that have waited here.
  struct Port;

  struct ChannelWaiter : Waiter {
    explicit ChannelWaiter(ChannelCore& awaited) noexcept : core(&awaited) {}
    ~ChannelWaiter() {
      if (parked) leave();
    }
    // Out of the list it is in, on its own loop's thread. Returns with the mutex free.
    void leave() noexcept;
    ChannelCore* core;
    Port* port = nullptr;
    // Its own loop's to read and write: linked in a list that other threads change.
    bool parked = false;
    bool refused = false;
  };
  using Waiters = IntrusiveList<Waiter>;

  // With the mutex held: parks the running task at the end of `waiters`.
  void park(std::coroutine_handle<> self, ChannelWaiter& waiter, Waiters& waiters);
  // With the mutex held: wakes a waiter that was served or refused; at once, or through its own loop.
  void wake(ChannelWaiter& waiter);
  // With the mutex held: everybody in `waiters` gets QueueShutDown.
  void refuse_all(Waiters& waiters);

  std::mutex mutex;

  ChannelCore();
  ~ChannelCore();

 private:
  class Delivery;

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
// Cancel:   as Queue's: a cancelled put() has put nothing, a cancelled get() has taken nothing, and one that was served
//           before, though it does not know yet, returns normally.
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

  // No more put(); get() goes on until the channel is empty. Who waits gets QueueShutDown. `immediate` also drops what is
  // queued. May be called again.
  void shutdown(bool immediate = false) {
    RingBuffer<T> dropped;
    std::lock_guard lock(core_->mutex);
    core_->shut_down = true;
    if (immediate) dropped.swap(core_->items);
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
        items.push_back(std::move(item));
        return;
      }
      auto& getter = static_cast<GetAwaiter&>(getters.front());
      getter.item.emplace(std::move(item));
      wake(getter);
    }
    // There is an item.
    T take() {
      T item = items.pop_front();
      if (!putters.empty()) {
        auto& putter = static_cast<PutAwaiter&>(putters.front());
        items.push_back(std::move(putter.item));
        putter.accepted = true;
        wake(putter);
      }
      return item;
    }

    std::size_t maxsize;
    bool shut_down = false;
    RingBuffer<T> items;
    detail::ChannelCore::Waiters getters;
    detail::ChannelCore::Waiters putters;
  };

  struct GetAwaiter : detail::ChannelCore::ChannelWaiter {
    explicit GetAwaiter(Core& from) noexcept : ChannelWaiter(from) {}
    Core& channel() const noexcept { return static_cast<Core&>(*core); }
    // With the mutex held.
    bool try_get() {
      if (!channel().items.empty()) {
        item.emplace(channel().take());
        return true;
      }
      return refused = channel().shut_down;
    }
    bool await_ready() {
      std::lock_guard lock(channel().mutex);
      return try_get() && detail::may_go_on();
    }
    bool await_suspend(std::coroutine_handle<> self) {
      detail::TaskCore& task = *detail::this_thread.task;
      if (item || refused) {
        task.requeue(self);
        return true;
      }
      task.check_cancelled();
      std::lock_guard lock(channel().mutex);
      if (try_get()) return false;
      channel().park(self, *this, channel().getters);
      return true;
    }
    T await_resume() {
      if (item) [[likely]]
        return std::move(*item);
      if (refused) throw QueueShutDown();
      detail::throw_cancelled_wait();
    }
    std::optional<T> item;
  };

  struct PutAwaiter : detail::ChannelCore::ChannelWaiter {
    PutAwaiter(Core& into, T value) : ChannelWaiter(into), item(std::move(value)) {}
    Core& channel() const noexcept { return static_cast<Core&>(*core); }
    // With the mutex held.
    bool try_put() {
      if (channel().shut_down) return refused = true;
      if (channel().full()) return false;
      channel().accept(item);
      return accepted = true;
    }
    bool await_ready() {
      std::lock_guard lock(channel().mutex);
      return try_put() && detail::may_go_on();
    }
    bool await_suspend(std::coroutine_handle<> self) {
      detail::TaskCore& task = *detail::this_thread.task;
      if (accepted || refused) {
        task.requeue(self);
        return true;
      }
      task.check_cancelled();
      std::lock_guard lock(channel().mutex);
      if (try_put()) return false;
      channel().park(self, *this, channel().putters);
      return true;
    }
    void await_resume() const {
      if (accepted) [[likely]]
        return;
      if (refused) throw QueueShutDown();
      detail::throw_cancelled_wait();
    }
    T item;
    bool accepted = false;
  };

  std::shared_ptr<Core> core_;
};

}  // namespace argiope
