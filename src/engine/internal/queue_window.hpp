// The part of one queue that is in memory: a JobQueue with the jobs that matter next, and what has to be read from the
// store before its choice can be trusted. It calls no store; the broker does, and tells it what came back.
//
// For each of the store's shelves the window keeps one bound: the first job, in the shelf's order, that may not be in
// memory. All before it are; those after it may be. A bound may be too early, at the cost of reading jobs again that are
// known; it is never too late.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "argiope/jobs/job_queue.hpp"
#include "argiope/store/store.hpp"
#include "engine/internal/job_clock.hpp"

namespace argiope {

class QueueWindow {
 public:
  // At most about `most` ready jobs, and as many delayed ones, are kept; twice that for a moment.
  // While all jobs there are fit into it, `room` (0: `most`) is the limit instead.
  QueueWindow(StoredQueue stored, std::size_t most, const JobClock& clock, std::size_t room = 0);
  QueueWindow(QueueWindow&&) = delete;

  QueueId id() const noexcept { return stored_.id; }
  const std::string& name() const noexcept { return stored_.name; }
  const StoredQueue& stored() const noexcept { return stored_; }
  const QueueConfig& config() const noexcept { return stored_.config; }
  void configure(QueueConfig config, TimePoint now);
  JobQueue& jobs() noexcept { return jobs_; }
  const JobQueue& jobs() const noexcept { return jobs_; }

  // A job waits in the store as said: kept here if it belongs to what matters next.
  void place(const WaitingJob& job, TimePoint now);
  // It waits no more, or nobody knows.
  void forget(JobId id, TimePoint now) { jobs_.remove(id, now); }
  // For an owner who stores only what is not in memory, and knows without asking what the store holds. ---
  // The store holds nothing but what left_in_store() tells of: said once, before anything else.
  void nothing_is_stored();
  // The job lies in the store on its shelf and is not wanted here yet.
  void left_in_store(const WaitingJob& job);
  // A job that is on no shelf: it is in memory now, or must be put on the shelf returned.
  std::optional<Shelf> offer(const WaitingJob& job, TimePoint now);
  // Writes what leaves memory without having been leased, and the shelf on which it is to be found, to `log`; null: nowhere.
  struct LetGo {
    JobId id = 0;
    Shelf shelf{};
  };
  void set_log_of_leaving(std::vector<LetGo>* log) noexcept { leaving_ = log; }
  // Whether no job in the store could be more important than what lease() would give, but for jobs of keys that have some
  // set aside: less than top_is_certain(), for an owner to whom one key's order is no reason to keep others waiting.
  bool top_is_certain_but_for_keys() const;
  // Whether all of that importance that was on the shelf of ready jobs has been read from it.
  bool has_read(const Rank& rank) const noexcept { return more_important(rank, ready_bound_); }
  const Rank& first_unread() const noexcept { return ready_bound_; }
  // A ready job is not to be in memory now: to the shelf of ready jobs with it.
  void let_go(JobId id, TimePoint now);

  // ---
  // To which shelf a new job should go that is ready.
  bool sets_aside(std::string_view key, std::int32_t priority) const;

  // Whether what JobQueue::lease() would give is what the whole queue would. After tick().
  bool top_is_certain() const;

  // --- reading on
  struct Load {
    enum class From : std::uint8_t { ready, delayed, key, keys } from = From::ready;
    Rank after;       // ready, key
    std::string key;  // key
    std::optional<std::string> after_key;
    WallTime due_after{};  // delayed
    JobId due_after_id = 0;
    std::size_t limit = 0;
  };
  bool wants_load(TimePoint now);
  // When jobs become due that are not here; kNever if there are none.
  TimePoint next_load_time() const {
    return !keys_known_ || all_delayed() ? kNever : clock_.to_monotonic(delayed_bound_.due_at);
  }
  // What to read now; empty: nothing. Jobs to be moved to another shelf before: see take_moves().
  std::vector<Load> loads(TimePoint now);
  // The answers to loads(): of each, or of some, at once or after other calls; what was not answered is asked for again.
  void loaded(const Load& load, const std::vector<WaitingJob>& jobs, TimePoint now);
  void loaded_keys(const Load& load, const std::vector<std::string>& keys);
  // Jobs that must go to another shelf, since the last call; to be told to the store before anything is read.
  struct Moves {
    std::vector<JobId> to_ready;
    std::vector<JobId> to_set_aside;
    bool empty() const noexcept { return to_ready.empty() && to_set_aside.empty(); }
  };
  Moves take_moves() { return std::exchange(moves_, {}); }
  // Lets go of the least important ones when there are too many.
  void trim(TimePoint now);
  // A job of this key has been leased.
  void took(KeyId key);

