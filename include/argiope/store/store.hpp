// Store: the source of truth for jobs and schedules. It is kept in memory, in SQLite, in PostgreSQL or in Redis.
//
// A store keeps jobs and schedules and finds them; it decides nothing. The owner of its queues (engine/engine.hpp)
// decides which job runs next, under which limits; it keeps a window of each queue in memory and reads on from here.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/detail/requests.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

// --- reads ---------------------------------------------------------------------------------------------------------

struct JobFilter {
  std::string queue;  // empty: all
  std::optional<JobState> state;
  std::optional<std::string> key;
  // By id: from the smallest on, or from the greatest down.
  bool newest_first = false;
  JobId after = 0;  // ids behind this one in that order; 0: from the beginning
  JobId up_to = kMostJobId;
  std::size_t limit = 100;  // at most 10,000
  bool payloads = true;
  // Delayed jobs that are due by then count as ready; nullopt: as delayed.
  std::optional<WallTime> due_by;
  // Where a slice ends, though there may be more: so many jobs have been looked at, whether they fit or not; behind the
  // one with which it has so many bytes of payloads and results. Both at least 1.
  std::size_t most_looked = std::numeric_limits<std::size_t>::max();
  std::size_t most_bytes = std::numeric_limits<std::size_t>::max();
};
// Some of the jobs that a filter wants.
struct JobSlice {
  std::vector<JobRecord> jobs;
  JobId after = 0;         // what the filter of the next slice has
  bool is_last = false;    // all jobs behind it have been looked at
  JobId newest = 0;        // the greatest id that there is: what comes meanwhile need not be gone through, too
  std::size_t looked = 0;  // at so many, or a few more
  friend bool operator==(const JobSlice&, const JobSlice&) = default;
};

struct StateCounts {
  std::uint64_t ready = 0;
  std::uint64_t delayed = 0;  // those that wait for other jobs included
  std::uint64_t running = 0;
  std::uint64_t done = 0;  // of those kept
  std::uint64_t buried = 0;
  std::uint64_t cancelled = 0;

  std::uint64_t& of(JobState state) noexcept {
    switch (state) {
      case JobState::ready: return ready;
      case JobState::delayed: return delayed;
      case JobState::running: return running;
      case JobState::done: return done;
      case JobState::buried: return buried;
      case JobState::cancelled: break;
    }
    return cancelled;
  }
  friend bool operator==(const StateCounts&, const StateCounts&) = default;
};
struct QueueCounts {
  QueueId queue = 0;
  StateCounts counts;
  std::uint64_t ended = 0;  // done since the store was made, those not kept included
  friend bool operator==(const QueueCounts&, const QueueCounts&) = default;
};

// A lease of the owner before this one.
struct OldLease {
  JobId id = 0;
  std::uint64_t token = 0;
  WallTime until{};
  std::string worker;
  bool remote = false;  // LeaseRequest::remote
  friend bool operator==(const OldLease&, const OldLease&) = default;
};

// The changes that other processes have made to a store that they share with its owner.
struct ChangedElsewhere {
  std::vector<JobId> jobs;            // put or changed; 0: a queue that they have made or configured
  std::vector<ScheduleId> schedules;  // put, fired or erased, or one of whose runs they have ended
  bool more = false;                  // there is more than was told: to be asked again at once
  friend bool operator==(const ChangedElsewhere&, const ChangedElsewhere&) = default;
};

struct StorePlace;  // where its calls are done

// Calls take effect in the order they are made, whole batches at a time: a batch is one transaction together with
// whatever else waited while the last commit ran, so a failure fails them all and changes nothing.
//
// Suspends: until the call's effect is committed and, with SyncMode::full, on the disk (reads: until it is read, and
//           what they have seen is on the disk; they see everything called before them).
// Cancel:   cancelling the wait does not undo the call.
// Errors:   invalid_input where a request breaks its contract (id beyond kMostJobId, an unknown QueueId, names above
//           512 bytes), and then nothing of it is done, nor of its call, except for put(), settle() and fire(), which
//           answer for each request; refused where the store was opened for less (StoreAccess).
//           While another process keeps the file locked, an owner's calls wait, as long as it takes: they are kept,
//           tried again, and lose nothing; the log says when such a wait grows long and when it is over. Those of who
//           shares or reads answer busy after StoreOptions::busy_limit, and nothing is done.
//           io when a file has been removed or replaced while it was open: nothing more is acknowledged.
//           After that, and after a failed write or sync, what the file holds is unknown: the store refuses every
//           further write with that error until it is opened again. Committed data stays, and can be read.
//           cancelled once the store has been closed.
// Threads:  any thread that runs an EventLoop; each call returns to its own. close() and the destructor: one at a time.
// Lifetime: may be closed and destroyed at any moment, with calls under way: they are finished first, and answered when
//           their loops run on. Calls that begin later, those included whose coroutine was made before and has not been
//           awaited, answer cancelled. A loop that called may end before the store and before its answer, which is
//           dropped then.
// Times:    wall times of the caller's; the store reads no clock.
class Store {
 public:
  // Made by open_store(). Calls are virtual for tests, which stand in for a store or count what is asked of it.
  explicit Store(std::shared_ptr<StorePlace> place) noexcept : place_(std::move(place)) {}
  virtual ~Store();
  Store(const Store&) = delete;

