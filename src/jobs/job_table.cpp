#include "argiope/jobs/detail/job_table.hpp"

namespace argiope {
namespace {

constexpr std::size_t kFirstIndex = 64;

}  // namespace

JobTable::JobTable() : index_(kFirstIndex, IndexEntry{0, kNoSlot}) {}

JobTable::Slot JobTable::find(JobId id) const noexcept {
  const std::size_t mask = index_.size() - 1;
  const std::uint32_t hash = hash_of(id);
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    const IndexEntry entry = index_[i];
    if (entry.slot == kNoSlot || (entry.hash == hash && (*this)[entry.slot].id == id)) return entry.slot;
  }
}

void JobTable::make_room() {
  if ((size_ + 1) * 4 > index_.size() * 3) [[unlikely]]
    grow_index();
  if (free_ == kNoSlot && used_ == chunks_.size() * kChunk) [[unlikely]] {
    chunks_.push_back(std::make_unique_for_overwrite<Chunk>());
  }
}

JobTable::Slot JobTable::add(const Job& job) noexcept {
  Slot slot = free_;
  if (slot != kNoSlot) {
    free_ = place(slot);
  } else {
    slot = used_++;
  }
  (*this)[slot] = job;
  index({hash_of(job.id), slot});
  ++size_;
  return slot;
}

void JobTable::erase(Slot slot) noexcept {
  const std::size_t mask = index_.size() - 1;
  std::size_t hole = hash_of((*this)[slot].id) & mask;
  while (index_[hole].slot != slot) hole = (hole + 1) & mask;
  for (std::size_t i = (hole + 1) & mask; index_[i].slot != kNoSlot; i = (i + 1) & mask) {
    // An entry may be moved back to the hole if that is not before its home.
    if (((i - index_[i].hash) & mask) >= ((i - hole) & mask)) {
      index_[hole] = index_[i];
      hole = i;
    }
  }
  index_[hole].slot = kNoSlot;
  (*this)[slot].state = JobState::done;
  place(slot) = free_;
  free_ = slot;
  --size_;
}

void JobTable::index(IndexEntry entry) noexcept {
  const std::size_t mask = index_.size() - 1;
  std::size_t i = entry.hash & mask;
  while (index_[i].slot != kNoSlot) i = (i + 1) & mask;
  index_[i] = entry;
}

void JobTable::grow_index() {
  std::vector<IndexEntry> old(index_.size() * 2, IndexEntry{0, kNoSlot});
  index_.swap(old);
  for (const IndexEntry& entry : old) {
    if (entry.slot != kNoSlot) index(entry);
  }
}

}  // namespace argiope