 private:
  struct DueRank {
    WallTime due_at{};
    JobId id = 0;
    friend auto operator<=>(const DueRank&, const DueRank&) = default;
  };
  static constexpr Rank kLastRank{std::numeric_limits<std::int32_t>::min(), std::numeric_limits<JobId>::max()};
  static constexpr DueRank kLastDue{WallTime::max(), std::numeric_limits<JobId>::max()};
  static constexpr Rank before(const Rank& rank) noexcept { return {rank.priority, rank.id == 0 ? 0 : rank.id - 1}; }
  static Rank rank_of(JobId id, const JobInfo& info) noexcept { return {info.priority, id}; }
  static bool more_important_first(const std::pair<JobId, JobInfo>& a, const std::pair<JobId, JobInfo>& b) noexcept {
    return more_important(rank_of(a.first, a.second), rank_of(b.first, b.second));
  }
  bool comes_before(std::optional<JobId> job, const Rank& bound) const;
  static Shelf shelf_of(const JobInfo& info) noexcept { return static_cast<Shelf>(info.payload); }
  // A key that has jobs set aside.
  struct Aside {
    Rank bound = kLastRank;
    Rank missed = kLastRank;
  };

  bool has_its_share(const std::string& key);
  bool all_ready() const noexcept { return ready_bound_ == kLastRank; }
  bool all_delayed() const noexcept { return delayed_bound_ == kLastDue; }
  bool admit(const WaitingJob& job);
  void pass_by(const Rank& rank) noexcept;
  void pass_by(const DueRank& rank) noexcept;
  void pass_by(Aside& aside, const Rank& rank) noexcept;
  void put(const WaitingJob& job, TimePoint now);
  std::uint32_t sequence_of(JobId id);
  void update_hunger(const std::string& key);
  bool wants_ready(TimePoint now);
  bool wants_delayed() const;
  bool set_blocked_keys_aside(TimePoint now);
  void drop(JobId id, const JobInfo& info, TimePoint now);
  void tell_leaving(JobId id, Shelf shelf) {
    if (leaving_ != nullptr) leaving_->push_back({id, shelf});
  }
  // What a key may have in memory when so many have to share.
  std::size_t share_of(std::size_t keys) const noexcept;
  std::size_t key_cap() const noexcept;

  StoredQueue stored_;
  const std::size_t most_;
  const std::size_t room_;
  const JobClock& clock_;
  JobQueue jobs_;
  JobId sequence_base_ = 0;
  std::size_t keys_to_prune_at_ = most_;

  // What lies before these is in memory; `missed_` are the first of those that came and went by during a load.
  Rank ready_bound_{};
  Rank ready_missed_ = kLastRank;
  DueRank delayed_bound_{WallTime::min(), 0};
  DueRank delayed_missed_ = kLastDue;
  std::unordered_map<std::string, Aside> asides_;
  std::unordered_set<std::string> hungry_;    // keys of asides_ of which few jobs are in memory
  std::unordered_set<std::string> starving_;  // those of which the most important one is not
  bool keys_known_ = false;
  std::string last_key_;
  // Full of jobs that cannot run: nothing more is read until some of them can.
  bool saturated_ = false;
  Moves moves_;
  std::vector<LetGo>* leaving_ = nullptr;
};

}  // namespace argiope
