// Queue, PriorityQueue and LifoQueue: asyncio's queues between tasks of one loop.
//
// One template and three ways to store items. An item is handed straight to the getter that has waited longest;
// waiting costs no allocation.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/ring_buffer.hpp"

namespace argiope {
namespace detail {

template <class T>
class FifoItems {
 public:
  bool empty() const noexcept { return items_.empty(); }
  std::size_t size() const noexcept { return items_.size(); }
  void push(T item) { items_.push_back(std::move(item)); }
  T pop() { return items_.pop_front(); }
  void clear() noexcept { items_.clear(); }

 private:
  RingBuffer<T> items_;
};

template <class T>
class LifoItems {
 public:
  bool empty() const noexcept { return items_.empty(); }
  std::size_t size() const noexcept { return items_.size(); }
  void push(T item) { items_.push_back(std::move(item)); }
  T pop() { return items_.pop_back(); }
  void clear() noexcept { items_.clear(); }

 private:
  RingBuffer<T> items_;
};

// Smallest first by `Less`, which must not throw; equals in the order they were put.
template <class T, class Less>
class PriorityItems {
 public:
  explicit PriorityItems(Less less = Less{}) : less_(std::move(less)) {}
  bool empty() const noexcept { return heap_.empty(); }
  std::size_t size() const noexcept { return heap_.size(); }
  void push(T item) {
    heap_.push_back({std::move(item), sequence_++});
    std::push_heap(heap_.begin(), heap_.end(), Later{less_});
  }
  T pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{less_});
    T item = std::move(heap_.back().item);
    heap_.pop_back();
    return item;
  }
  void clear() noexcept { heap_.clear(); }

 private:
  struct Entry {
    T item;
    std::uint64_t sequence;
  };
  struct Later {
    const Less& less;
    bool operator()(const Entry& a, const Entry& b) const {
      if (less(b.item, a.item)) return true;
      if (less(a.item, b.item)) return false;
      return a.sequence > b.sequence;
    }
  };
  Less less_;
  std::vector<Entry> heap_;
  std::uint64_t sequence_ = 0;
};

}  // namespace detail

// A queue of at most `maxsize` items (0 or less: no limit).
//
// Suspends: put() while full, get() while empty, join() while items are unfinished.
// Errors:   QueueFull, QueueEmpty from the _nowait forms; QueueShutDown (CPython 3.13's rules); std::logic_error
//           from a task_done() too many. An item that could not be put is destroyed: ask full() to keep it.
// Cancel:   a cancelled put() has put nothing, a cancelled get() has taken nothing. One that was served before the
//           cancellation reached it returns normally, and the task is cancelled at its next await.
// Order:    waiters are served first come, first served. A getter that waits gets the next item put, in whatever order
//           the queue keeps those it stores.
// Threads:  the loop's own (channel.hpp has the queue between threads). Must outlive the tasks that wait on it.
template <class T, class Items>
class BasicQueue {
  struct GetAwaiter;
  struct PutAwaiter;

 public:
  // `order`: the comparator object of a PriorityQueue.
  template <class... Order>
  explicit BasicQueue(std::ptrdiff_t maxsize = 0, Order&&... order)
      : items_(std::forward<Order>(order)...), maxsize_(maxsize > 0 ? static_cast<std::size_t>(maxsize) : 0) {}
  BasicQueue(const BasicQueue&) = delete;
  BasicQueue& operator=(const BasicQueue&) = delete;

  std::size_t qsize() const noexcept { return items_.size(); }
  // 0 when there is no limit.
  std::size_t maxsize() const noexcept { return maxsize_; }
  bool empty() const noexcept { return items_.empty(); }
  bool full() const noexcept { return maxsize_ != 0 && items_.size() >= maxsize_; }

  PutAwaiter put(T item) { return PutAwaiter{*this, std::move(item)}; }
  void put_nowait(T item) {
    if (shut_down_) throw QueueShutDown();
    if (full()) throw QueueFull();
    accept(std::move(item));
  }
  GetAwaiter get() { return GetAwaiter{*this}; }
  T get_nowait() {
    if (items_.empty()) {
      if (shut_down_) throw QueueShutDown();
      throw QueueEmpty();
    }
    return take();
  }

