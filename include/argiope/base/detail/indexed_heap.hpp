// A heap whose items know where they are, so that any of them can be changed or taken out in O(log n). The timers of a
// loop and the orders of a job queue are such heaps; the items themselves live with the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace argiope {

// The least rank is on top. Four children a node: half the levels of a binary heap, and the children share a cache line
// or two. A heap of one entry allocates nothing, so that a hundred thousand of them are cheap.
//
// Rank is compared with <. Handle says which item an entry is; `place(handle)` gives a std::uint32_t& in which the heap
// keeps the item's position while it is inside, and kNowhere once it has been taken out. Keep those numbers close
// together (an array of them, not a field of a large item): a sift writes one on every level.
//
// Errors:  reserve, make_room and push may throw std::bad_alloc, and then nothing has changed; a push after make_room
//          cannot fail.
// Threads: one at a time. At most 2³² − 2 entries.
template <class Rank, class Handle = std::uint32_t>
class IndexedHeap {
 public:
  static constexpr std::uint32_t kNowhere = ~0u;

  struct Entry {
    Rank rank;
    Handle handle;
  };
  static_assert(std::is_trivially_copyable_v<Entry>);

  IndexedHeap() noexcept = default;
  IndexedHeap(IndexedHeap&& other) noexcept
      : storage_(other.storage_), size_(std::exchange(other.size_, 0)), capacity_(std::exchange(other.capacity_, 1)) {}
  IndexedHeap& operator=(IndexedHeap&& other) noexcept {
    std::swap(storage_, other.storage_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~IndexedHeap() { free_entries(); }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  const Entry& top() const noexcept { return *entries(); }
  // In heap order: [0] is the least, the others are in no order a caller may count on.
  const Entry& operator[](std::size_t i) const noexcept { return entries()[i]; }
  // Beside the heap itself.
  std::size_t memory_bytes() const noexcept { return capacity_ == 1 ? 0 : capacity_ * sizeof(Entry); }

  void reserve(std::size_t count) {
    if (count > capacity_) grow(count);
  }
  // The next push() will not throw.
  void make_room() {
    if (size_ == capacity_) [[unlikely]]
      grow(size_ < 4 ? 4 : std::size_t{size_} + size_ / 2);
  }
  // An empty heap gives back what a burst had made it take.
  void shrink_if_empty() noexcept {
    if (size_ == 0 && capacity_ > kKeptCapacity) {
      free_entries();
      capacity_ = 1;
    }
  }

  template <class Place>
  void push(Rank rank, Handle handle, Place&& place) {
    make_room();
    sift_up(size_++, {rank, handle}, place);
  }

  template <class Place>
  Entry pop(Place&& place) noexcept {
    const Entry top = *entries();
    place(top.handle) = kNowhere;
    const Entry last = entries()[--size_];
    if (size_ > 0) sift_down(0, last, place);
    return top;
  }

  // Takes out what stands at `position`, as `place` had it.
  template <class Place>
  void erase(std::uint32_t position, Place&& place) noexcept {
    place(entries()[position].handle) = kNowhere;
    const Entry last = entries()[--size_];
    if (position != size_) settle(position, last, place);
  }

  template <class Place>
  void update(std::uint32_t position, Rank rank, Place&& place) noexcept {
    settle(position, {rank, entries()[position].handle}, place);
  }

 private:
  static constexpr std::size_t kKeptCapacity = 64;

  union Storage {
    Storage() noexcept : many(nullptr) {}
    Entry* many;  // capacity_ > 1
    Entry one;    // capacity_ == 1
  };

  Entry* entries() noexcept { return capacity_ == 1 ? &storage_.one : storage_.many; }
  const Entry* entries() const noexcept { return capacity_ == 1 ? &storage_.one : storage_.many; }

  void grow(std::size_t capacity) {
    Entry* bigger = std::allocator<Entry>{}.allocate(capacity);
    std::uninitialized_copy_n(entries(), size_, bigger);
    free_entries();
    storage_.many = bigger;
    capacity_ = static_cast<std::uint32_t>(capacity);
  }
  void free_entries() noexcept {
    if (capacity_ > 1) std::allocator<Entry>{}.deallocate(storage_.many, capacity_);
  }

  template <class Place>
  void settle(std::size_t hole, Entry entry, Place& place) noexcept {
    if (hole > 0 && entry.rank < entries()[(hole - 1) / 4].rank) {
      sift_up(hole, entry, place);
    } else {
      sift_down(hole, entry, place);
    }
  }

  template <class Place>
  void sift_up(std::size_t hole, Entry entry, Place& place) noexcept {
    Entry* const entries = this->entries();
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!(entry.rank < entries[parent].rank)) break;
      entries[hole] = entries[parent];
      place(entries[hole].handle) = static_cast<std::uint32_t>(hole);
      hole = parent;
    }
    entries[hole] = entry;
    place(entry.handle) = static_cast<std::uint32_t>(hole);
  }

  template <class Place>
  void sift_down(std::size_t hole, Entry entry, Place& place) noexcept {
    Entry* const entries = this->entries();
    const std::size_t count = size_;
    for (;;) {
      const std::size_t first = hole * 4 + 1;
      if (first + 4 > count) break;
      // The sixteen grandchildren lie together: they are fetched while the least child is being found.
      if (first * 4 + 1 < count) {
        const char* grandchildren = reinterpret_cast<const char*>(entries + first * 4 + 1);
        for (std::size_t line = 0; line < 16 * sizeof(Entry); line += 64) __builtin_prefetch(grandchildren + line, 1);
      }
      const std::size_t left = entries[first + 1].rank < entries[first].rank ? first + 1 : first;
      const std::size_t right = entries[first + 3].rank < entries[first + 2].rank ? first + 3 : first + 2;
      const std::size_t least = entries[right].rank < entries[left].rank ? right : left;
      if (!(entries[least].rank < entry.rank)) return put_at(hole, entry, place);
      put_at(hole, entries[least], place);
      hole = least;
    }
    // The last parent may have fewer than four children, and they have none.
    std::size_t least = hole * 4 + 1;
    if (least < count) {
      for (std::size_t child = least + 1; child < count; ++child) {
        if (entries[child].rank < entries[least].rank) least = child;
      }
      if (entries[least].rank < entry.rank) {
        put_at(hole, entries[least], place);
        hole = least;
      }
    }
    put_at(hole, entry, place);
  }

  template <class Place>
  void put_at(std::size_t position, Entry entry, Place& place) noexcept {
    entries()[position] = entry;
    place(entry.handle) = static_cast<std::uint32_t>(position);
  }

  Storage storage_;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = 1;
};

}  // namespace argiope