  // --- queues
  // The queue of that name, made with `config` if need be.
  virtual Coro<Result<StoredQueue>> open_queue(std::string name, QueueConfig config = {});
  virtual Coro<Result<void>> configure(QueueId queue, QueueConfig config);
  // One in which there is nothing. Made again, it has the id that it had. Errors: refused where there is something.
  virtual Coro<Result<void>> erase_queue(QueueId queue);
  virtual Coro<Result<std::vector<StoredQueue>>> queues();

  // --- jobs
  // `now`: created_at, and what decides whether a job is due. Queues are made as needed.
  virtual Coro<Result<std::vector<Result<PutReply>>>> put(std::vector<PutRequest> jobs, WallTime now,
                                                          Refusal refusal = Refusal::alone);
  // Writes the leases down; gives the jobs, with `lease_until` as it was written, or nullopt for those that do not wait
  // any more, or wait for others. Those of one call have kMostLeasedBytes of payloads and results together, or are one
  // job: the first that goes beyond, and all after it, are left as they are, and answered with left_as_it_is().
  // Errors: invalid_input when a token is not greater than all before it.
  virtual Coro<Result<std::vector<std::optional<JobRecord>>>> lease(std::vector<LeaseRequest> leases);
  // put() with Refusal::alone, and lease() of jobs that it adds.
  // Errors: lease()'s, and invalid_input for a lease of a put that is not in the call; then nothing of it is done.
  virtual Coro<Result<PutAndLeaseReply>> put_and_lease(std::vector<PutRequest> jobs, WallTime now,
                                                       std::vector<PutLease> leases);
  virtual Coro<Result<void>> renew(std::vector<LeaseRequest> leases);  // stale ones are passed over
  // Writes the run's output so far, in place of the output before: until its settlement. A stale token writes nothing.
  virtual Coro<Result<void>> write_output(JobId id, std::uint64_t token, std::string output);
  // Each by itself: one that is refused (SettleReply::refused) keeps no other back.
  virtual Coro<Result<std::vector<SettleReply>>> settle(std::vector<Settlement> settlements);
  virtual Coro<Result<std::vector<ChangeReply>>> change(std::vector<Change> changes);
  // Does the request unless it has come before under its key. Errors: invalid_input for a key or digest beyond its
  // bounds.
  virtual Coro<Result<OnceReply>> once(OnceRequest request);
  // Forgets what came before `before`, and all but the last `most`; at most `limit` at once. How many.
  virtual Coro<Result<std::size_t>> prune_requests(WallTime before, std::size_t most, std::size_t limit);
  // Moves jobs between the two shelves of ready ones; delayed ones, which the caller knows to be due, to one of them.
  virtual Coro<Result<void>> shelve(std::vector<JobId> jobs, Shelf shelf);
  // Deletes records of jobs that ended in `state` before `before`, at most `limit`; how many.
  virtual Coro<Result<std::size_t>> prune(QueueId queue, JobState state, WallTime before, std::size_t limit);

  // --- schedules
  // Errors: invalid_input where a name is empty or a text too long.
  virtual Coro<Result<std::vector<PutScheduleReply>>> put_schedules(std::vector<PutSchedule> schedules);
  // With their histories; their jobs stay. How many there were.
  virtual Coro<Result<std::size_t>> erase_schedules(std::vector<ScheduleId> ids);
  // By id.
  virtual Coro<Result<std::vector<StoredSchedule>>> schedules(ScheduleFilter filter);
  // Those of `ids` that are there; nullopt for others.
  virtual Coro<Result<std::vector<std::optional<StoredSchedule>>>> load_schedules(std::vector<ScheduleId> ids);
  virtual Coro<Result<std::optional<StoredSchedule>>> find_schedule(std::string name);
  // Those of `looks` that are there, each as of one moment; nullopt for others.
  virtual Coro<Result<std::vector<std::optional<ScheduleView>>>> look_at_schedules(std::vector<ScheduleLook> looks);
  // One entry of its history: of the last kRunsKept, or of a run that has not ended, however old.
  virtual Coro<Result<std::optional<ScheduleRun>>> schedule_run(ScheduleId id, std::uint64_t number);
  // Of the last kRunsKept entries of its history, newest first.
  virtual Coro<Result<std::vector<ScheduleRun>>> schedule_runs(ScheduleId id, std::size_t limit = kRunsKept);
  // nullopt: no run of it has left a result yet.
  virtual Coro<Result<std::optional<ScheduleOutput>>> schedule_output(ScheduleId id);
  // Each step as a whole or not at all, and by itself; all that are not stale in one transaction. `now`: as put()'s.
  // When a job that was put for a run ends for good, in whatever way, the same transaction writes the end into the
  // entry, if it is still kept, and the job no longer belongs to the schedule.
  virtual Coro<Result<std::vector<Result<FireReply>>>> fire(std::vector<FireRequest> requests, WallTime now);

