#include "argiope/async/detail/frame_pool.hpp"

#include <cstdint>
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

constexpr std::size_t kSlots = kPooledBytes / kPoolStep + 1;

// The number that a thread that gives keeps of each size, and that one that lacks takes at a time.
constexpr std::size_t handful(std::size_t slot) noexcept { return kSlabBytes / (slot * kPoolStep); }

void push(FreeBlock*& list, void* block) noexcept {
  auto* free_block = static_cast<FreeBlock*>(block);
  free_block->next = list;
  list = free_block;
}
void* pop(FreeBlock*& list) noexcept { return std::exchange(list, list->next); }

// The last of the first `count` blocks of a list that is not empty.
FreeBlock* last_of(FreeBlock* list, std::size_t count) noexcept {
  while (--count > 0 && list->next != nullptr) list = list->next;
  return list;
}

// Blocks of one size that no thread has: lists of any length one behind the other, of which nobody counts the blocks.
class Spare {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  void add_list(FreeBlock* list) noexcept {
    auto* first = static_cast<First*>(list);
    first->next_list = std::exchange(first_, first);
  }
  void add(void* block) noexcept {
    auto* first = static_cast<First*>(block);
    first->next = first_;
    first->next_list = first_ == nullptr ? nullptr : first_->next_list;
    first_ = first;
  }
  // A list of at most `count` blocks; not to be called when empty.
  FreeBlock* take(std::size_t count) noexcept {
    First* const taken = first_;
    FreeBlock* const last = last_of(taken, count);
    first_ = taken->next_list;
    if (last->next != nullptr) add_list(last->next);
    last->next = nullptr;
    return taken;
  }

 private:
  // The first block of a list. No block is smaller.
  struct First : FreeBlock {
    First* next_list;
  };
  static_assert(sizeof(First) <= kPoolStep);
  First* first_;
};

// A thread's lists between its end and the thread that takes them over.
struct Estate {
  FrameLists lists;
  Estate* next;
};

// The pool of a thread that runs.
struct Member {
  FramePool* pool;
  Member* previous;
  Member* next;
};

// The estates that no thread has at present, and the threads there are. As many estates as threads have ever had lists
// at a time, so threads that come and go need no more memory than one of them.
struct Depot {
  std::mutex mutex;
  Estate* estates;
  Member* members;
  // Freed by threads that had no lists, yet or any more; and given by those that were asked.
  Spare spare[kSlots];

  // Has what the caller lacks put into the depot: at once from estates, in time by threads. Under the mutex.
  void ask(std::size_t slot, const FramePool& asker) noexcept {
    for (Estate* estate = estates; estate != nullptr; estate = estate->next) {
      if (FreeBlock* const list = std::exchange(estate->lists.free[slot], nullptr)) spare[slot].add_list(list);
    }
    if (!spare[slot].empty()) return;
    for (Member* member = members; member != nullptr; member = member->next) {
      std::atomic<PoolState>& state = member->pool->state;
      if (member->pool != &asker && state.load(std::memory_order_relaxed) == PoolState::open) {
        state.store(PoolState::asked, std::memory_order_relaxed);  // nobody else takes a pool out of this state
      }
    }
  }
};
constinit Depot depot{};
static_assert(std::is_trivially_destructible_v<Depot>, "frames are freed until the very end of the process");

