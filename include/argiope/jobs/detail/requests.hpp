// The requests to a store of jobs, and its answers: puts, leases, settlements, changes, steps of schedules. Each
// of them does the same to the stored jobs in every store.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/detail/shelf.hpp"
#include "argiope/jobs/job.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/jobs/schedule.hpp"

namespace argiope {

using QueueId = std::uint32_t;  // given by the store, from 1; never given to another queue

struct StoredQueue {
  QueueId id = 0;
  std::string name;
  QueueConfig config;
};

// --- what an owner's window needs to know of a job
// ---------------------------------------------------------------------

struct WaitingJob {
  JobId id = 0;
  QueueId queue = 0;
  std::string key;
  std::int32_t priority = 0;  // as it ranks: see ranked_priority()
  WallTime due_at{};
  std::uint32_t attempts = 0;
  std::uint32_t expiries = 0;
  Shelf shelf = Shelf::ready;
  friend bool operator==(const WaitingJob&, const WaitingJob&) = default;
};

// --- writes --------------------------------------------------------------------------------------------------------

struct PutRequest {
  NewJob job;
  bool set_aside = false;  // if it is ready: to which shelf
  // For put(): those before it in the same call, whatever their outcome was. It completes them as a batch.
  bool waits_for_those_before = false;
  // In a FireRequest, elsewhere 0: the entry of history that it is the run of, and one whose job it waits for, if that
  // entry is known, as for those of NewJob::waits_for.
  std::uint64_t run = 0;
  std::uint64_t after_run = 0;
};
enum class PutOutcome : std::uint8_t {
  added,
  kept,       // one of the same unique name, or the same id or name, is there, and nothing was changed
  changed,    // that one was merged or replaced
  run_again,  // that one runs; the new job was added and waits for its end
  // It was added and cancelled in the same moment, because a job that it waits for had failed already; kept where its
  // queue's keep_cancelled is not 0.
  cancelled,
  // One that is out of NewJob::within has that id or name; nothing was changed. A call that is done as a whole is
  // refused for it: invalid_input. So is the settlement that it follows.
  taken,
};
// Whether one request that is refused keeps the others of its call back.
enum class Refusal : std::uint8_t {
  alone,  // it is answered with its error; the others are done
  whole,  // nothing of the call is done, and the call answers with that error
};
// A job that was cancelled with one that it waited for.
struct CancelledJob {
  JobId id = 0;
  QueueId queue = 0;
  friend bool operator==(const CancelledJob&, const CancelledJob&) = default;
};
// The effects of a put that cancels its job at once.
struct CancelledAtPut {
  std::string why;
  // Of the batch that it was put into, and so on: as SettleReply's.
  std::vector<WaitingJob> released;
  std::vector<CancelledJob> cancelled;
  std::vector<EndedRun> ended_runs;
};
struct PutReply {
  PutOutcome outcome = PutOutcome::added;
  JobId id = 0;      // of the job that is there now; cancelled: that it has had; taken: 0
  WaitingJob job{};  // added, changed, run_again: as it waits now
  std::shared_ptr<const CancelledAtPut> cancelled{};  // null but with that outcome
};

inline constexpr std::uint64_t kMostToken = kMostJobId;
inline constexpr std::size_t kMostLeasedBytes = std::size_t{16} * 1024 * 1024;  // by one call of the store
// The answer to the lease of a job that there was no room for, and that was not looked at: it is in no state that a
// leased job is in.
inline JobRecord left_as_it_is(JobId id) {
  JobRecord left;
  left.id = id;
  return left;
}
inline bool is_left_as_it_is(const JobRecord& leased) noexcept { return leased.state != JobState::running; }

struct LeaseRequest {
  JobId id = 0;
  std::uint64_t token = 0;  // greater than any before it in this store: last_token() + 1 and on; at most kMostToken
  WallTime until{};
  std::string worker;
  // Now. A job that has a lease time of its own is leased for so long from here, whatever `until` says; the epoch:
  // until then.
  WallTime at{};
  // The job was asked for by its id: it is leased though it is not due or is buried, as if it had been kicked before.
  bool by_id = false;
  bool remote = false;  // the worker is not in the owner's process, and may outlive it
};

// A job that is leased in the transaction that puts it, where it is added, is ready and has no unique name, by which
// another put of the call could change it: for a worker who waits for it.
struct PutLease {
  std::size_t place = 0;  // of its put, in the same call
  LeaseRequest lease;     // whatever its `id` and `by_id` say
};
struct PutAndLeaseReply {
  std::vector<Result<PutReply>> puts;
  std::vector<std::optional<JobRecord>> leased;  // of each PutLease, as lease() gives them; nullopt: it is not leased
};

enum class Outcome : std::uint8_t {
  done,
  retry,  // failed, to be tried again at due_at
  bury,   // failed for good
  cancel,
  release,  // given back: as if it had not been leased, or, with a due_at, put off until then
  expire,   // the lease ran out, or its holder is gone: ready again, one attempt and one expiry more
};
// In this order: the job itself, its follow-ups (which may take its unique name, or join the batch it was of), and then
// those that waited for it.
struct Settlement {
  JobId id = 0;
  std::uint64_t token = 0;
  Outcome outcome = Outcome::done;
  WallTime at{};
  WallTime calendar_at{};                // the same by the calendar, for histories of schedules; the epoch: as `at`
  WallTime due_at{};                     // retry, release
  std::optional<std::int32_t> priority;  // retry, release, bury: the new one
  bool keep = false;                     // done, cancel: keep the record (until prune()) instead of deleting it
  bool expired = false;                  // bury: for its lease ran out, which counts, too
  std::string result;                    // done; retry, bury: what the failed attempt has left
  std::string error;                     // others; done: a remark
  std::string worker;
  std::vector<PutRequest> follow_ups;  // put in the same transaction
};
struct SettleReply {
  bool settled = false;  // false: the token is stale, or `refused`; nothing was done, and no follow-up put
  // A follow-up breaks the contract of put(), which is no other settlement's concern. The lease goes on.
  std::optional<Error> refused;
  // Its end: the one asked for, or `cancel` where ChangeKind::cancel had met the job while it ran, and it did not end
  // as done. The record is kept then where the queue's keep_cancelled is not 0, with the error of that change.
  Outcome outcome = Outcome::done;
  std::optional<WaitingJob> again;  // retry, release, expire: as it waits now
  std::vector<PutReply> follow_ups;
  std::vector<WaitingJob> released;  // jobs that waited for this one and wait for none now
  // Jobs that waited for this one and are cancelled with it, and so on; kept where their queue's keep_cancelled is not
  // 0.
  std::vector<CancelledJob> cancelled;
  std::vector<EndedRun> ended_runs;  // of the job itself and of those cancelled, in this order
};

enum class ChangeKind : std::uint8_t {
  // delayed, ready, waiting, buried -> cancelled. One that runs: `asked`; it is cancelled when its run ends, unless it
  // is done then. That is written down, so it holds whatever becomes of who runs it.
  cancel,
  // buried, delayed -> ready now; attempts and expiries from 0 when it was buried. wrong_state when another job has
  // taken its unique name since.
  kick,
  set_priority,  // delayed, ready, waiting
  set_due,       // delayed, ready, but not waiting: at `due_at`
  erase,         // anything that does not run
};
struct Change {
  JobId id = 0;
  ChangeKind kind = ChangeKind::cancel;
  WallTime at{};
  WallTime calendar_at{};  // as Settlement's
  std::int32_t priority = 0;
  WallTime due_at{};
  // cancel: keep the record; nullopt: where its queue's keep_cancelled is not 0
  std::optional<bool> keep = true;
  std::string error;  // cancel: why
};
enum class ChangeOutcome : std::uint8_t {
  changed,
  not_found,
  running,      // nothing was done: it runs
  wrong_state,  // nothing was done: what waits or has ended so cannot be changed so
  asked,        // cancel: it runs, and has been asked to stop
};
struct ChangeReply {
  ChangeOutcome outcome = ChangeOutcome::changed;
  std::optional<WaitingJob> job;  // as it waits now, if it does
  std::vector<WaitingJob> released;
  std::vector<CancelledJob> cancelled;
  std::vector<EndedRun> ended_runs;
};

// --- requests that are done once, however often they come
// ----------------------------------------------------------------

struct RequestKey {
  std::string key;     // the caller's, 1 to 512 bytes
  std::string digest;  // of all that the request says, at most 64 bytes: tells another request under the same key
};
// So long a key is known at least, unless kMostRequests have come since.
inline constexpr Duration kRequestsKept = std::chrono::hours{24};
inline constexpr std::size_t kMostRequests = 1'000'000;

// The contents of one request, in one transaction with the memory of it: one of the lists, mostly. An item that the
// caller refuses by itself stands among them as its error, and is remembered with the rest.
struct OnceRequest {
  RequestKey key;
  WallTime now{};
  std::vector<Result<PutRequest>> puts;
  Refusal refusal = Refusal::alone;  // of the puts; a call that is refused whole is not remembered
  std::vector<Settlement> settlements;
  std::vector<std::optional<Error>>
      refused;  // of each settlement, where it is not empty: what is answered to it instead
  std::vector<Change> changes;
  bool only_look = false;  // nothing is done: has it come before?
};
enum class Repetition : std::uint8_t {
  first,     // it has been done now
  repeated,  // it was done before, and this is what was answered
  mismatch,  // another request had this key; nothing was done
};
// Of a repeated one there is only what tells the caller: outcomes, ids and errors.
struct OnceReply {
  Repetition how = Repetition::first;
  std::vector<Result<PutReply>> puts;
  std::vector<SettleReply> settlements;
  std::vector<ChangeReply> changes;
};

// One step of one schedule: it moves on, entries of history are written, jobs are put.
//
// Each entry with outcome `running` has exactly one job, the others have none; the store fills in their `job`, and
// makes them `skipped` where the put added no job, `cancelled` where it was cancelled at once. Jobs of entries stand in
// the order of their entries.
struct FireRequest {
  ScheduleId id = 0;
  std::uint64_t version = 0;      // of the schedule the step was made from
  SchedulePlace place;            // where the schedule stands afterwards
  std::vector<ScheduleRun> runs;  // numbered on from the schedule's `entries`, up to place.entries
  std::vector<PutRequest> jobs;
  // The last entry there was before, missed or skipped, written anew: what goes on need not push all others out.
  std::optional<ScheduleRun> amended;
};
// The check that needs no look at the store: invalid_input, or it is well formed.
Result<void> check(const FireRequest& request);
struct FireReply {
  // False: there is no such schedule, it has another version, or its entries are not those before `runs`. Nothing was
  // done.
  bool fired = false;
  std::uint64_t version = 0;   // its version now
  std::vector<PutReply> jobs;  // of each
};

}  // namespace argiope
