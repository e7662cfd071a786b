// One queue: JobQueue, which holds it in memory, the limits that it keeps to, and QueueConfig, the policy of a queue
// with a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/detail/indexed_heap.hpp"
#include "argiope/base/error.hpp"
#include "argiope/base/random.hpp"
#include "argiope/jobs/detail/job_table.hpp"
#include "argiope/jobs/detail/token_level.hpp"
#include "argiope/jobs/job.hpp"

namespace argiope {

// How long to wait before a failed job is tried again: after attempt n, first · factor^(n−1), at most `longest`; or,
// when there is a table, its n-th entry (the last one from there on). A store and a configuration hold these fields.
struct RetryPolicy {
  std::uint32_t max_attempts = 3;  // the first included
  Duration first = std::chrono::seconds{1};
  double factor = 4;
  Duration longest = std::chrono::hours{1};
  // The wait is drawn evenly from [1 − jitter, 1] of itself, so that what failed together does not come back together.
  // 0: no chance in it; 1: "full jitter", anything down to no wait at all.
  double jitter = 0.25;
  std::vector<Duration> table;

  // The wait after the `attempts`-th attempt (from 1) has failed; nullopt when that was the last. Never negative, and
  // never an overflow, whatever the fields hold.
  std::optional<Duration> delay_after(std::uint32_t attempts, Random& random) const;
};

// JobQueue: the in-memory heart of one partition. It knows which jobs are ready, due later or running, and which may
// run next under the limits of the queue and of each key.
//
// pyspider's TaskQueue (priority queue, time queue, processing queue, token bucket) with keys. It keeps no payloads,
// reads no clock and starts nothing: its owner asks for the next job, and asks again at next_wakeup().

inline constexpr std::uint32_t kUnlimited = ~0u;

struct KeyLimits {
  double rate = kUnlimitedRate;  // starts a second; 0: none
  double burst = 1;              // whole starts, at least 1
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
  TimePoint due_at = TimePoint::min();
  std::uint64_t payload = 0;  // the caller's; comes back with the lease
  // For jobs that were known before this queue was, to be where they would be had they never left:
  std::optional<std::uint32_t> sequence =
      {};  // the place among equals, lower first; else after all that were put before
  std::uint16_t attempts = 0;
  std::uint8_t expiries = 0;
};

enum class PutResult : std::uint8_t {
  added,
  merged,     // was waiting: now has the higher priority and the earlier time of both, and its old key and payload
  unchanged,  // was waiting, and the put asked for nothing more
  run_again,  // is running: the put acts as if it came right after this run, see done() and retry()
};

// The right to run one job. The token tells this lease from the 2³² − 1 that came before and after it in the same slot,
// in this queue; a program that stores tokens beyond the life of the queue must store with them which queue they are
// from.
struct Lease {
  JobId id = 0;
  std::uint64_t token = 0;
  KeyId key{};
  std::int32_t priority = 0;
  std::uint64_t payload = 0;
  std::uint32_t attempts = 0;  // this one included; stays at 65,535
};

// A lease that ran out.
struct ExpiredLease {
  JobId id = 0;
  std::uint64_t token = 0;
  bool buried = false;  // it was the last one: the job has been dropped; else it is ready again
  friend bool operator==(const ExpiredLease&, const ExpiredLease&) = default;
};

struct JobInfo {
  KeyId key{};
  JobState state = JobState::ready;
  std::int32_t priority = 0;
  TimePoint until{};  // delayed: when it is due; running: the end of its lease
  std::uint64_t payload = 0;
  std::uint32_t attempts = 0;
};

struct Explanation {
  WaitReason reason = WaitReason::none;
  TimePoint until = kNever;         // when the reason ends, if time alone ends it
  std::size_t ahead = 0;            // more important jobs that may start
  JobState state = JobState::done;  // done: there is no such job here
};

struct JobCounts {
  std::size_t ready = 0;
  std::size_t delayed = 0;
  std::size_t running = 0;
  friend bool operator==(const JobCounts&, const JobCounts&) = default;
};

// Order:   higher priority first; among equals, first put first served, whatever happened to them since. A key that
//          must wait holds up no other key.
// Cost:    put, lease and what settles a lease O(log jobs of the key + log keys). A million jobs take 58 bytes each,
//          the payload number aside; a key some 150 and its name. Memory that a burst made it take is kept for the
//          next.
// Errors:  put, key and what moves a job may throw std::bad_alloc, and then that job is where it was. A KeyId that does
//          not exist: std::invalid_argument. A stale token settles nothing: false.
// Time:    comes with each call, on one clock that never steps back. Due jobs are found by the next lease() or tick();
//          counts are as of then.
// Threads: one at a time.
class JobQueue {
 public:
  // A job whose lease has run out `max_lease_expiries` times (1 to 255; more: never) is dropped as buried.
  // `first_sequence` numbers the first put; only the test of its overflow has a use for it.
  explicit JobQueue(QueueLimits limits = {}, std::uint32_t max_lease_expiries = 3, std::uint32_t first_sequence = 0);
  ~JobQueue();
  JobQueue(JobQueue&&) noexcept;

