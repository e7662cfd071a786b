// DueIndex: of each schedule its id and when it is to be looked at. It holds nothing else because of the cost of a
// million of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <unordered_map>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/detail/indexed_heap.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

// Memory:  about 32 bytes a schedule: ids come in order, so that many in a row share a page of the index.
// Threads: one at a time.
class DueIndex {
 public:
  std::size_t size() const noexcept { return size_; }
  // Of those that wait for a time.
  bool empty() const noexcept { return heap_.empty(); }
  WallTime top_due() const noexcept { return heap_.top().rank; }
  ScheduleId top() const noexcept { return ids_[heap_.top().handle]; }
  bool contains(ScheduleId id) const noexcept { return slot_of(id) != kNone; }

  void reserve(std::size_t count) {
    ids_.reserve(count);
    places_.reserve(count);
    heap_.reserve(count);
  }
  // WallTime::max(): not by time. Adds it if it is not there.
  void set(ScheduleId id, WallTime due) {
    std::uint32_t slot = slot_of(id);
    if (slot == kNone) slot = add(id);
    const bool inside = places_[slot] != Heap::kNowhere;
    const auto place = [this](std::uint32_t which) -> std::uint32_t& { return places_[which]; };
    if (due == WallTime::max()) {
      if (inside) heap_.erase(places_[slot], place);
    } else if (inside) {
      heap_.update(places_[slot], due, place);
    } else {
      heap_.push(due, slot, place);
    }
  }
  void erase(ScheduleId id) {
    const std::uint32_t slot = slot_of(id);
    if (slot == kNone) return;
    set(id, WallTime::max());
    const auto page = pages_.find(id / kPage);
    page->second->slots[id % kPage] = kNone;
    if (--page->second->used == 0) pages_.erase(page);
    free_.push_back(slot);
    --size_;
  }

 private:
  using Heap = IndexedHeap<WallTime, std::uint32_t>;
  static constexpr std::uint32_t kNone = ~0u;
  static constexpr std::size_t kPage = 256;
  struct Page {
    Page() { std::fill(std::begin(slots), std::end(slots), kNone); }
    std::uint32_t slots[kPage];
    std::uint32_t used = 0;
  };

  std::uint32_t slot_of(ScheduleId id) const noexcept {
    const auto page = pages_.find(id / kPage);
    return page == pages_.end() ? kNone : page->second->slots[id % kPage];
  }
  std::uint32_t add(ScheduleId id) {
    std::uint32_t slot = static_cast<std::uint32_t>(ids_.size());
    if (free_.empty()) {
      ids_.push_back(id);
      places_.push_back(Heap::kNowhere);
    } else {
      slot = free_.back();
      free_.pop_back();
      ids_[slot] = id;
    }
    std::unique_ptr<Page>& page = pages_[id / kPage];
    if (!page) page = std::make_unique<Page>();
    page->slots[id % kPage] = slot;
    ++page->used;
    ++size_;
    return slot;
  }

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::vector<ScheduleId> ids_;        // by slot
  std::vector<std::uint32_t> places_;  // by slot, in the heap
  std::vector<std::uint32_t> free_;
  Heap heap_;
  std::size_t size_ = 0;
};

}  // namespace argiope
