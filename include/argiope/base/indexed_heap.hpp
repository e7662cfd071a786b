// A heap whose items know where they are, so that any of them can be changed or taken out in O(log n).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace argiope {

// The least rank is on top. Four children a node: half the levels of a binary heap, and the children share a cache line.
//
// Rank is compared with <. Handle says which item an entry is; `place(handle)` gives a std::uint32_t& in which the heap
// keeps the item's position while it is inside (kNowhere otherwise is the caller's business, see contains()).
//
// Errors:  push may throw std::bad_alloc, and then nothing has changed.
// Threads: one at a time.
template <class Rank, class Handle = std::uint32_t>
class IndexedHeap {
 public:
  static constexpr std::uint32_t kNowhere = ~0u;

  struct Entry {
    Rank rank;
    Handle handle;
  };

  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  const Entry& top() const noexcept { return entries_.front(); }
  const Entry& operator[](std::size_t i) const noexcept { return entries_[i]; }
  std::size_t memory_bytes() const noexcept { return entries_.capacity() * sizeof(Entry); }

  // The next push() will not throw.
  void make_room() {
    if (entries_.size() == entries_.capacity()) entries_.reserve(entries_.size() * 2 + 4);
  }

  template <class Place>
  void push(Rank rank, Handle handle, Place&& place) {
    entries_.push_back({rank, handle});
    sift_up(entries_.size() - 1, {rank, handle}, place);
  }

  template <class Place>
  Entry pop(Place&& place) noexcept {
    const Entry top = entries_.front();
    erase(0, place);
    return top;
  }

  // Takes out what stands at `position`, as `place` had it.
  template <class Place>
  void erase(std::uint32_t position, Place&& place) noexcept {
    place(entries_[position].handle) = kNowhere;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (position == entries_.size()) {
      // A heap that has emptied gives back what a burst had made it take.
      if (entries_.empty() && entries_.capacity() > kKeptCapacity) entries_ = {};
      return;
    }
    settle(position, last, place);
  }

  template <class Place>
  void update(std::uint32_t position, Rank rank, Place&& place) noexcept {
    settle(position, {rank, entries_[position].handle}, place);
  }

 private:
  static constexpr std::size_t kKeptCapacity = 64;

  template <class Place>
  void settle(std::size_t hole, Entry entry, Place&& place) noexcept {
    if (hole > 0 && entry.rank < entries_[(hole - 1) / 4].rank) {
      sift_up(hole, entry, place);
    } else {
      sift_down(hole, entry, place);
    }
  }

  template <class Place>
  void sift_up(std::size_t hole, Entry entry, Place&& place) noexcept {
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!(entry.rank < entries_[parent].rank)) break;
      entries_[hole] = entries_[parent];
      place(entries_[hole].handle) = static_cast<std::uint32_t>(hole);
      hole = parent;
    }
    entries_[hole] = entry;
    place(entry.handle) = static_cast<std::uint32_t>(hole);
  }

  template <class Place>
  void sift_down(std::size_t hole, Entry entry, Place&& place) noexcept {
    const std::size_t count = entries_.size();
    for (;;) {
      const std::size_t first = hole * 4 + 1;
      if (first >= count) break;
      const std::size_t end = first + 4 < count ? first + 4 : count;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (entries_[child].rank < entries_[least].rank) least = child;
      }
      if (!(entries_[least].rank < entry.rank)) break;
      entries_[hole] = entries_[least];
      place(entries_[hole].handle) = static_cast<std::uint32_t>(hole);
      hole = least;
    }
    entries_[hole] = entry;
    place(entry.handle) = static_cast<std::uint32_t>(hole);
  }

  std::vector<Entry> entries_;
};

}  // namespace argiope
