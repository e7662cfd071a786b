// Lock, Event, Condition, Semaphore, BoundedSemaphore and Barrier: asyncio's, for tasks of one loop.
//
// A waiter is linked by its own coroutine's frame, so waiting costs no allocation. Waiters are served first come,
// first served. A wait that throws CancelledError has taken nothing, even when its task was cancelled between being
// woken and running on: what was handed to it (a permit, the lock) goes to the next waiter, and so does a
// notification. News that is told to all (an event, the end of a barrier) stays told.
#pragma once

#include <coroutine>
#include <cstddef>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "argiope/async/event_loop.hpp"

namespace argiope {
namespace detail {

// For a wait that ended without what it waited for: its task was cancelled, even if uncancel() was called
// since.
[[noreturn]] inline void throw_cancelled_wait() {
  this_thread.task->check_cancelled();
  throw CancelledError();
}

// A wait at the end of a list until wake_first() or wake_all() of that list.
struct ListWaiter : Waiter {
  void park_in(IntrusiveList<ListWaiter>& list, std::coroutine_handle<> self) {
    TaskCore& task = *this_thread.task;
    task.check_cancelled();
    on_cancel = nullptr;
    task.park(self, *this);
    list.push_back(*this);
  }
  void finish() const {
    if (!woken()) throw_cancelled_wait();
    this_thread.task->check_cancelled();
  }
  // Told apart from being cancelled, and without room of its own: nothing calls on_cancel once the task is ready.
  bool woken() const noexcept { return on_cancel != nullptr; }
  void set_woken() noexcept {
    on_cancel = [](Waiter&) {};
  }
};

// Parks the task in `list`.
struct Pause : ListWaiter {
  explicit Pause(IntrusiveList<ListWaiter>& waiters) noexcept : list(waiters) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> self) { park_in(list, self); }
  void await_resume() const { finish(); }
  IntrusiveList<ListWaiter>& list;
};

// `list` is not empty.
void wake_first(IntrusiveList<ListWaiter>& list) noexcept;
void wake_all(IntrusiveList<ListWaiter>& list) noexcept;

}  // namespace detail

// A flag tasks can wait for.
// Threads: the loop's own. Destroying it with tasks waiting leaves them parked until they are cancelled: do not.
class Event {
  struct WaitAwaiter;

 public:
  explicit Event(bool set = false) noexcept : set_(set) {}
  bool is_set() const noexcept { return set_; }
  // Wakes all waiters, even if clear() follows at once.
  void set() noexcept {
    set_ = true;
    if (!waiters_.empty()) detail::wake_all(waiters_);
  }
  void clear() noexcept { set_ = false; }
  // Suspends until set; returns at once when it is set already.
  // Cancel: throws CancelledError.
  WaitAwaiter wait() noexcept;

 private:
  struct WaitAwaiter : detail::ListWaiter {
    explicit WaitAwaiter(Event& awaited) noexcept : event(awaited) {}
    bool await_ready() const noexcept { return event.set_ && detail::may_go_on(); }
    void await_suspend(std::coroutine_handle<> self) {
      if (event.set_) {
        target = detail::Runnable{detail::this_thread.task};
        set_woken();
        detail::this_thread.task->requeue(self);
      } else {
        park_in(event.waiters_, self);
      }
    }
    void await_resume() const {
      const bool suspended{target};
      if (suspended) finish();
    }
    Event& event;
  };
  static_assert(sizeof(WaitAwaiter) <= 40, "part of every parked task: see docs/decisions.md");

  IntrusiveList<detail::ListWaiter> waiters_;
  bool set_;
};

inline Event::WaitAwaiter Event::wait() noexcept { return WaitAwaiter{*this}; }

// Lets at most `value` holders in at once.
// Threads: the loop's own. Must outlive its permits and its waiters.
class Semaphore {
  struct AcquireAwaiter;

 public:
  // A permit that gives itself back.
  class Permit {
   public:
    explicit Permit(Semaphore& semaphore) noexcept : semaphore_(&semaphore) {}
    Permit(Permit&& other) noexcept : semaphore_(std::exchange(other.semaphore_, nullptr)) {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (semaphore_ != nullptr) semaphore_->release();
    }

