// JobQueue: the in-memory heart of one partition. What is ready, what is due later, what is running, and what may run
// next under the limits of the queue and of each key.
//
// pyspider's TaskQueue (priority queue, time queue, processing queue, token bucket) with keys. It keeps no payloads, reads
// no clock and starts nothing: its owner asks for the next job, and asks again at next_wakeup().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/indexed_heap.hpp"
#include "argiope/jobs/job.hpp"
#include "argiope/jobs/token_bucket.hpp"

namespace argiope {

using JobId = std::uint64_t;
// What a job is aimed at, interned by JobQueue::key(). Valid as long as the queue.
enum class KeyId : std::uint32_t {};

inline constexpr std::uint32_t kUnlimited = ~0u;

struct KeyLimits {
  double rate = kUnlimitedRate;  // starts a second; 0: none
  double burst = 1;
  std::uint32_t concurrency = kUnlimited;
  Duration delay{};  // from the end of one job to the start of the next
};

struct QueueLimits {
  double rate = kUnlimitedRate;
  double burst = 1;
  std::uint32_t concurrency = kUnlimited;
  bool paused = false;
};

struct JobSpec {
  JobId id = 0;  // unique in the queue: a second put of one id is merged into the first
  KeyId key{};
  std::int32_t priority = 0;  // higher first
  TimePoint due_at{};
  std::uint64_t payload = 0;  // the caller's; comes back with the lease
};

enum class PutResult : std::uint8_t {
  added,
  merged,     // was waiting: now has the higher priority and the earlier time of both
  run_again,  // is running: will be queued once more when it is done
};

// The right to run one job. The token tells this lease from every other of the job, past and future.
struct Lease {
  JobId id = 0;
  std::uint64_t token = 0;
  KeyId key{};
  std::int32_t priority = 0;
  std::uint64_t payload = 0;
  std::uint32_t attempts = 0;  // this one included
};

struct Explanation {
  WaitReason reason = WaitReason::none;
  TimePoint until = kNever;   // when the reason ends, if time alone ends it
  std::size_t ahead = 0;
};

// Order:   higher priority first; among equals, first put first served. A key that must wait holds up no other key.
// Cost:    put, lease and the settling calls O(log jobs of the key + log keys); 58 bytes a job and some 200 a key.
// Errors:  put and key may throw std::bad_alloc, and then nothing has changed. A stale token settles nothing: false.
// Time:    comes with each call, on one clock that never steps back.
// Threads: one at a time.
class JobQueue {
 public:
  explicit JobQueue(QueueLimits limits = {}, std::uint32_t max_lease_expiries = 3);
  ~JobQueue();
  JobQueue(JobQueue&&) noexcept;

  KeyId key(std::string_view name);
  void set_limits(const QueueLimits& limits, TimePoint now);
  void set_key_limits(KeyId key, const KeyLimits& limits, TimePoint now);
  // The key starts nothing before `until`; never shortens a rest. kNever: until wake_key().
  void rest_key(KeyId key, TimePoint until, TimePoint now);
  // Ends a rest.
  void wake_key(KeyId key, TimePoint now);

  PutResult put(const JobSpec& spec, TimePoint now);
  bool contains(JobId id) const noexcept;
  // The payload of a job that is queued or running.
  std::optional<std::uint64_t> payload_of(JobId id) const noexcept;
  // False when there is no such job waiting.
  bool set_priority(JobId id, std::int32_t priority, TimePoint now);
  bool remove(JobId id, TimePoint now);

  // The most important job that is due and allowed, now leased until now + lease_time. A lease that runs out makes the
  // job ready again, or drops it as buried after `max_lease_expiries`.
  std::optional<Lease> lease(TimePoint now, Duration lease_time);
  bool renew(std::uint64_t token, TimePoint until);
  bool done(std::uint64_t token, TimePoint now);
  bool retry(std::uint64_t token, TimePoint due_at, TimePoint now);
  // Back to the queue at its old place, as if it had not been leased: permits and the attempt are given back.
  bool put_back(std::uint64_t token, TimePoint now);

  // When lease() may give something it does not give now, with no other call in between; kNever if that needs one.
  TimePoint next_wakeup(TimePoint now);

  Explanation explain(JobId id, TimePoint now);

