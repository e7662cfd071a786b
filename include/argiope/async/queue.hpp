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
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/detail/ring_buffer.hpp"

namespace argiope {
namespace detail {

// Each of these keeps the items of a queue in its own order. A *place* is when an item came, among those that were
// handed out: pop(place) tells it, next_place() gives one to an item that is handed to a getter without being stored,
// and put_back() returns an item to where it was, in O(log n) (LifoItems: O(n)).

template <class T>
class FifoItems {
 public:
  bool empty() const noexcept { return items_.empty() && returned_.empty(); }
  std::size_t size() const noexcept { return items_.size() + returned_.size(); }
  void push(T item) { items_.push_back(std::move(item)); }
  T pop() {
    if (!returned_.empty()) [[unlikely]]
      return pop_returned();
    return items_.pop_front();
  }
  T pop(std::uint64_t& place) {
    place = returned_.empty() ? next_place() : returned_.begin()->first;
    return pop();
  }
  std::uint64_t next_place() noexcept { return places_++; }
  [[gnu::noinline]] void put_back(T&& item, std::uint64_t place) { returned_.try_emplace(place, std::move(item)); }
  void clear() noexcept {
    items_.clear();
    returned_.clear();
  }
  void swap(FifoItems& other) noexcept {
    items_.swap(other.items_);
    returned_.swap(other.returned_);
    std::swap(places_, other.places_);
  }

 private:
  [[gnu::noinline]] T pop_returned() { return std::move(returned_.extract(returned_.begin()).mapped()); }

  RingBuffer<T> items_;
  // All of them came before those in items_.
  std::map<std::uint64_t, T> returned_;
  std::uint64_t places_ = 0;
};

template <class T>
class LifoItems {
 public:
  bool empty() const noexcept { return stack_.empty(); }
  std::size_t size() const noexcept { return stack_.size(); }
  void push(T item) { stack_.push_back({std::move(item), next_place()}); }
  T pop() {
    T item = std::move(stack_.back().item);
    stack_.pop_back();
    return item;
  }
  T pop(std::uint64_t& place) {
    place = stack_.back().place;
    return pop();
  }
  std::uint64_t next_place() noexcept { return places_++; }
  void put_back(T&& item, std::uint64_t place) {
    const auto behind = std::ranges::upper_bound(stack_, place, {}, &Entry::place);
    stack_.insert(behind, {std::move(item), place});
  }
  void clear() noexcept { stack_.clear(); }

 private:
  struct Entry {
    T item;
    std::uint64_t place;
  };
  std::vector<Entry> stack_;
  std::uint64_t places_ = 0;
};

// Smallest first by `Less`, which must not throw; equals in the order they were put.
template <class T, class Less>
class PriorityItems {
 public:
  explicit PriorityItems(Less less = Less{}) : less_(std::move(less)) {}
  bool empty() const noexcept { return heap_.empty(); }
  std::size_t size() const noexcept { return heap_.size(); }
  void push(T item) { put_back(std::move(item), next_place()); }
  T pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{less_});
    T item = std::move(heap_.back().item);
    heap_.pop_back();
    return item;
  }
  T pop(std::uint64_t& place) {
    place = heap_.front().place;
    return pop();
  }
  std::uint64_t next_place() noexcept { return places_++; }
  void put_back(T&& item, std::uint64_t place) {
    heap_.push_back({std::move(item), place});
    std::push_heap(heap_.begin(), heap_.end(), Later{less_});
  }
  void clear() noexcept { heap_.clear(); }

 private:
  struct Entry {
    T item;
    std::uint64_t place;
  };
  struct Later {
    const Less& less;
    bool operator()(const Entry& a, const Entry& b) const {
      if (less(b.item, a.item)) return true;
      if (less(a.item, b.item)) return false;
      return a.place > b.place;
    }
  };
  Less less_;
  std::vector<Entry> heap_;
  std::uint64_t places_ = 0;
};

}  // namespace detail

// A queue of at most `maxsize` items (0 or less: no limit).
//
// Suspends: put() while full, get() while empty, join() while items are unfinished.
// Errors:   QueueFull, QueueEmpty from the _nowait forms; QueueShutDown (CPython 3.13's rules); std::logic_error
//           from a task_done() too many. An item that could not be put is destroyed: ask full() to keep it.
// Cancel:   a put() that throws CancelledError has put nothing, a get() that does has taken nothing, even when its task
//           had been served and only not run on yet: the item goes to the next getter, or back to its place. (For a
//           moment the queue may then hold more than `maxsize`.) A put() that was let in before returns normally: the
//           task's next await throws, and a task without one ends as if it had not been cancelled.
// Order:    waiters are served first come, first served. A getter that waits gets the next item put, in whatever order
//           the queue keeps those it stores.
// Threads:  the loop's own (Channel is the queue between threads). Must outlive the tasks that wait on it.
template <class T, class Items>
class BasicQueue {
  struct GetAwaiter;
  struct PutAwaiter;

 public:
  // `order`: the comparator object of a PriorityQueue.
  template <class... Order>
  explicit BasicQueue(std::ptrdiff_t maxsize = 0, Order&&... order)
      : items_(std::forward<Order>(order)...), room_(maxsize > 0 ? static_cast<std::size_t>(maxsize) : kUnlimited) {}
  BasicQueue(const BasicQueue&) = delete;
  BasicQueue& operator=(const BasicQueue&) = delete;

