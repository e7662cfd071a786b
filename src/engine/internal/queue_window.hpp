// The part of one queue that is in memory: a JobQueue with the jobs that matter next, and what has to be read from the
// store before its choice can be trusted. It calls no store; its owner does, and tells it what came back: the broker
// for the jobs of a queue, the crawl's frontier for the pages of its hosts.
//
// For each of the store's shelves the window keeps one ShelfBound. The choice can be trusted while the most important
// job in memory comes before all bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "argiope/jobs/job_queue.hpp"
#include "argiope/store/store.hpp"
#include "engine/internal/job_clock.hpp"
#include "engine/internal/shelf_bound.hpp"

namespace argiope {

class QueueWindow {
 public:
  // Which jobs that wait are on the store's shelves.
  enum class OnShelves : std::uint8_t {
    all,  // those in memory too: each is put there before place() tells of it
    // Those that are not in memory, and some that have been read: a job is put on a shelf when the window says so. Only
    // its owner writes, so what the store holds at first is told by left_in_store().
    all_but_here,
  };
  // At most about `most` ready jobs, and as many delayed ones, are kept; twice that for a moment.
  // While all jobs there are fit into it, `room` (0: `most`) is the limit instead.
  QueueWindow(StoredQueue stored, std::size_t most, const JobClock& clock, std::size_t room = 0,
              OnShelves on_shelves = OnShelves::all);
  QueueWindow(QueueWindow&&) = delete;

  QueueId id() const noexcept { return stored_.id; }
  const std::string& name() const noexcept { return stored_.name; }
  const StoredQueue& stored() const noexcept { return stored_; }
  const QueueConfig& config() const noexcept { return stored_.config; }
  void configure(QueueConfig config, TimePoint now);
  JobQueue& jobs() noexcept { return jobs_; }
  const JobQueue& jobs() const noexcept { return jobs_; }

  // --- jobs that come and go
  // A job waits in the store on its shelf: kept here too if it belongs to what matters next.
  void place(const WaitingJob& job, TimePoint now);
  // The same, and it is kept here whatever comes before it. Where it is here already, it stays as it is.
  void hold(const WaitingJob& job, TimePoint now);
  // The same as place(), for one that is not wanted here yet.
  void left_in_store(const WaitingJob& job);
  // With all_but_here: a job that is on no shelf. It is in memory now, or must be put on the shelf returned.
  std::optional<Shelf> offer(const WaitingJob& job, TimePoint now);
  // It waits no more, or nobody knows.
  void forget(JobId id, TimePoint now);
  // A ready job is not wanted in memory now: to the shelf of ready jobs with it.
  void let_go(JobId id, TimePoint now);
  // A job of this key has been leased.
  void took(KeyId key);
  // Lets go of the least important ones when there are too many.
  void trim(TimePoint now);
  // To which shelf a new job should go that is ready.
  bool sets_aside(std::string_view key, std::int32_t priority) const;
  // Jobs that must go to a shelf, since the last call; to be told to the store before anything is read. With
  // all_but_here these are all that have left memory without having been leased or forgotten.
  struct Move {
    JobId id = 0;
    Shelf shelf{};
  };
  std::vector<Move> take_moves() { return std::exchange(moves_, {}); }

  // --- what can be trusted
  // Whether what JobQueue::lease() would give is what the whole queue would. After tick().
  bool top_is_certain() const;
  // The same but for jobs of keys that have some set aside: for an owner to whom one key's order is no reason to keep
  // others waiting.
  bool top_is_certain_but_for_keys() const;
  // How far the shelf of ready jobs has been read.
  const ShelfBound<Rank>& ready() const noexcept { return ready_; }

  // --- reading on
  struct Load {
    bool keys = false;  // no jobs, but names of keys that have some set aside: `read.limit` after `after_key`
    std::optional<std::string> after_key;
    ShelfRead read;
    std::string key;  // set_aside
  };
  bool wants_load(TimePoint now);
  // When jobs become due that are not here; kNever if there are none.
  TimePoint next_load_time() const {
    return !keys_known_ || delayed_.has_read_all() ? kNever : clock_.to_monotonic(delayed_.first_unread().due_at);
  }
  // The loads to read now; empty: nothing. Jobs may have to go to a shelf before: see take_moves().
  std::vector<Load> loads(TimePoint now);
  // The answers to loads(): of each, or of some, at once or after other calls; what was not answered is asked for
  // again.
  void loaded(const Load& load, const std::vector<WaitingJob>& jobs, TimePoint now);
  void loaded_keys(const Load& load, const std::vector<std::string>& keys);

 private:
  static Rank rank_of(JobId id, const JobInfo& info) noexcept { return {info.priority, id}; }
  static bool more_important_first(const std::pair<JobId, JobInfo>& a, const std::pair<JobId, JobInfo>& b) noexcept {
    return more_important(rank_of(a.first, a.second), rank_of(b.first, b.second));
  }
  bool has_read(const ShelfBound<Rank>& shelf, std::optional<JobId> job) const;
  static Shelf shelf_of(const JobInfo& info) noexcept { return static_cast<Shelf>(info.payload); }
  // Of a key; one that has nothing set aside yet gets one.
  ShelfBound<Rank>& aside_of(const std::string& key) {
    return asides_.try_emplace(key, ShelfBound<Rank>::at_end()).first->second;
  }

  bool has_its_share(const std::string& key);
  bool admit(const WaitingJob& job);
  void put(const WaitingJob& job, TimePoint now);
  std::uint32_t sequence_of(JobId id);
  void update_hunger(const std::string& key);
  bool wants_ready(TimePoint now);
  bool wants_delayed() const;
  bool set_blocked_keys_aside(TimePoint now);
  void drop(JobId id, const JobInfo& info, TimePoint now);
  // A job that was on one shelf, or is kept here as if it were, belongs on another, or leaves memory.
  void move(JobId id, Shelf from, Shelf to);
  // The share of memory for a key when so many have to share.
  std::size_t share_of(std::size_t keys) const noexcept;
  std::size_t key_cap() const noexcept;

  StoredQueue stored_;
  const std::size_t most_;
  const std::size_t room_;
  const OnShelves on_shelves_;
  const JobClock& clock_;
  JobQueue jobs_;
  JobId sequence_base_ = 0;
  std::size_t keys_to_prune_at_ = most_;

  ShelfBound<Rank> ready_;
  ShelfBound<DueRank> delayed_;
  std::unordered_map<std::string, ShelfBound<Rank>> asides_;  // of keys that have jobs set aside
  std::unordered_set<std::string> hungry_;                    // keys of asides_ of which few jobs are in memory
  std::unordered_set<std::string> starving_;                  // those of which the most important one is not
  bool keys_known_ = false;
  std::string last_key_;
  // Full of jobs that cannot run: nothing more is read until some of them can.
  bool saturated_ = false;
  std::vector<Move> moves_;
};

}  // namespace argiope