  // --- keys
  // The key of that name, made if need be. Its id is good as long as the queue, or, for an owner who calls
  // prune_keys(), as long as the key has a job, a rest or limits of its own.
  KeyId key(std::string_view name);
  std::string_view name_of(KeyId key) const { return *keys_[index_of(key)].name; }
  void set_key_limits(KeyId key, const KeyLimits& limits, TimePoint now);
  // Back to the limits of keys that have none of their own.
  void reset_key_limits(KeyId key, TimePoint now);
  // O(keys).
  void set_default_key_limits(const KeyLimits& limits, TimePoint now);
  // The key starts nothing before `until`; never shortens a rest. kNever: until wake_key().
  void rest_key(KeyId key, TimePoint until, TimePoint now);
  // Ends a rest.
  void wake_key(KeyId key, TimePoint now);
  // Forgets keys without jobs whose rest is over, whose bucket is full and that have no limits of their own; their ids
  // will be given to other names. Returns how many. O(keys).
  std::size_t prune_keys(TimePoint now) noexcept;
  // The same for one key, limits of its own or not. False: it has jobs, its rest is not over or its bucket not full.
  bool forget_key(KeyId key, TimePoint now);

  // --- the whole queue
  void set_limits(const QueueLimits& limits, TimePoint now);
  void pause() noexcept { limits_.paused = true; }
  void resume() noexcept { limits_.paused = false; }

  // --- jobs that wait
  PutResult put(const JobSpec& spec, TimePoint now);
  bool contains(JobId id) const noexcept { return jobs_.find(id) != kNoSlot; }
  std::optional<JobInfo> find(JobId id) const noexcept;
  // The payload of a job that is queued or running.
  std::optional<std::uint64_t> payload_of(JobId id) const noexcept;
  // These three: false when no such job is waiting.
  bool set_priority(JobId id, std::int32_t priority, TimePoint now);
  bool set_due(JobId id, TimePoint due_at, TimePoint now);
  bool remove(JobId id, TimePoint now);

  // --- jobs that run
  // The most important job that is due and allowed, now leased until now + lease_time. A lease that runs out makes the
  // job ready again, or drops it as buried: see take_expired().
  std::optional<Lease> lease(TimePoint now, Duration lease_time);
  // This job, which waits: whether or not it is due, in its order or allowed to start. It takes permits of rates where
  // there are some. nullopt: no such job waits.
  std::optional<Lease> lease_job(JobId id, TimePoint now, Duration lease_time);
  // As many run as may, of the queue or of this key.
  bool is_at_concurrency(KeyId key) const;
  // Nothing limits when jobs of this key start, and how many run: neither the queue nor the key.
  bool starts_freely(KeyId key, TimePoint now) const;
  bool renew(std::uint64_t token, TimePoint until);
  // The job has ended, however it ended. One that was put while it ran is queued again, as a new job with no attempts.
  bool done(std::uint64_t token, TimePoint now);
  // The job has failed for good. In memory that is an end like any other.
  bool bury(std::uint64_t token, TimePoint now) { return done(token, now); }
  // To be run again at `due_at`, at its old place among its equals. A put that came while it ran is merged into it.
  bool retry(std::uint64_t token, TimePoint due_at, TimePoint now, std::optional<std::int32_t> priority = {});
  // The same, but the attempt is given back: it has not failed. The permits that its start took are spent.
  bool release(std::uint64_t token, TimePoint due_at, TimePoint now, std::optional<std::int32_t> priority = {});
  // Back to its old place, as if it had not been leased: the attempt is given back, and so are the permits of rates if
  // none has been taken since.
  bool put_back(std::uint64_t token, TimePoint now);
  // Leases that ran out since the last call, in the order in which they did.
  std::vector<ExpiredLease> take_expired() { return std::exchange(expired_, {}); }
  void set_max_lease_expiries(std::uint32_t count) noexcept { max_lease_expiries_ = count; }

  // --- time
  // Does what is due (jobs become ready, leases run out, rests end); returns next_wakeup().
  TimePoint tick(TimePoint now);
  // When tick() or lease() may do something that they do not do now, with no other call in between; kNever if that
  // needs one. `now` or earlier: at once. After a lease() that gave nothing it is always later.
  TimePoint next_wakeup(TimePoint now) const noexcept;
  // The same, but for jobs that may start now: when the passing of time changes anything else. Always later than a
  // tick(now).
  TimePoint next_change(TimePoint now) const noexcept;

