// Real time and real sockets, by Boost.Asio's io_context; and asio_op, which awaits what Asio does.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/error_code.hpp>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"

namespace argiope {

// Timers are kept by the loop, to the microsecond (a timerfd, not epoll's millisecond timeout); the io_context
// runs without locks, so only the loop's own thread may touch it or objects bound to it.
//
// Errors:  the constructors throw std::system_error when descriptors run out.
// Threads: the loop's own, but for wake(), which is also safe in a signal handler.
class AsioBackend final : public IoBackend {
 public:
  // With the machine's clock.
  AsioBackend();
  // `clock` must outlive the backend, so it cannot be a temporary.
  explicit AsioBackend(const Clock& clock);
  explicit AsioBackend(const Clock&&) = delete;
  ~AsioBackend() override;

  const Clock& clock() const noexcept override { return clock_; }
  void poll() override;
  void wait(TimePoint until, bool outside_work) override;
  // While it is watched, `fd` is non-blocking; afterwards it is again as it was found.
  std::unique_ptr<Watch> watch(int fd) override;
  void wake() noexcept override;

  boost::asio::io_context& context() noexcept { return context_; }

  // For a foreign loop that drives ours: a descriptor that is readable (poll it, never read it) when wake() was called
  // or I/O is ready. It tells nothing of timers and of what is ready already: ask next_deadline() for those, before
  // every wait. examples/libuv_loop.hpp shows how. It stays the backend's.
  int wake_up_descriptor();

 private:
  // Null: the machine's.
  explicit AsioBackend(const Clock* clock);
  void watch_wake_up();
  void watch_timer();
  void arm_timer(TimePoint until);

  SystemClock system_clock_;
  const Clock& clock_;
  boost::asio::io_context context_;
  boost::asio::posix::stream_descriptor wake_up_;
  boost::asio::posix::stream_descriptor timer_;
  TimePoint armed_for_ = kNever;
};

// The bridge from Asio's completion handlers to co_await.

namespace detail {

// An operation under way: whom to wake when it is over, and memory for its handler. Apart from the awaiting frame,
// because Asio holds on to a handler until its io_context ends, and a loop may be destroyed before that.
class AsioOperation {
 public:
  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* block, std::size_t bytes) noexcept { free_frame(block, bytes); }

  // Null once the awaiting frame has gone.
  Waiter* awaiter = nullptr;

  void retain() noexcept { ++references_; }
  void release() noexcept {
    if (--references_ == 0) delete this;
  }
  // One handler fits; a second or a large request goes to the heap.
  void* allocate(std::size_t bytes) {
    if (!storage_used_ && bytes <= sizeof storage_) {
      storage_used_ = true;
      return storage_;
    }
    return ::operator new(bytes);
  }
  void deallocate(void* block) noexcept {
    if (block == storage_) {
      storage_used_ = false;
    } else {
      ::operator delete(block);
    }
  }

 private:
  alignas(std::max_align_t) std::byte storage_[256];
  std::uint32_t references_ = 0;
  bool storage_used_ = false;
};

class AsioOperationRef {
 public:
  AsioOperationRef() = default;
  explicit AsioOperationRef(AsioOperation* operation) noexcept : operation_(operation) { operation_->retain(); }
  AsioOperationRef(const AsioOperationRef& other) noexcept : operation_(other.operation_) {
    if (operation_ != nullptr) operation_->retain();
  }
  AsioOperationRef(AsioOperationRef&& other) noexcept : operation_(std::exchange(other.operation_, nullptr)) {}
  AsioOperationRef& operator=(AsioOperationRef other) noexcept {
    std::swap(operation_, other.operation_);
    return *this;
  }
  ~AsioOperationRef() {
    if (operation_ != nullptr) operation_->release();
  }
  explicit operator bool() const noexcept { return operation_ != nullptr; }
  AsioOperation* operator->() const noexcept { return operation_; }
  bool operator==(const AsioOperationRef&) const = default;

 private:
  AsioOperation* operation_ = nullptr;
};

template <class T>
struct HandlerAllocator {
  using value_type = T;
  explicit HandlerAllocator(AsioOperationRef owner) noexcept : operation(std::move(owner)) {}
  template <class U>
  HandlerAllocator(const HandlerAllocator<U>& other) noexcept : operation(other.operation) {}
  T* allocate(std::size_t count) { return static_cast<T*>(operation->allocate(count * sizeof(T))); }
  void deallocate(T* block, std::size_t) noexcept { operation->deallocate(block); }
  template <class U>
  bool operator==(const HandlerAllocator<U>& other) const noexcept {
    return operation == other.operation;
  }
  AsioOperationRef operation;
};

template <class Start, class Cancel, class... Values>
struct AsioAwaiter : Waiter {
  AsioAwaiter(Start start_operation, Cancel cancel_operation)
      : start(std::move(start_operation)), cancel(std::move(cancel_operation)) {
    // The operation still owns its buffers: ask it to stop, and wake the task only when its handler has run.
    on_cancel = [](Waiter& self) {
      auto& awaiter = static_cast<AsioAwaiter&>(self);
      awaiter.cancelled = true;
      awaiter.cancel();
    };
  }
  // Before it is awaited.
  AsioAwaiter(AsioAwaiter&& other) : AsioAwaiter(std::move(other.start), std::move(other.cancel)) {}
  ~AsioAwaiter() {
    if (operation) operation->awaiter = nullptr;
  }

  struct Handler {
    using allocator_type = HandlerAllocator<std::byte>;
    AsioOperationRef operation;
    allocator_type get_allocator() const noexcept { return allocator_type{operation}; }
    void operator()(const boost::system::error_code& ec, Values... values) const {
      auto* awaiter = static_cast<AsioAwaiter*>(operation->awaiter);
      if (awaiter == nullptr) return;
      awaiter->result = {ec, std::move(values)...};
      if (awaiter->cancelled) {
        awaiter->target.task()->wake_cancelled(*awaiter);
      } else {
        wake_task(*awaiter);
      }
    }
  };

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> self) {
    TaskCore& task = *this_thread.task;
    task.check_cancelled();
    operation = AsioOperationRef(new AsioOperation);
    operation->awaiter = this;
    start(Handler{operation});  // Asio never calls a handler before the function that takes it has returned
    task.park(self, *this);
  }
  auto await_resume() {
    this_thread.task->check_cancelled();
    if constexpr (sizeof...(Values) == 0) {
      return std::get<0>(result);
    } else {
      return std::move(result);
    }
  }

  Start start;
  Cancel cancel;
  AsioOperationRef operation;
  std::tuple<boost::system::error_code, Values...> result;
  bool cancelled = false;
};

}  // namespace detail

// co_await asio_op<std::size_t>([&](auto handler) { socket.async_read_some(buffer, std::move(handler)); },
//                               [&] { socket.cancel(); })
// gives what the handler gets: the error code alone, or a tuple of it and the Values.
//
// Suspends: always.
// Cancel:   `cancel` is called to abort the operation; CancelledError is thrown when its handler has run, so buffers in
//           the caller's frame stay valid as long as the operation needs them. Bytes that a cancelled read had read
//           are lost.
// Lifetime: a loop may be destroyed with operations under way. Their buffers go with the frames that await them, so
//           the io_context must not run afterwards unless the sockets have been closed.
template <class... Values, class Start, class Cancel>
auto asio_op(Start start, Cancel cancel) {
  return detail::AsioAwaiter<Start, Cancel, Values...>(std::move(start), std::move(cancel));
}

}  // namespace argiope