// Leaves a thread's lists to others when the thread ends. Touched on the slow path only, so that the fast path needs no
// initialisation check.
struct Heritage {
  ~Heritage() {
    closed = true;
    if (estate == nullptr) return;
    const std::lock_guard lock(depot.mutex);
    frame_pool.state.store(PoolState::closed, std::memory_order_relaxed);
    (self.previous == nullptr ? depot.members : self.previous->next) = self.next;
    if (self.next != nullptr) self.next->previous = self.previous;
    estate->lists = std::exchange(static_cast<FrameLists&>(frame_pool), FrameLists{});
    estate->next = std::exchange(depot.estates, estate);
  }
  void open() {
    {
      const std::lock_guard lock(depot.mutex);
      if (depot.estates != nullptr) estate = std::exchange(depot.estates, depot.estates->next);
    }
    if (estate == nullptr) estate = new Estate{};
    const std::lock_guard lock(depot.mutex);
    static_cast<FrameLists&>(frame_pool) = estate->lists;
    self = {&frame_pool, nullptr, depot.members};
    if (self.next != nullptr) self.next->previous = &self;
    depot.members = &self;
    frame_pool.state.store(PoolState::open, std::memory_order_relaxed);
  }
  Estate* estate = nullptr;
  Member self{};
  bool closed = false;
};
thread_local Heritage heritage;

// The list of `slot` is empty.
void* cut(std::size_t slot) {
  const std::size_t bytes = slot * kPoolStep;
  if (frame_pool.rest_bytes < bytes) {
    {
      const std::lock_guard lock(depot.mutex);
      Spare& spare = depot.spare[slot];
      if (spare.empty()) depot.ask(slot, frame_pool);
      if (!spare.empty()) {
        frame_pool.free[slot] = spare.take(handful(slot));
        if (spare.empty()) depot.ask(slot, frame_pool);  // in time for when these are used up
      }
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

// How far a thread is in giving.
struct Giving {
  // Blocks of each size that were freed since the list was last looked at.
  std::uint16_t freed[kSlots];
  // Looks, one after the other, that found nothing to give.
  int in_vain;
};
constinit thread_local Giving giving{};
constexpr int kLooksInVain = 64;

// A block has been freed on a thread that was asked to give.
void give(std::size_t slot) noexcept {
  if (frame_pool.state.load(std::memory_order_relaxed) == PoolState::asked) {
    for (std::size_t each = 1; each < kSlots; ++each) giving.freed[each] = static_cast<std::uint16_t>(handful(each));
    giving.in_vain = 0;
    frame_pool.state.store(PoolState::giving, std::memory_order_relaxed);
  }
  if (++giving.freed[slot] < handful(slot)) return;
  giving.freed[slot] = 0;
  FreeBlock* const kept = last_of(frame_pool.free[slot], handful(slot));
  if (kept->next == nullptr) {
    if (++giving.in_vain == kLooksInVain) frame_pool.state.store(PoolState::open, std::memory_order_relaxed);
    return;
  }
  giving.in_vain = 0;
  const std::lock_guard lock(depot.mutex);
  depot.spare[slot].add_list(std::exchange(kept->next, nullptr));
}

// On a thread whose end has begun.
void* allocate_late(std::size_t slot) {
  {
    const std::lock_guard lock(depot.mutex);
    if (!depot.spare[slot].empty()) return depot.spare[slot].take(1);
  }
  const std::size_t bytes = slot * kPoolStep;
  return ::operator new(bytes);
}

}  // namespace

void* allocate_frame_slowly(std::size_t bytes) {
  if (bytes > kPooledBytes) return ::operator new(bytes);
  const std::size_t slot = pool_slot(bytes);
  if (heritage.closed) return allocate_late(slot);
  if (frame_pool.state.load(std::memory_order_relaxed) == PoolState::closed) {
    heritage.open();
    if (frame_pool.free[slot] != nullptr) return pop(frame_pool.free[slot]);
  }
  return cut(slot);
}

void free_frame_slowly(void* block, std::size_t bytes) noexcept {
  if (bytes > kPooledBytes) return ::operator delete(block);
  const std::size_t slot = pool_slot(bytes);
  if (frame_pool.state.load(std::memory_order_relaxed) != PoolState::closed) {
    push(frame_pool.free[slot], block);
    return give(slot);
  }
  const std::lock_guard lock(depot.mutex);
  depot.spare[slot].add(block);
}

#endif

}  // namespace argiope::detail
