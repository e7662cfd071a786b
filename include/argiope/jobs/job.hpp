// Jobs: their life, what is asked for when one is put, and what a store knows of it afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"

namespace argiope {

// The life of a job: its states, which of them may follow which, and why one that is ready waits. No queue here; every
// store and every face of Argiope speaks of jobs in these words.

//          put(due later)            put(due now)
//               │                        │
//               ▼         due            ▼       lease            done ─► DONE
//           DELAYED ─────────────────► READY ───────────► RUNNING ─┤
//               ▲                      ▲  ▲                │  │    └─ cancelled ─► CANCELLED
//               │  retry (back-off)    │  └─ lease expired─┘  │
//               └──────────────────────┼───── failed, attempts left
//                                      └─ kick ── BURIED ◄─── failed for good, or lease expired max times
//
// Besides: whatever waits can be cancelled, a READY job that is made due later is DELAYED again, and a lease that is
// given back goes the way of one that expired.
enum class JobState : std::uint8_t { delayed, ready, running, done, cancelled, buried };

constexpr std::string_view to_string(JobState state) noexcept {
  constexpr std::string_view kNames[] = {"delayed", "ready", "running", "done", "cancelled", "buried"};
  return kNames[static_cast<std::size_t>(state)];
}

// True for the arrows of the drawing, and for no others.
constexpr bool may_move(JobState from, JobState to) noexcept {
  using enum JobState;
  switch (from) {
    case delayed: return to == ready || to == cancelled;
    case ready: return to == running || to == delayed || to == cancelled;
    case running: return to == done || to == cancelled || to == delayed || to == ready || to == buried;
    case buried: return to == ready || to == cancelled;
    case done:
    case cancelled: return false;
  }
  return false;
}

// Why a job does not run. Of several reasons the one named is the first of this list that holds.
enum class WaitReason : std::uint8_t {
  none,  // it is the next one
  not_found,
  running,
  ended,  // done or cancelled
  buried,
  other_jobs,  // delayed: jobs that it waits for have not ended
  not_due,     // delayed
  no_owner,    // no process owns the partition, so none leases from this store
  queue_paused,
  queue_concurrency,
  queue_rate,  // the queue's bucket is empty
  key_resting,
  key_concurrency,
  key_rate,
  more_important_jobs,
  no_worker,  // no worker asks for jobs of this queue
};

constexpr std::string_view to_string(WaitReason reason) noexcept {
  constexpr std::string_view kNames[] = {"none",
                                         "not found",
                                         "running",
                                         "ended",
                                         "buried",
                                         "waits for other jobs",
                                         "not due",
                                         "partition without owner",
                                         "queue paused",
                                         "queue at concurrency",
                                         "queue bucket empty",
                                         "key resting",
                                         "key at concurrency",
                                         "key bucket empty",
                                         "more important jobs ahead",
                                         "no worker"};
  return kNames[static_cast<std::size_t>(reason)];
}

using JobId = std::uint64_t;
// The target of a job, interned by JobQueue::key().
enum class KeyId : std::uint32_t {};

using ScheduleId = std::uint64_t;  // given by the store, from 1; never given to another

// The outcome of a put when a job of its queue with the same unique name is still to end. While that job waits:
enum class UniquePolicy : std::uint8_t {
  keep,     // the old job stays as it is
  replace,  // the new payload, function, priority, key, lease time and due time take the place of the old ones
  merge,    // as pyspider: the higher priority and the earlier time of both, the old payload
};
// And while it runs, `NewJob::run_again` decides: the put is dropped, or the job runs once more after this run.

// The fate of a job when one that it waits for fails for good, is cancelled or deleted, be it before the job was put or
// after.
enum class DependencyPolicy : std::uint8_t {
  run,     // it runs anyway: it waits for the ends, not for successes
  cancel,  // it is cancelled too, and so are those that wait for it
};

// The caller that asks for new jobs, and the jobs that these may name.
struct JobReach {
  std::string who;  // makes the queues that are not there yet; empty: the program itself
  // Whether jobs of the queue of that name are in reach. Called on the store's thread, at any time.
  std::function<bool(std::string_view queue)> has;
  bool is_bound = false;  // to some beginnings of names: what is in reach is its own
  bool operator()(std::string_view queue) const { return has(queue); }
};
using JobReachRef = std::shared_ptr<const JobReach>;

struct NewJob {
  // 0: the store gives one, larger than all before it but for those above kMostCountedId that callers have chosen, none
  // of which it gives again while its job is known. Else at most kMostJobId.
  JobId id = 0;
  std::string name;  // the caller's own id, unique in the store while the job is known; a second put of it adds nothing
  std::string queue;
  std::string key;  // what the work is aimed at; empty is a key like any other
  std::string unique;
  UniquePolicy unique_policy = UniquePolicy::keep;
  bool run_again = false;
  std::int32_t priority = 0;  // higher first
  WallTime due_at{};          // the epoch: at once
  std::string function;       // what a worker is to call; empty: what it has for the queue
  std::string payload;
  std::uint32_t max_attempts = 0;  // 0: the queue's
  // How long a lease of it lasts; 0: as the queue says. 1 ms to kLongestLease; kept in whole milliseconds, rounded up.
  Duration lease_time{};
  // Jobs that must have ended, however they did; `if_failed` says what follows when one did so badly. Those not known
  // any more count as done, unless the store still remembers that they have failed: see kFailuresRemembered. An id
  // above all there have been is a mistake: invalid_input.
  std::vector<JobId> waits_for;
  DependencyPolicy if_failed = DependencyPolicy::cancel;
  // The completion job of the batch that this one joins: that job waits for it, and goes to the shelf of those
  // that wait for others. It must be there and neither run nor have ended, and this one must not wait for it in turn:
  // invalid_input. A put that adds no job adds nothing to the batch.
  JobId batch = 0;
  // Whether it reaches jobs of the queue of that name by its `id`, `name`, `waits_for` and `batch`. One out of reach
  // that it waits for or whose batch it joins: not_found. One that has its id or name: PutOutcome::taken. Null: it
  // reaches all.
  JobReachRef within{};
};

inline constexpr std::size_t kMostNameBytes = 512;         // of the names of queues, jobs, keys and functions
inline constexpr JobId kMostJobId = (JobId{1} << 53) - 1;  // what every JSON reader holds exactly
// The store's ids go on from those up to here that callers choose; a larger one leaves them where they are, so that no
// choice uses them up.
inline constexpr JobId kMostCountedId = JobId{1} << 52;
inline constexpr Duration kLongestLease = std::chrono::hours{24 * 365 * 100};
// That a job was buried, cancelled or deleted is remembered when its record is gone, until another one does so whose id
// differs by a multiple of this.
inline constexpr JobId kFailuresRemembered = JobId{1} << 18;

// One attempt that did not end well.
struct Attempt {
  std::uint32_t number = 0;
  WallTime ended_at{};
  std::string outcome;  // "retry", "buried", "lease expired", "owner died" …
  std::string error;
  std::string worker;
  friend bool operator==(const Attempt&, const Attempt&) = default;
};

// Counts of a job's runs since it was put, by their fates. When a buried job is kicked, its attempts and
// expiries begin anew and these go on. They stop counting at some thousands.
struct JobTally {
  std::uint32_t runs = 0;      // begun, the present one included
  std::uint32_t timeouts = 0;  // whose lease ran out
  std::uint32_t releases = 0;  // given back
  std::uint32_t buries = 0;
  std::uint32_t kicks = 0;
  friend bool operator==(const JobTally&, const JobTally&) = default;
};

// Times are kept in milliseconds.
struct JobRecord {
  JobId id = 0;
  std::string name;
  std::string queue;
  std::string key;
  std::string unique;
  JobState state = JobState::ready;  // delayed, though due, until its owner has moved it to a shelf of ready jobs
  std::int32_t priority = 0;
  WallTime due_at{};  // delayed: when; the epoch when it was never to wait
  std::string function;
  std::string payload;
  std::uint32_t attempts = 0;  // that have been counted; while running without the present one
  std::uint32_t max_attempts = 0;
  std::uint32_t expiries = 0;  // leases that ran out
  JobTally tally;
  Duration lease_time{};      // 0: as the queue says
  std::uint32_t pending = 0;  // jobs it still waits for
  DependencyPolicy if_failed = DependencyPolicy::cancel;
  WallTime created_at{};
  WallTime ended_at{};  // done, cancelled, buried: when
  // Of the last attempt that left one, whether it failed or not; while running perhaps what this one has left so far. A
  // job that is done has what its last run gave, or nothing.
  std::string result;
  std::string error;  // of the last attempt that failed; while running with `cancel_asked`: why that was asked
  // While running:
  std::uint64_t token = 0;
  std::string worker;
  WallTime lease_until{};
  bool cancel_asked = false;  // its run is to be stopped: unless that ends well, the job is cancelled with it
  // Whose run it is, until it has ended for good; 0: of no schedule.
  ScheduleId schedule = 0;
  std::uint64_t run = 0;

  friend bool operator==(const JobRecord&, const JobRecord&) = default;
};

}  // namespace argiope
