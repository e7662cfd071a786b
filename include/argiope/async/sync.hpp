// Event, Lock and Semaphore: asyncio's, for tasks of one loop.
//
// Waiting costs no allocation. Waiters are served first come, first served. What is handed to a waiter
// (a permit, the lock) stays handed: if its task is cancelled between being woken and running on, the
// acquire succeeds and the cancellation is delivered at the task's next await, so nothing is lost.
#pragma once

#include <coroutine>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "argiope/async/event_loop.hpp"

namespace argiope {

// A flag tasks can wait for.
// Threads: the loop's own. Destroying it with tasks waiting leaves them parked until they are cancelled: do not.
class Event {
  struct WaitAwaiter;

 public:
  explicit Event(bool set = false) noexcept : set_(set) {}
  bool is_set() const noexcept { return set_; }
  // Wakes everybody who waits.
  void set() noexcept {
    set_ = true;
    while (!waiters_.empty()) detail::wake_task(waiters_.front());
  }
  void clear() noexcept { set_ = false; }
  // Suspends until set; returns at once when it is set already.
  // Cancel: throws CancelledError.
  WaitAwaiter wait() noexcept;

 private:
  struct WaitAwaiter : detail::Waiter {
    explicit WaitAwaiter(Event& awaited) noexcept : event(awaited) {}
    bool await_ready() const noexcept { return event.set_ && detail::may_go_on(); }
    void await_suspend(std::coroutine_handle<> self) {
      detail::TaskCore& task = *detail::this_thread.task;
      if (event.set_) {
        task.requeue(self);
      } else {
        task.check_cancelled();
        task.park(self, *this);
        event.waiters_.push_back(*this);
      }
      suspended = true;
    }
    void await_resume() const {
      if (suspended) detail::this_thread.task->check_cancelled();
    }
    Event& event;
    bool suspended = false;
  };

  IntrusiveList<detail::Waiter> waiters_;
  bool set_;
};

inline Event::WaitAwaiter Event::wait() noexcept { return WaitAwaiter{*this}; }

// Lets at most `value` holders in at once.
// Threads: the loop's own.
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

  explicit Semaphore(std::size_t value) noexcept : value_(value) {}

  // True when acquire() would have to wait.
  bool locked() const noexcept { return value_ == 0 || !waiters_.empty(); }
  // Takes a permit; the caller calls release() later. Suspends only when none is free.
  // Cancel: throws CancelledError, and no permit is taken.
  AcquireAwaiter acquire() noexcept;
  void release() noexcept {
    if (waiters_.empty()) {
      ++value_;
      return;
    }
    auto& first = static_cast<AcquireAwaiter&>(waiters_.front());
    first.granted = true;
    detail::wake_task(first);
  }
  // acquire() whose permit gives itself back at the end of its scope.
  Coro<Permit> scoped() {
    co_await acquire();
    co_return Permit{*this};
  }

 private:
  struct AcquireAwaiter : detail::Waiter {
    explicit AcquireAwaiter(Semaphore& awaited) noexcept : semaphore(awaited) {}
    bool await_ready() noexcept {
      if (semaphore.locked()) return false;
      --semaphore.value_;
      granted = true;
      return detail::may_go_on();
    }
    void await_suspend(std::coroutine_handle<> self) {
      detail::TaskCore& task = *detail::this_thread.task;
      if (granted) {
        task.requeue(self);
      } else {
        task.check_cancelled();
        task.park(self, *this);
        semaphore.waiters_.push_back(*this);
      }
    }
    void await_resume() const {
      if (!granted) detail::this_thread.task->check_cancelled();
    }
    Semaphore& semaphore;
    bool granted = false;
  };

  IntrusiveList<detail::Waiter> waiters_;
  std::size_t value_;
};

inline Semaphore::AcquireAwaiter Semaphore::acquire() noexcept { return AcquireAwaiter{*this}; }

// Mutual exclusion among tasks: a semaphore of one that notices being released when free.
class Lock {
 public:
  bool locked() const noexcept { return semaphore_.locked(); }
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

}  // namespace argiope
