#include "argiope/async/detail/frame_pool.hpp"

#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

namespace argiope::detail {

constinit thread_local FramePool frame_pool{};

#ifdef ARGIOPE_NO_FRAME_POOL

void* allocate_frame_slowly(std::size_t bytes) { return ::operator new(bytes); }
void free_frame_slowly(void* block, std::size_t) noexcept { ::operator delete(block); }

#else

namespace {

// Less than malloc maps and unmaps by itself, with room for its header.
constexpr std::size_t kSlabBytes = 64 * 1024 - 16;

void push(FreeBlock*& list, void* block) noexcept {
  auto* free_block = static_cast<FreeBlock*>(block);
  free_block->next = list;
  list = free_block;
}
void* pop(FreeBlock*& list) noexcept { return std::exchange(list, list->next); }

// A thread's lists between its end and the thread that takes them over.
struct Estate {
  FramePool pool;
  Estate* next;
};

// What no thread has at present. As many estates as threads have ever had lists at a time, so threads that come and go
// need no more memory than one of them.
struct Depot {
  std::mutex mutex;
  Estate* estates;
  // Freed by threads that had no lists: yet or any more.
  FreeBlock* orphans[kPooledBytes / kPoolStep + 1];
};
constinit Depot depot{};
static_assert(std::is_trivially_destructible_v<Depot>, "frames are freed until the very end of the process");

// Leaves a thread's lists to others when the thread ends. Touched on the slow path only, so that the fast path needs no
// initialisation check.
struct Heritage {
  ~Heritage() {
    closed = true;
    if (estate == nullptr) return;
    frame_pool.open = false;
    estate->pool = std::exchange(frame_pool, FramePool{});
    const std::lock_guard lock(depot.mutex);
    estate->next = std::exchange(depot.estates, estate);
  }
  void open() {
    {
      const std::lock_guard lock(depot.mutex);
      if (depot.estates != nullptr) estate = std::exchange(depot.estates, depot.estates->next);
    }
    if (estate == nullptr) estate = new Estate{};
    frame_pool = estate->pool;
    frame_pool.open = true;
  }
  Estate* estate = nullptr;
  bool closed = false;
};
thread_local Heritage heritage;

// The list of `slot` is empty.
void* cut(std::size_t slot) {
  const std::size_t bytes = slot * kPoolStep;
  if (frame_pool.rest_bytes < bytes) {
    {
      const std::lock_guard lock(depot.mutex);
      frame_pool.free[slot] = std::exchange(depot.orphans[slot], nullptr);
    }
    if (frame_pool.free[slot] != nullptr) return pop(frame_pool.free[slot]);
    auto* slab = static_cast<std::byte*>(::operator new(kSlabBytes));
    if (frame_pool.rest_bytes > 0) push(frame_pool.free[frame_pool.rest_bytes / kPoolStep], frame_pool.rest);
    frame_pool.rest = slab;
    frame_pool.rest_bytes = kSlabBytes;
  }
  frame_pool.rest_bytes -= bytes;
  return std::exchange(frame_pool.rest, frame_pool.rest + bytes);
}

// On a thread whose end has begun.
void* allocate_late(std::size_t slot) {
  {
    const std::lock_guard lock(depot.mutex);
    if (depot.orphans[slot] != nullptr) return pop(depot.orphans[slot]);
  }
  const std::size_t bytes = slot * kPoolStep;
  return ::operator new(bytes);
}

}  // namespace

void* allocate_frame_slowly(std::size_t bytes) {
  if (bytes > kPooledBytes) return ::operator new(bytes);
  const std::size_t slot = pool_slot(bytes);
  if (heritage.closed) return allocate_late(slot);
  if (!frame_pool.open) {
    heritage.open();
    if (frame_pool.free[slot] != nullptr) return pop(frame_pool.free[slot]);
  }
  return cut(slot);
}

void free_frame_slowly(void* block, std::size_t bytes) noexcept {
  if (bytes > kPooledBytes) return ::operator delete(block);
  const std::lock_guard lock(depot.mutex);
  push(depot.orphans[pool_slot(bytes)], block);
}

#endif

}  // namespace argiope::detail