  // One item that was got has been dealt with.
  void task_done() {
    if (unfinished_ == 0) throw std::logic_error("task_done() called more often than there were items");
    if (--unfinished_ == 0) all_done_.set();
  }
  // Until every item that was ever put has had its task_done().
  auto join() noexcept { return all_done_.wait(); }

  // No more put(); get() goes on until the queue is empty. Who waits in put() or get() gets QueueShutDown, but a getter
  // that was handed an item before keeps it. `immediate` also drops what is queued, counting it as done.
  void shutdown(bool immediate = false) {
    shut_down_ = true;
    if (immediate) {
      unfinished_ -= std::min(unfinished_, items_.size());
      items_.clear();
      if (unfinished_ == 0) all_done_.set();
    }
    // Getters wait only while the queue is empty, so there is nothing left for them.
    while (!getters_.empty()) refuse(static_cast<GetAwaiter&>(getters_.front()));
    while (!putters_.empty()) refuse(static_cast<PutAwaiter&>(putters_.front()));
  }

 private:
  struct GetAwaiter : detail::Waiter {
    explicit GetAwaiter(BasicQueue& from) noexcept : queue(from) {}
    bool await_ready() {
      if (!queue.items_.empty()) {
        item.emplace(queue.take());
        return detail::may_go_on();
      }
      refused = queue.shut_down_;
      return refused;
    }
    void await_suspend(std::coroutine_handle<> self) {
      detail::TaskCore& task = *detail::this_thread.task;
      if (item) {
        task.requeue(self);
      } else {
        task.check_cancelled();
        task.park(self, *this);
        queue.getters_.push_back(*this);
      }
    }
    T await_resume() {
      if (item) [[likely]]
        return std::move(*item);
      if (refused) throw QueueShutDown();
      detail::throw_cancelled_wait();
    }
    BasicQueue& queue;
    std::optional<T> item;
    bool refused = false;
  };

  struct PutAwaiter : detail::Waiter {
    PutAwaiter(BasicQueue& into, T value) : queue(into), item(std::move(value)) {}
    bool await_ready() {
      if (queue.shut_down_) {
        refused = true;
        return true;
      }
      if (queue.full()) return false;
      queue.accept(std::move(item));
      accepted = true;
      return detail::may_go_on();
    }
    void await_suspend(std::coroutine_handle<> self) {
      detail::TaskCore& task = *detail::this_thread.task;
      if (accepted) {
        task.requeue(self);
      } else {
        task.check_cancelled();
        task.park(self, *this);
        queue.putters_.push_back(*this);
      }
    }
    void await_resume() {
      if (accepted) [[likely]]
        return;
      if (refused) throw QueueShutDown();
      detail::throw_cancelled_wait();
    }
    BasicQueue& queue;
    T item;
    bool accepted = false;
    bool refused = false;
  };

  void accept(T item) {
    if (getters_.empty()) {
      items_.push(std::move(item));
    } else {
      // Getters wait only while the queue is empty: this item is the next one in any order.
      auto& getter = static_cast<GetAwaiter&>(getters_.front());
      getter.item.emplace(std::move(item));
      detail::wake_task(getter);
    }
    if (unfinished_++ == 0) all_done_.clear();
  }

  T take() {
    T item = items_.pop();
    if (!putters_.empty()) {
      auto& putter = static_cast<PutAwaiter&>(putters_.front());
      items_.push(std::move(putter.item));
      if (unfinished_++ == 0) all_done_.clear();
      putter.accepted = true;
      detail::wake_task(putter);
    }
    return item;
  }

  template <class Awaiter>
  void refuse(Awaiter& waiting) noexcept {
    waiting.refused = true;
    detail::wake_task(waiting);
  }

  Items items_;
  std::size_t maxsize_;
  std::size_t unfinished_ = 0;
  bool shut_down_ = false;
  IntrusiveList<detail::Waiter> getters_;
  IntrusiveList<detail::Waiter> putters_;
  Event all_done_{true};
};

// First in, first out.
template <class T>
using Queue = BasicQueue<T, detail::FifoItems<T>>;
// Last in, first out.
template <class T>
using LifoQueue = BasicQueue<T, detail::LifoItems<T>>;
// The smallest by `Less` first; equals first in, first out.
template <class T, class Less = std::less<T>>
using PriorityQueue = BasicQueue<T, detail::PriorityItems<T, Less>>;

}  // namespace argiope
