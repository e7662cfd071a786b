// JobTable: the jobs of one JobQueue and their index by id. It knows where a job lies, not what state it should be in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "argiope/base/random.hpp"
#include "argiope/jobs/job.hpp"

namespace argiope {

// Jobs lie in chunks and never move; a slot is the number of a job's place, used again after erase(). The index is one
// flat array (linear probing, deletion by shifting back, so no tombstones) that holds 32 bits of each id's hash, so
// that neither a probe nor a deletion looks at jobs of other ids.
//
// Memory:  32 bytes a job, 4 for its position in a heap, 11 to 21 for the index; what has been taken is kept for reuse.
// Errors:  make_room throws std::bad_alloc, and then nothing has changed; nothing else fails.
// Threads: one at a time.
class JobTable {
 public:
  using Slot = std::uint32_t;
  static constexpr Slot kNoSlot = ~0u;

  struct Job {
    JobId id;
    std::uint64_t payload;
    std::int32_t priority;
    std::uint32_t sequence;  // order of the puts
    KeyId key;
    std::uint16_t attempts;
    std::uint8_t expiries;
    JobState state : 7;
    bool again : 1;  // was put while it ran
  };
  static_assert(sizeof(Job) == 32);

  JobTable();

  Job& operator[](Slot slot) noexcept { return chunks_[slot / kChunk]->jobs[slot % kChunk]; }
  const Job& operator[](Slot slot) const noexcept { return chunks_[slot / kChunk]->jobs[slot % kChunk]; }
  // The position of a job in the heap of its state. Apart from the jobs, because heaps write it far more often.
  std::uint32_t& place(Slot slot) noexcept { return chunks_[slot / kChunk]->places[slot % kChunk]; }
  std::uint32_t place(Slot slot) const noexcept { return chunks_[slot / kChunk]->places[slot % kChunk]; }

  std::size_t size() const noexcept { return size_; }
  // True when `slot` has ever held a job, which may be gone: its state is then `done`.
  bool in_range(Slot slot) const noexcept { return slot < used_; }

  // kNoSlot when there is none.
  Slot find(JobId id) const noexcept;
  // The next add() has room.
  void make_room();
  // `job.id` must not be there, and make_room() must have been called since the last add().
  Slot add(const Job& job) noexcept;
  void erase(Slot slot) noexcept;
  // Says that erase(slot) will come soon: its memory is fetched meanwhile.
  void expect_erase(Slot slot) const noexcept {
    __builtin_prefetch(&index_[hash_of((*this)[slot].id) & (index_.size() - 1)], 1);
  }

  // Calls visit(slot) for each job, in no order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const IndexEntry& entry : index_) {
      if (entry.slot != kNoSlot) visit(entry.slot);
    }
  }

  std::size_t memory_bytes() const noexcept {
    return chunks_.size() * sizeof(Chunk) + chunks_.capacity() * sizeof(chunks_[0]) +
           index_.capacity() * sizeof(IndexEntry);
  }

 private:
  static constexpr std::size_t kChunk = 1024;
  struct Chunk {
    Job jobs[kChunk];
    std::uint32_t places[kChunk];
  };
  struct IndexEntry {
    std::uint32_t hash;
    Slot slot;
  };

  static std::uint32_t hash_of(JobId id) noexcept { return static_cast<std::uint32_t>(mix64(id)); }
  void index(IndexEntry entry) noexcept;
  void grow_index();

  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<IndexEntry> index_;  // a power of two
  std::size_t size_ = 0;
  Slot free_ = kNoSlot;  // list of free slots, linked by `place`
  Slot used_ = 0;        // slots that have ever been taken
};

}  // namespace argiope
