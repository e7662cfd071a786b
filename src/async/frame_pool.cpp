#include "argiope/async/detail/frame_pool.hpp"

#include <new>

namespace argiope::detail {

constinit thread_local FramePool frame_pool{};

namespace {

// Gives a thread's free lists back when the thread ends. Touched on the slow path only, so that the
// fast path needs no initialisation check.
struct PoolReaper {
  ~PoolReaper() {
    closed = true;
    frame_pool.open = false;
    for (FreeBlock*& head : frame_pool.free) {
      while (head != nullptr) {
        FreeBlock* next = head->next;
        ::operator delete(head);
        head = next;
      }
    }
  }
  bool closed = false;
};
thread_local PoolReaper reaper;

}  // namespace

void* allocate_frame_slowly(std::size_t rounded) {
  frame_pool.open = !reaper.closed;
  return ::operator new(rounded);
}

void free_frame_slowly(void* block) noexcept { ::operator delete(block); }

}  // namespace argiope::detail
