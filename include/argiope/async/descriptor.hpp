// Waiting until a descriptor can be read or written: readable() and writable(), and what streams and processes wait by.
// For a callback instead of a task see EventLoop::add_reader.
#pragma once

#include <coroutine>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/async/sync.hpp"

namespace argiope {
namespace detail {

// Waits by a Watch that its owner keeps. One wait at a time for each interest.
struct WatchAwaiter : Waiter {
  WatchAwaiter(Watch& watch, Interest interest) noexcept : watch_(&watch), interest_(interest) {
    on_cancel = [](Waiter& self) {
      static_cast<WatchAwaiter&>(self).stop();
      self.target.task()->wake_cancelled(self);
    };
  }
  ~WatchAwaiter() { stop(); }
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> self) {
    TaskCore& task = *this_thread.task;
    task.check_cancelled();
    watch_->start(interest_, [this] { wake(); });
    waiting_ = true;
    task.park(self, *this);
  }
  void await_resume() const {
    if (!woken_) throw_cancelled_wait();
    this_thread.task->check_cancelled();
  }
  // Ends the wait as if the descriptor were ready; for an owner who is about to destroy the Watch.
  void wake() noexcept {
    if (!waiting_) return;
    stop();
    woken_ = true;
    wake_task(*this);
  }

 private:
  void stop() noexcept {
    if (std::exchange(waiting_, false)) watch_->stop(interest_);
  }

  Watch* watch_;
  Interest interest_;
  bool waiting_ = false;
  bool woken_ = false;  // told apart from being cancelled
};

// Waits by a Watch of the loop's, which lasts no longer than the wait.
struct DescriptorAwaiter : Waiter {
  DescriptorAwaiter(int fd, Interest interest) noexcept : fd_(fd), interest_(interest) {
    on_cancel = [](Waiter& self) {
      static_cast<DescriptorAwaiter&>(self).give_up();
      self.target.task()->wake_cancelled(self);
    };
  }
  // Before it is awaited.
  DescriptorAwaiter(DescriptorAwaiter&& other) noexcept : DescriptorAwaiter(other.fd_, other.interest_) {}
  ~DescriptorAwaiter() { give_up(); }
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> self) {
    TaskCore& task = *this_thread.task;
    task.check_cancelled();
    Watch& watch = this_thread.loop->claim(fd_, interest_);
    loop_ = this_thread.loop;
    watch.start(interest_, [this] {
      give_up();
      woken_ = true;
      wake_task(*this);
    });
    task.park(self, *this);
  }
  void await_resume() const {
    if (!woken_) throw_cancelled_wait();
    this_thread.task->check_cancelled();
  }

 private:
  void give_up() noexcept {
    if (EventLoop* loop = std::exchange(loop_, nullptr)) loop->give_up(fd_, interest_);
  }

  int fd_;
  Interest interest_;
  EventLoop* loop_ = nullptr;
  bool woken_ = false;
};

}  // namespace detail

// co_await readable(fd) returns when a read from `fd` would not block: there are bytes, a connection to accept, the end
// of the input, a hang-up or an error, which the read then tells of. Likewise writable(fd) for a write. A file on disk
// always is both.
//
// Suspends: always.
// Errors:   std::system_error when `fd` is not open, or is watched already; std::logic_error when another task
//           or a reader (writer) of this loop waits for the same, and on a backend without I/O (virtual time).
// Cancel:   throws CancelledError; nothing is read or written, so nothing can be lost.
// Lifetime: `fd` stays the caller's, who closes it only when no task waits for it. While waited for it is non-blocking.
// Threads:  the loop's own.
inline detail::DescriptorAwaiter readable(int fd) noexcept { return {fd, Interest::read}; }
inline detail::DescriptorAwaiter writable(int fd) noexcept { return {fd, Interest::write}; }

}  // namespace argiope