  std::size_t qsize() const noexcept { return items_.size(); }
  // 0 when there is no limit.
  std::size_t maxsize() const noexcept { return room_ == kUnlimited ? 0 : room_; }
  bool empty() const noexcept { return items_.empty(); }
  bool full() const noexcept { return items_.size() >= room_; }

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
    T item = items_.pop();
    let_next_in();
    return item;
  }

  // One item that was got has been dealt with.
  void task_done() {
    if (unfinished_ == 0) throw std::logic_error("task_done() called more often than there were items");
    if (--unfinished_ == 0) all_done_.set();
  }
  // Until every item that was ever put has had its task_done().
  auto join() noexcept { return all_done_.wait(); }

  // No more put(); get() goes on until the queue is empty. Waiting put() and get() calls throw QueueShutDown, but a
  // getter that was handed an item before keeps it. `immediate` also drops what is queued, counting it as done.
  void shutdown(bool immediate = false) {
    shut_down_ = true;
    if (immediate) {
      drops_ = true;
      unfinished_ -= std::min(unfinished_, items_.size());
      items_.clear();
      if (unfinished_ == 0) all_done_.set();
    }
    // Getters wait only while the queue is empty, so there is nothing left for them.
    while (!getters_.empty()) refuse(static_cast<GetAwaiter&>(getters_.front()));
    while (!putters_.empty()) refuse(static_cast<PutAwaiter&>(putters_.front()));
  }

 private:
  static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

  struct GetAwaiter : detail::Waiter {
    explicit GetAwaiter(BasicQueue& from) noexcept : queue(from) {}
    bool await_ready() {
      if (queue.items_.empty()) return refused = queue.shut_down_;
      if (!detail::may_go_on()) return false;
      item.emplace(queue.items_.pop());
      queue.let_next_in();
      return true;
    }
    void await_suspend(std::coroutine_handle<> self) {
      detail::TaskCore& task = *detail::this_thread.task;
      if (queue.items_.empty()) {
        task.check_cancelled();
        task.park(self, *this);
        queue.getters_.push_back(*this);
        return;
      }
      // Its budget is spent: others run first, but the item is its own already.
      item.emplace(queue.items_.pop(place));
      queue.let_next_in();
      task.park(self, *this);
      queue.serve(*this);
    }
    T await_resume() {
      if (item) [[likely]]
        return std::move(*item);
      if (refused) throw QueueShutDown();
      detail::throw_cancelled_wait();
    }
    BasicQueue& queue;
    std::optional<T> item;
    // The item's, when it was got by waiting.
    std::uint64_t place = 0;
    bool refused = false;
  };

  struct PutAwaiter : detail::Waiter {
    PutAwaiter(BasicQueue& into, T value) : queue(into), item(std::move(value)) {}
    bool await_ready() {
      if (queue.shut_down_) return refused = true;
      if (queue.full() || !detail::may_go_on()) return false;
      queue.accept(std::move(item));
      return accepted = true;
    }
    void await_suspend(std::coroutine_handle<> self) {
      detail::TaskCore& task = *detail::this_thread.task;
      if (queue.full()) {
        task.check_cancelled();
        task.park(self, *this);
        queue.putters_.push_back(*this);
        return;
      }
      // Its budget is spent: others run first.
      queue.accept(std::move(item));
      task.park(self, *this);
      let_in();
    }
    void await_resume() {
      if (accepted) [[likely]]
        return;
      if (refused) throw QueueShutDown();
      detail::throw_cancelled_wait();
    }
    // Its item has been put, which nothing takes back.
    void let_in() noexcept {
      accepted = true;
      this->unlink();
      this->on_cancel = [](detail::Waiter& waiter) { waiter.target.task()->cancel_late(); };
      detail::wake_served(*this);
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
      hand_over(std::move(item), items_.next_place());
    }
    if (unfinished_++ == 0) all_done_.clear();
  }

  void hand_over(T item, std::uint64_t place) {
    auto& getter = static_cast<GetAwaiter&>(getters_.front());
    getter.item.emplace(std::move(item));
    getter.place = place;
    serve(getter);
  }

  // Until it runs on, what it has been given can be taken back.
  void serve(GetAwaiter& getter) noexcept {
    getter.unlink();
    served_.push_back(getter);
    getter.on_cancel = [](detail::Waiter& waiter) { take_back(static_cast<GetAwaiter&>(waiter)); };
    detail::wake_served(getter);
  }
  static void take_back(GetAwaiter& getter) {
    detail::TaskCore& task = *getter.target.task();
    // Where the queue has gone, or drops what it has, the item has nowhere to go.
    if (!getter.linked() || getter.queue.drops_) return task.cancel_late();
    BasicQueue& queue = getter.queue;
    if (queue.getters_.empty()) {
      queue.items_.put_back(std::move(*getter.item), getter.place);
    } else {
      queue.hand_over(std::move(*getter.item), getter.place);
    }
    getter.unlink();
    getter.item.reset();
    task.cancel_served();
  }

  // After an item has gone, the put that has waited longest may go on.
  void let_next_in() {
    if (putters_.empty() || full()) return;
    auto& putter = static_cast<PutAwaiter&>(putters_.front());
    accept(std::move(putter.item));
    putter.let_in();
  }

  template <class Awaiter>
  void refuse(Awaiter& waiting) noexcept {
    waiting.refused = true;
    detail::wake_task(waiting);
  }

  Items items_;
  std::size_t room_;
  std::size_t unfinished_ = 0;
  bool shut_down_ = false;
  // Shut down, and nothing is stored any more.
  bool drops_ = false;
  IntrusiveList<detail::Waiter> getters_;
  IntrusiveList<detail::Waiter> putters_;
  // Getters that have an item and have not run on since.
  IntrusiveList<detail::Waiter> served_;
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