   private:
    Semaphore* semaphore_;
  };

  // Throws std::invalid_argument when `value` is negative.
  explicit Semaphore(std::ptrdiff_t value = 1) : value_(static_cast<std::size_t>(value)) {
    if (value < 0) throw std::invalid_argument("a semaphore's value cannot be negative");
  }

  // True when acquire() would have to wait.
  bool locked() const noexcept { return value_ == 0; }
  // How many permits are free.
  std::size_t value() const noexcept { return value_; }
  // Takes a permit; the caller calls release() later. Suspends only when none is free.
  // Cancel: throws CancelledError, and no permit is taken; one that it had been handed goes to the next.
  AcquireAwaiter acquire() noexcept;
  // Hands the permit to the waiter that has waited longest.
  void release() noexcept {
    if (waiters_.empty()) {
      ++value_;
      return;
    }
    grant(static_cast<AcquireAwaiter&>(waiters_.front()));
  }
  // acquire() whose permit gives itself back at the end of its scope: asyncio's `async with`.
  Coro<Permit> scoped() {
    co_await acquire();
    co_return Permit{*this};
  }

 private:
  struct AcquireAwaiter : detail::Waiter {
    explicit AcquireAwaiter(Semaphore& awaited) noexcept : semaphore(awaited) {}
    bool await_ready() noexcept {
      if (semaphore.locked() || !detail::may_go_on()) return false;
      --semaphore.value_;
      return granted = true;
    }
    void await_suspend(std::coroutine_handle<> self) {
      detail::TaskCore& task = *detail::this_thread.task;
      if (semaphore.locked()) {
        task.check_cancelled();
        task.park(self, *this);
        semaphore.waiters_.push_back(*this);
      } else {
        // Its budget is spent: others run first, but the permit is its own already.
        --semaphore.value_;
        task.park(self, *this);
        semaphore.grant(*this);
      }
    }
    void await_resume() const {
      if (!granted) detail::throw_cancelled_wait();
    }
    Semaphore& semaphore;
    bool granted = false;
  };

  // Until it runs on, the permit can be taken back.
  void grant(AcquireAwaiter& waiter) noexcept {
    waiter.granted = true;
    waiter.unlink();
    served_.push_back(waiter);
    waiter.on_cancel = [](detail::Waiter& cancelled) { take_back(static_cast<AcquireAwaiter&>(cancelled)); };
    detail::wake_served(waiter);
  }
  static void take_back(AcquireAwaiter& waiter) noexcept {
    detail::TaskCore& task = *waiter.target.task();
    // Else the semaphore has gone, and nobody can take the permit.
    if (!waiter.linked()) return task.cancel_late();
    waiter.unlink();
    waiter.granted = false;
    task.cancel_served();
    waiter.semaphore.release();
  }

  // A task waits only while no permit is free: a permit given back goes straight to the first.
  IntrusiveList<detail::Waiter> waiters_;
  // Those who have a permit and have not run on since.
  IntrusiveList<detail::Waiter> served_;
  std::size_t value_;
};

inline Semaphore::AcquireAwaiter Semaphore::acquire() noexcept { return AcquireAwaiter{*this}; }

// A semaphore that notices being released more often than it was acquired.
// Threads: the loop's own. Must outlive its permits and its waiters.
class BoundedSemaphore {
 public:
  // Throws std::invalid_argument when `value` is negative.
  explicit BoundedSemaphore(std::ptrdiff_t value = 1) : semaphore_(value), bound_(semaphore_.value()) {}
  // As Semaphore's.
  bool locked() const noexcept { return semaphore_.locked(); }
  std::size_t value() const noexcept { return semaphore_.value(); }
  auto acquire() noexcept { return semaphore_.acquire(); }
  Coro<Semaphore::Permit> scoped() { return semaphore_.scoped(); }
  // Throws std::logic_error when every permit is free already.
  void release() {
    if (semaphore_.value() >= bound_) throw std::logic_error("BoundedSemaphore released too many times");
    semaphore_.release();
  }

 private:
  Semaphore semaphore_;
  std::size_t bound_;
};

