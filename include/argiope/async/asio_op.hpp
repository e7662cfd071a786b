// The bridge from Asio's completion handlers to co_await.
#pragma once

#include <boost/system/error_code.hpp>
#include <coroutine>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "argiope/async/event_loop.hpp"

namespace argiope {
namespace detail {

// Memory for one handler inside the awaiting frame; a second or a large request goes to the heap.
class HandlerMemory {
 public:
  void* allocate(std::size_t bytes) {
    if (!used_ && bytes <= sizeof storage_) {
      used_ = true;
      return storage_;
    }
    return ::operator new(bytes);
  }
  void deallocate(void* block) noexcept {
    if (block == storage_) {
      used_ = false;
    } else {
      ::operator delete(block);
    }
  }

 private:
  alignas(std::max_align_t) std::byte storage_[256];
  bool used_ = false;
};

template <class T>
struct HandlerAllocator {
  using value_type = T;
  explicit HandlerAllocator(HandlerMemory& owner) noexcept : memory(&owner) {}
  template <class U>
  HandlerAllocator(const HandlerAllocator<U>& other) noexcept : memory(other.memory) {}
  T* allocate(std::size_t count) { return static_cast<T*>(memory->allocate(count * sizeof(T))); }
  void deallocate(T* block, std::size_t) noexcept { memory->deallocate(block); }
  template <class U>
  bool operator==(const HandlerAllocator<U>& other) const noexcept {
    return memory == other.memory;
  }
  HandlerMemory* memory;
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

  struct Handler {
    using allocator_type = HandlerAllocator<std::byte>;
    AsioAwaiter* awaiter;
    allocator_type get_allocator() const noexcept { return allocator_type{awaiter->memory}; }
    void operator()(const boost::system::error_code& ec, Values... values) const {
      awaiter->result = {ec, std::move(values)...};
      if (awaiter->cancelled) {
        awaiter->target.task()->wake_cancelled(*awaiter);
      } else {
        awaiter->loop->wake(*awaiter);
      }
    }
  };

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> self) {
    loop = this_thread.loop;
    this_thread.task->park(self, *this);
    start(Handler{this});
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
  EventLoop* loop = nullptr;
  std::tuple<boost::system::error_code, Values...> result;
  bool cancelled = false;
  HandlerMemory memory;
};

}  // namespace detail

// co_await asio_op<std::size_t>([&](auto handler) { socket.async_read_some(buffer, std::move(handler)); },
//                               [&] { socket.cancel(); })
// gives what the handler gets: the error code alone, or a tuple of it and the Values.
//
// Suspends: always. Cancel: `cancel` is called to abort the operation; CancelledError is thrown when its handler
// has run, so buffers in the caller's frame stay valid as long as the operation needs them.
// Lifetime: the awaiting frame must not be destroyed while the operation is under way; a loop that is destroyed
//           with operations pending destroys its backend's objects first.
template <class... Values, class Start, class Cancel>
auto asio_op(Start start, Cancel cancel) {
  return detail::AsioAwaiter<Start, Cancel, Values...>(std::move(start), std::move(cancel));
}

}  // namespace argiope