  // --- windows. Jobs that run are on no shelf.
  // Of one shelf, in its order; due ones of the delayed are included. `key`: whose, of those set aside.
  virtual Coro<Result<std::vector<WaitingJob>>> read_shelf(QueueId queue, ShelfRead read, std::string key = {});
  // Keys greater than `after` that have jobs set aside, in order of bytes; nullopt: from the first.
  virtual Coro<Result<std::vector<std::string>>> keys_set_aside(QueueId queue, std::optional<std::string> after,
                                                                std::size_t limit);

  // Those of `jobs` that wait, as they wait; nullopt for others.
  virtual Coro<Result<std::vector<std::optional<WaitingJob>>>> find_waiting(std::vector<JobId> jobs);

  // --- to look at
  virtual Coro<Result<std::optional<JobRecord>>> get(JobId id);
  virtual Coro<Result<std::optional<JobId>>> find_name(std::string name);
  virtual Coro<Result<std::vector<Attempt>>> history(JobId id);  // the last 20, oldest first
  // As many of them as the filter wants, however many must be looked at.
  virtual Coro<Result<std::vector<JobRecord>>> list(JobFilter filter);
  // The same in slices: what one of them takes is bounded by the filter's most_looked, limit and most_bytes.
  virtual Coro<Result<JobSlice>> look(JobFilter filter);
  virtual Coro<Result<std::vector<QueueCounts>>> counts();
  // How many jobs of the ready shelf, or, where `key` is given, of that key's set aside ones, come before `rank`;
  // counted up to `most`.
  virtual Coro<Result<std::uint64_t>> count_before(QueueId queue, Rank rank, std::uint64_t most,
                                                   std::optional<std::string> key = std::nullopt);
  // Jobs that `id` waits for and that have not ended.
  virtual Coro<Result<std::vector<JobId>>> waits_for(JobId id, std::size_t limit);

  // --- ownership
  // No lease of this store, by any owner, has had a greater token. Its owner's tokens go on from here.
  virtual std::uint64_t last_token() const;
  // Leases written down by owners before this one and neither settled nor renewed since.
  virtual Coro<Result<std::vector<OldLease>>> old_leases();
  // The changes of other processes since the last call (StoreAccess::share). Cheap when there is nothing.
  virtual Coro<Result<ChangedElsewhere>> changed_elsewhere();
  // One small number to keep for the owner.
  virtual Coro<Result<void>> remember(std::string name, std::int64_t value);
  virtual Coro<Result<std::optional<std::int64_t>>> recall(std::string name);

  virtual std::optional<Error> failure() const;
  // What of an acknowledged call its server may lose and when, by its settings, for people; empty: there is nothing to
  // say that SyncMode does not. From any thread.
  std::string durability() const;
  // Finishes what was called, gives files and locks back. While another process keeps the file locked it waits for
  // StoreOptions::busy_limit, and then answers busy to what could not be written. Called by the destructor, which drops
  // its error; twice is as good as once.
  virtual Result<void> close();

 protected:
  Store() noexcept = default;  // of nothing: what is derived answers all calls

 private:
  const std::shared_ptr<StorePlace> place_;
};

enum class StoreAccess : std::uint8_t {
  own,  // everything; Errc::busy while another process does
  // Put, change, prune, open and configure queues, put, erase and fire schedules, and look at what another process may
  // own; the owner learns of it by changed_elsewhere().
  share,
  read,  // look; creates nothing. Errc::older_version of a file that the others would bring up to date
};
struct StoreOptions {
  StoreAccess access = StoreAccess::own;
  SyncMode sync = SyncMode::full;
  std::int64_t max_bytes = 0;  // as UrlStoreOptions
  // How long to wait for another process that keeps the file locked: to open it, for a call of who does not own it, and
  // in close(). An owner's calls wait as long as it takes.
  Duration busy_limit = std::chrono::seconds{10};
  // The log tells once of an owner's wait that has taken so long.
  Duration busy_warning = std::chrono::seconds{3};
};

// Opens or creates what `where` names: "sqlite:FILE", "postgresql://USER@HOST/DATABASE?schema=NAME",
// "redis://HOST/DB?prefix=NAME" or "memory:".
// Errors: invalid_input for another scheme, naming those there are; else as open_url_store. busy also where the file
//         was made by an older Argiope that is still at work on it: it is brought up to date only when that one has
//         ended. network where a server cannot be reached, or does not let this user in.
Result<std::unique_ptr<Store>> open_store(const std::string& where, const StoreOptions& options = {});

// Whether a process owns the store that `where` names (StoreAccess::own). To be asked before this process opens it: to
// look at a file's lock gives up those that this process has on it. A file that is not there has no owner.
bool has_owner(const std::string& where);

}  // namespace argiope
