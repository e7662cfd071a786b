// Channel<T>: a queue between threads. Tasks of several loops put into it and get from it.
//
// One mutex guards the items and the lists of who waits. A task that waits on another loop is served under the mutex
// and then woken by its own loop: those served in between are collected, so a burst costs each loop one wake-up.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/sync.hpp"

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
