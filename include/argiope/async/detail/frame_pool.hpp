// Recycled memory for coroutine frames and task states: spawning a task or calling a coroutine costs a
// pop from a free list instead of a trip to the allocator.
#pragma once

#include <atomic>
#include <cstddef>

namespace argiope::detail {

// Blocks of at most kPooledBytes come from free lists of the calling thread, in steps of 16 bytes, and are cut from
// slabs: a block takes its size and no more. Larger ones come from operator new. The memory of slabs is kept: a thread
// that ends leaves its lists to one that comes. Under the address sanitizer everything comes from operator new, so that
// a use after free is seen.
//
// A block freed on another thread joins that thread's lists. When a thread has used up its own and would need a new
// slab, it asks the others: from its next free on each gives away what it has beyond a slab's worth of blocks of a
// size, until it has had nothing to give for a while. So a thread that makes what another destroys goes on with the
// same memory.
//
// Errors:  std::bad_alloc.
// Threads: any.
inline constexpr std::size_t kPooledBytes = 2048;
inline constexpr std::size_t kPoolStep = 16;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define ARGIOPE_NO_FRAME_POOL 1
#endif
#endif

struct FreeBlock {
  FreeBlock* next;
};
struct FrameLists {
  FreeBlock* free[kPooledBytes / kPoolStep + 1];
  // The part of the newest slab that has not been cut yet.
  std::byte* rest;
  std::size_t rest_bytes;
};
enum class PoolState : unsigned char {
  closed,  // before the thread's first allocation and after its end: its lists would be lost
  open,
  asked,   // another thread is short of blocks
  giving,  // and this one has begun to give
};
struct FramePool : FrameLists {
  std::atomic<PoolState> state;  // written by other threads too
};
extern constinit thread_local FramePool frame_pool;

void* allocate_frame_slowly(std::size_t bytes);
void free_frame_slowly(void* block, std::size_t bytes) noexcept;

inline std::size_t pool_slot(std::size_t bytes) noexcept { return (bytes + kPoolStep - 1) / kPoolStep; }

inline void* allocate_frame(std::size_t bytes) {
#ifndef ARGIOPE_NO_FRAME_POOL
  if (bytes <= kPooledBytes) [[likely]] {
    FreeBlock*& free = frame_pool.free[pool_slot(bytes)];
    if (FreeBlock* block = free; block != nullptr) [[likely]] {
      free = block->next;
      return block;
    }
  }
#endif
  return allocate_frame_slowly(bytes);
}

inline void free_frame(void* block, std::size_t bytes) noexcept {
#ifndef ARGIOPE_NO_FRAME_POOL
  if (bytes <= kPooledBytes && frame_pool.state.load(std::memory_order_relaxed) == PoolState::open) [[likely]] {
    FreeBlock*& free = frame_pool.free[pool_slot(bytes)];
    auto* free_block = static_cast<FreeBlock*>(block);
    free_block->next = free;
    free = free_block;
    return;
  }
#endif
  free_frame_slowly(block, bytes);
}

}  // namespace argiope::detail
