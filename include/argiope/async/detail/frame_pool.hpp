// Recycled memory for coroutine frames and task states: spawning a task or calling a coroutine costs a
// pop from a free list instead of a trip to the allocator.
#pragma once

#include <cstddef>

namespace argiope::detail {

// Blocks of at most kPooledBytes come from free lists of the calling thread, in steps of 64 bytes; larger ones
// from operator new. Memory in the lists is kept until its thread ends. Under the address sanitizer everything
// comes from operator new, so that a use after free is seen.
//
// Errors:  std::bad_alloc.
// Threads: any; a block freed on another thread joins that thread's lists.
inline constexpr std::size_t kPooledBytes = 2048;
inline constexpr std::size_t kPoolStep = 64;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define ARGIOPE_NO_FRAME_POOL 1
#endif
#endif

struct FreeBlock {
  FreeBlock* next;
};
struct FramePool {
  FreeBlock* free[kPooledBytes / kPoolStep + 1];
  // From the thread's first allocation to its end: only then will somebody give the lists back.
  bool open;
};
extern constinit thread_local FramePool frame_pool;

void* allocate_frame_slowly(std::size_t rounded);
void free_frame_slowly(void* block) noexcept;

inline void* allocate_frame(std::size_t bytes) {
#ifndef ARGIOPE_NO_FRAME_POOL
  const std::size_t slot = (bytes + kPoolStep - 1) / kPoolStep;
  if (bytes <= kPooledBytes) [[likely]] {
    if (FreeBlock* block = frame_pool.free[slot]; block != nullptr) [[likely]] {
      frame_pool.free[slot] = block->next;
      return block;
    }
    return allocate_frame_slowly(slot * kPoolStep);
  }
#endif
  return allocate_frame_slowly(bytes);
}

inline void free_frame(void* block, std::size_t bytes) noexcept {
#ifndef ARGIOPE_NO_FRAME_POOL
  if (bytes <= kPooledBytes && frame_pool.open) [[likely]] {
    const std::size_t slot = (bytes + kPoolStep - 1) / kPoolStep;
    auto* free_block = static_cast<FreeBlock*>(block);
    free_block->next = frame_pool.free[slot];
    frame_pool.free[slot] = free_block;
    return;
  }
#endif
  (void)bytes;
  free_frame_slowly(block);
}

}  // namespace argiope::detail
