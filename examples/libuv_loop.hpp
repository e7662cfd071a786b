// How a foreign loop drives an Argiope loop on its own thread, with libuv as the foreign one: three handles, and no
// thread or copy in between. The same three things (a descriptor, a timer, a hook before each wait) are all that any
// other loop needs to offer. The runtime's own tests run over this file.
#pragma once

#include <uv.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"

namespace argiope {

// From construction to destruction, `loop` runs whenever `foreign` does.
//
// Lifetime: `foreign` outlives it, and runs once more before uv_loop_close, which is libuv's way to free handles.
// Threads:  the one of `foreign`.
class LibuvLoop {
 public:
  LibuvLoop(uv_loop_t& foreign, EventLoop& loop, AsioBackend& backend) : handles_(new Handles(loop)) {
    uv_prepare_init(&foreign, &handles_->prepare);
    uv_timer_init(&foreign, &handles_->timer);
    uv_poll_init(&foreign, &handles_->poll, backend.wake_up_descriptor());
    handles_->prepare.data = handles_->timer.data = handles_->poll.data = handles_;
    uv_prepare_start(&handles_->prepare, [](uv_prepare_t* handle) { turn(*static_cast<Handles*>(handle->data)); });
    // It is enough that libuv wakes up: the turn comes before it waits again.
    uv_poll_start(&handles_->poll, UV_READABLE, [](uv_poll_t*, int, int) {});
  }
  ~LibuvLoop() {
    for (auto* handle :
         {reinterpret_cast<uv_handle_t*>(&handles_->prepare), reinterpret_cast<uv_handle_t*>(&handles_->timer),
          reinterpret_cast<uv_handle_t*>(&handles_->poll)}) {
      uv_close(handle, [](uv_handle_t* closed) {
        auto* handles = static_cast<Handles*>(closed->data);
        if (--handles->open == 0) delete handles;
      });
    }
  }
  LibuvLoop(const LibuvLoop&) = delete;
  LibuvLoop& operator=(const LibuvLoop&) = delete;

 private:
  struct Handles {
    explicit Handles(EventLoop& its_loop) : loop(its_loop) {}
    EventLoop& loop;
    uv_prepare_t prepare;
    uv_timer_t timer;
    uv_poll_t poll;
    int open = 3;
  };

  // Called by C, through which nothing may be thrown.
  static void turn(Handles& handles) noexcept {
    handles.loop.run_once(TimePoint::min());
    const TimePoint next = handles.loop.next_deadline();
    if (next == kNever) {
      uv_timer_stop(&handles.timer);
      return;
    }
    // Rounded up: a turn that comes too early would only find that nothing is due.
    const Duration left = std::max(next - handles.loop.time(), Duration{0});
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    uv_update_time(handles.timer.loop);
    uv_timer_start(
        &handles.timer, [](uv_timer_t*) {}, static_cast<std::uint64_t>(milliseconds), 0);
  }

  Handles* handles_;
};

}  // namespace argiope