  std::size_t size() const noexcept { return ready_ + delayed_.size() + leases_.size(); }
  std::size_t ready_count() const noexcept { return ready_; }
  std::size_t delayed_count() const noexcept { return delayed_.size(); }
  std::size_t running_count() const noexcept { return leases_.size(); }
  std::size_t key_count() const noexcept { return keys_.size(); }
  // Keys that have ready jobs and must wait.
  std::size_t keys_waiting() const noexcept { return keys_with_ready_ - eligible_.size(); }
  // Jobs dropped because their lease ran out too often, since the last call.
  std::vector<JobId> take_buried() { return std::exchange(buried_, {}); }
  // Of everything but the names of keys.
  std::size_t memory_bytes() const noexcept;

 private:
  using Slot = std::uint32_t;
  static constexpr Slot kNoSlot = ~0u;

  struct Node {
    JobId id;
    std::uint64_t payload;
    TimePoint time;  // delayed: due; running: end of lease
    std::int32_t priority;
    std::uint32_t sequence;
    Slot place;  // in the heap of its state
    std::uint32_t key;
    std::uint32_t generation;  // of the lease
    JobState state;
    std::uint8_t attempts;
    std::uint8_t expiries;
    bool again;  // put while running: see again_
  };
  // Ready jobs by importance: less is more important.
  struct [[gnu::packed]] ReadyRank {
    std::uint64_t value;
    bool operator<(const ReadyRank& other) const noexcept { return value < other.value; }
  };
  using ReadyHeap = IndexedHeap<ReadyRank, Slot>;

  struct Key {
    KeyLimits limits;
    TokenBucket bucket;
    TimePoint rest_until{};
    std::uint32_t running = 0;
    ReadyHeap ready;
    std::uint32_t eligible_place = ReadyHeap::kNowhere;
    std::uint32_t resting_place = ReadyHeap::kNowhere;
  };
  struct Again {
    std::int32_t priority;
    TimePoint due_at;
    std::uint64_t payload;
  };

  // --- nodes and their index by id
  Node& node(Slot slot) const noexcept { return chunks_[slot / kChunk][slot % kChunk]; }
  Slot new_node();
  void free_node(Slot slot) noexcept;
  Slot find(JobId id) const noexcept;
  void index_insert(JobId id, Slot slot) noexcept;
  void index_erase(JobId id) noexcept;
  void index_grow();

  // --- moving between states
  ReadyRank rank_of(const Node& job) const noexcept;
  std::uint32_t next_sequence();
  void renumber();
  void make_ready(Slot slot, TimePoint now);
  void make_delayed(Slot slot, TimePoint due_at);
  void place_by_due(Slot slot, TimePoint due_at, TimePoint now);
  void take_from_heap(Slot slot, TimePoint now);
  Slot running_slot(std::uint64_t token) const noexcept;
  void end_lease(Slot slot, TimePoint now);
  void promote(TimePoint now);
  void expire_leases(TimePoint now);
  void update_key(std::uint32_t key, TimePoint now);
  void leave_heaps(Key& key) noexcept;

  // Where an item of each heap keeps its position.
  auto job_place() noexcept {
    return [this](Slot slot) -> std::uint32_t& { return node(slot).place; };
  }
  auto eligible_place() noexcept {
    return [this](std::uint32_t key) -> std::uint32_t& { return keys_[key].eligible_place; };
  }
  auto resting_place() noexcept {
    return [this](std::uint32_t key) -> std::uint32_t& { return keys_[key].resting_place; };
  }

  static constexpr std::size_t kChunk = 4096;
  std::vector<std::unique_ptr<Node[]>> chunks_;
  Slot free_ = kNoSlot;  // list of free nodes, linked by `place`
  Slot used_nodes_ = 0;  // that were ever used
  std::vector<Slot> index_;
  std::size_t indexed_ = 0;

  QueueLimits limits_;
  TokenBucket bucket_;
  std::uint32_t max_lease_expiries_;
  std::uint32_t sequence_ = 0;
  std::uint32_t generation_ = 0;
  std::size_t ready_ = 0;
  std::size_t keys_with_ready_ = 0;
  IndexedHeap<TimePoint, Slot> delayed_;
  IndexedHeap<TimePoint, Slot> leases_;
  std::vector<Key> keys_;
  IndexedHeap<ReadyRank, std::uint32_t> eligible_;  // keys that may start a job now, by their most important one
  IndexedHeap<TimePoint, std::uint32_t> resting_;   // keys with ready jobs that time will let go on
  std::unordered_map<std::string, KeyId> key_names_;
  std::unordered_map<JobId, Again> again_;
  std::vector<JobId> buried_;
};

}  // namespace argiope