  // Writes the id of each delayed job that becomes ready by the passing of time to `log`; null: nowhere.
  void set_due_log(std::vector<JobId>* log) noexcept { due_log_ = log; }

  // --- to look at
  // The job that lease() would give, if the queue's own limits let it; after tick(now).
  std::optional<JobId> most_important() const noexcept;
  // The most important one of a key that is ready, whether or not it may start.
  std::optional<JobId> most_important(KeyId key) const;
  // Whether the queue's own limits let a job start.
  bool may_start(TimePoint now) const noexcept {
    return !limits_.paused && leases_.size() < limits_.concurrency && bucket_.ready(now);
  }
  // Calls visit(id, info) for each job, in no order. The visitor changes nothing.
  template <class Visit>
  void for_each(Visit&& visit) const {
    jobs_.for_each([&](Slot slot) { visit(jobs_[slot].id, info_of(slot)); });
  }
  // Takes `by` from the sequence of every job, down to 0 at least: for callers who give sequences and run out of them.
  void shift_sequences(std::uint32_t by);
  // O(jobs).
  Explanation explain(JobId id, TimePoint now);
  JobCounts counts() const noexcept { return {ready_, delayed_.size(), leases_.size()}; }
  JobCounts counts(KeyId key) const;
  std::size_t size() const noexcept { return jobs_.size(); }
  std::size_t ready_count() const noexcept { return ready_; }
  std::size_t delayed_count() const noexcept { return delayed_.size(); }
  std::size_t key_count() const noexcept { return key_names_.size(); }
  // Keys that have ready jobs and must wait.
  std::size_t keys_waiting() const noexcept { return keys_with_ready_ - eligible_.size(); }
  // Of everything but the names of keys.
  std::size_t memory_bytes() const noexcept;

 private:
  using Slot = JobTable::Slot;
  using Job = JobTable::Job;
  static constexpr Slot kNoSlot = JobTable::kNoSlot;

  // Ready jobs by importance: less is more important. Packed, so that an entry of a heap has 12 bytes.
  struct [[gnu::packed]] ReadyRank {
    std::uint64_t value;
    bool operator<(const ReadyRank& other) const noexcept { return value < other.value; }
  };
  using ReadyHeap = IndexedHeap<ReadyRank, Slot>;
  struct LeaseRef {
    Slot slot;
    std::uint32_t generation;
  };