// Mutual exclusion among tasks: a semaphore of one that notices being released when free.
// Threads: the loop's own. Must outlive its holder and its waiters.
class Lock {
 public:
  bool locked() const noexcept { return semaphore_.locked(); }
  // As Semaphore's: suspends while it is held; an acquire() that throws CancelledError does not hold it.
  auto acquire() noexcept { return semaphore_.acquire(); }
  // Throws std::logic_error when it is not held.
  void release() {
    if (!locked()) throw std::logic_error("release of a lock that is not held");
    semaphore_.release();
  }
  Coro<Semaphore::Permit> scoped() { return semaphore_.scoped(); }

 private:
  Semaphore semaphore_{1};
};

// Waiting, with a lock held, for a state that others bring about and tell of.
//
//   const auto held = co_await condition.scoped();
//   co_await condition.wait_for([&] { return !items.empty(); });
//
// Errors:  std::logic_error from wait(), notify() and notify_all() when the lock is not held.
// Order:   those who wait are notified, and then get the lock, first come, first served.
// Threads: the loop's own. Must outlive its waiters; so must the lock that was given to it.
class Condition {
 public:
  Condition() noexcept : lock_(own_lock_) {}
  // Several conditions may share a lock.
  explicit Condition(Lock& lock) noexcept : lock_(lock) {}
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  // The lock's.
  bool locked() const noexcept { return lock_.locked(); }
  auto acquire() noexcept { return lock_.acquire(); }
  void release() { lock_.release(); }
  Coro<Semaphore::Permit> scoped() { return lock_.scoped(); }

  // Gives the lock up, suspends until notified, and has the lock again when it returns or throws.
  // Cancel: throws CancelledError once it has the lock again; a notification it had got goes to the next waiter.
  Coro<void> wait();
  // wait() until `predicate()` is true, which is asked with the lock held; what it returned last. With a predicate that
  // is true at once the lock need not be held.
  template <class Predicate, class Result = std::decay_t<std::invoke_result_t<Predicate&>>>
  Coro<Result> wait_for(Predicate predicate) {
    for (;;) {
      Result result = predicate();
      if (result) co_return result;
      co_await wait();
    }
  }

  // Wakes up to `n` waiters. They go on when the caller has released the lock.
  void notify(std::size_t n = 1);
  void notify_all();

 private:
  void require_locked(const char* what) const;

  Lock own_lock_;
  Lock& lock_;
  IntrusiveList<detail::ListWaiter> waiters_;
};

// A point that tasks pass together: wait() lets no task on until `parties` tasks have come.
//
// Errors:  BrokenBarrierError from wait() when the barrier is broken, or is broken or reset before the caller was on
//          its way again.
// Cancel:  a cancelled wait() throws CancelledError and counts no longer; the others go on waiting.
// Order:   a task that comes while those of the last round are still leaving waits for the next round.
// Threads: the loop's own. Must outlive its waiters.
class Barrier {
 public:
  // Throws std::invalid_argument when `parties` is less than 1.
  explicit Barrier(std::ptrdiff_t parties);
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  // Suspends until `parties` tasks wait. The number of the caller in the order of coming, from 0.
  Coro<std::size_t> wait();
  // Ends every wait with BrokenBarrierError, and mends a broken barrier. (Neither this nor abort() suspends.)
  void reset() noexcept;
  // Breaks the barrier: every wait() throws BrokenBarrierError, those under way included, until reset().
  void abort() noexcept;

  std::size_t parties() const noexcept { return parties_; }
  // How many have come in this round.
  std::size_t n_waiting() const noexcept { return state_ == State::filling ? inside_ : 0; }
  bool broken() const noexcept { return state_ == State::broken; }

 private:
  // From draining and resetting back to filling when the last has left.
  enum class State { filling, draining, resetting, broken };
  class Visit;

  void wake_everybody() noexcept;

  std::size_t parties_;
  // Those who have come and not yet left.
  std::size_t inside_ = 0;
  State state_ = State::filling;
  IntrusiveList<detail::ListWaiter> waiting_;
  // Those who have come too early for the next round.
  IntrusiveList<detail::ListWaiter> outside_;
};

}  // namespace argiope