  // In which heap of keys a key is.
  enum class Standing : std::uint8_t { out, eligible, resting };
  struct Key {
    const std::string* name = nullptr;  // in key_names_
    ReadyHeap ready;
    TokenLevel bucket;
    TimePoint rest_until = TimePoint::min();
    Duration delay{};
    std::uint32_t concurrency = kUnlimited;
    std::uint32_t running = 0;
    std::uint32_t delayed = 0;
    std::uint32_t last_permit = 0;  // the lease that took the bucket's last permit
    Standing standing = Standing::out;
    bool own_limits = false;
    bool forgotten = false;
  };
  // A put that came while its job ran.
  struct Again {
    std::int32_t priority;
    TimePoint due_at;
    std::uint64_t payload;
  };
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>{}(name); }
  };

  // --- keys
  std::uint32_t index_of(KeyId key) const;
  Key& key_of(const Job& job) noexcept { return keys_[static_cast<std::uint32_t>(job.key)]; }
  void apply_limits(KeyId key, const KeyLimits& limits, TimePoint now) noexcept;
  bool is_idle(const Key& key, TimePoint now) const noexcept;
  void forget(std::uint32_t index) noexcept;
  void update_key(KeyId key, TimePoint now) noexcept;

  // --- moving between states. Room is asked for first (make_room), which may fail; the moves cannot.
  ReadyRank rank_of(const Job& job) const noexcept;
  std::uint32_t next_sequence();
  void renumber();
  void set_sequence(Slot slot, std::uint32_t sequence);
  void refresh_eligible();
  JobInfo info_of(Slot slot) const noexcept;
  void make_room(const Job& job, TimePoint due_at, TimePoint now);
  void place_by_due(Slot slot, TimePoint due_at, TimePoint now) noexcept;
  void make_ready(Slot slot, TimePoint now) noexcept;
  void leave_delayed(Slot slot) noexcept;
  void leave_ready(Slot slot, TimePoint now) noexcept;
  void reprioritise(Slot slot, std::int32_t priority, TimePoint now) noexcept;
  bool move_due(Slot slot, TimePoint due_at, TimePoint now);
  PutResult merge(Slot slot, const JobSpec& spec, TimePoint now);
  Slot waiting_slot(JobId id) const noexcept;
  Slot running_slot(std::uint64_t token) const noexcept;
  Lease begin_lease(Slot slot, TimePoint now, Duration lease_time) noexcept;
  void end_lease(Slot slot, TimePoint now) noexcept;
  void run_again(Slot slot, TimePoint now);
  void requeue(Slot slot, std::int32_t priority, TimePoint due_at, TimePoint now);
  void expire(Slot slot, TimePoint now);
  void advance(TimePoint now);

  // Where an item of each heap keeps its position.
  auto job_place() noexcept {
    return [this](Slot slot) -> std::uint32_t& { return jobs_.place(slot); };
  }
  auto lease_place() noexcept {
    return [this](LeaseRef lease) -> std::uint32_t& { return jobs_.place(lease.slot); };
  }
  auto key_place() noexcept {
    return [this](KeyId key) -> std::uint32_t& { return key_places_[static_cast<std::uint32_t>(key)]; };
  }

  JobTable jobs_;
  IndexedHeap<TimePoint, Slot> delayed_;     // by when they are due
  IndexedHeap<TimePoint, LeaseRef> leases_;  // by when they end
  std::unordered_map<JobId, Again> again_;
  std::vector<ExpiredLease> expired_;
  std::vector<JobId>* due_log_ = nullptr;

  std::vector<Key> keys_;
  // The place of each key in the heap of its standing; of a forgotten key, the next such.
  std::vector<std::uint32_t> key_places_;
  IndexedHeap<ReadyRank, KeyId> eligible_;  // keys that may start a job now, by their most important one
  IndexedHeap<TimePoint, KeyId> resting_;   // keys with ready jobs that time will let go on
  std::unordered_map<std::string, KeyId, NameHash, std::equal_to<>> key_names_;
  static constexpr std::uint32_t kNoKey = ~0u;
  std::uint32_t forgotten_key_;  // list of ids to give out again
  KeyLimits default_key_limits_;

  QueueLimits limits_;
  TokenLevel bucket_;
  std::uint32_t max_lease_expiries_;
  std::uint32_t sequence_;
  std::uint32_t generation_ = 0;
  std::uint32_t last_permit_ = 0;
  std::size_t ready_ = 0;
  std::size_t keys_with_ready_ = 0;
};

enum class CapacityPolicy : std::uint8_t {
  wait,    // a put waits until there is room
  refuse,  // a put gets Errc::refused
};

struct QueueConfig {
  QueueLimits limits;  // rate, burst, concurrency, paused
  // While it is paused: when that ends by itself, and from then on this means nothing. The epoch: it does not.
  WallTime paused_until{};
  KeyLimits key_limits;  // the same for each key, and the delay between its jobs
  RetryPolicy retry;
  Duration lease_time = std::chrono::seconds{60};
  std::uint32_t max_lease_expiries = 3;
  std::uint64_t capacity = std::numeric_limits<std::uint64_t>::max();  // jobs that have not ended
  CapacityPolicy at_capacity = CapacityPolicy::refuse;
  std::size_t max_payload_bytes = 1024 * 1024;
  // How long jobs are kept after their end; 0: not at all. Buried ones are kept until they are kicked or deleted,
  // unless a time is set.
  Duration keep_done{};
  Duration keep_cancelled{};
  Duration keep_buried = Duration::max();
  // A waiting job's priority counts as one higher for each such span it has been ready; 0: never.
  Duration ageing{};
  // Its share when a worker serves several queues that have work: twice the weight, twice the jobs. 1 to 1000.
  std::uint32_t weight = 1;
};

// The priority by which a job ranks that is ready since `ready_at`. Without ageing that is its own. With it, what
// counts is priority + age / ageing; since all jobs age alike, their order is that of priority − ready_at / ageing,
// which never changes. (Counted from 2026, so that it fits for 68 years with an ageing of a second, the shortest that
// is kept.)
std::int32_t ranked_priority(std::int32_t priority, WallTime ready_at, Duration ageing) noexcept;

// As one JSON object, and back. Members that are missing keep the value they have in `base`; durations are in
// whole milliseconds with names that end in _ms; "unlimited" stands for no limit. A text to be read may also give a
// duration under its name without _ms, as a span of base/clock.hpp: "retry_first":"100ms".
// Errors: invalid_input naming the member that is unknown, of the wrong type or out of range.
std::string to_json(const QueueConfig& config);
Result<QueueConfig> parse_queue_config(std::string_view json, const QueueConfig& base = {});

}  // namespace argiope
