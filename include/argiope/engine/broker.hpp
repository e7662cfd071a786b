// Broker: the owner of a store's queues. It takes jobs in, hands them out under leases when they are due and allowed,
// most important first, and stores how they ended.
//
// The store is the truth, this is the index: of each queue it keeps a bounded window in memory and reads on as the window
// empties. One broker owns a store at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"
#include "argiope/engine/events.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

struct BrokerOptions {
  // Ready jobs of one queue kept in memory, and as many delayed ones; twice that for a moment.
  std::size_t window = 20'000;
  // false: a put into a queue that was not made or configured before is an error.
  bool create_queues = true;
  QueueConfig new_queue;  // the policy of queues made by a put
  // Jobs that were running when the owner before this one ended: true, it counts as an expiry of their lease, so that a
  // job which kills its process is buried in the end; false, they are run again as if they had not been leased.
  bool blame_old_leases = true;
  // How often to look for what other processes have put into the store.
  Duration poll_interval = std::chrono::milliseconds{200};
  Duration prune_interval = std::chrono::seconds{60};
  std::uint64_t seed = 0;  // of the jitter of retries
};

struct LeasedJob {
  JobRecord job;
  std::uint64_t token = 0;
  std::uint32_t attempt = 0;  // from 1
  TimePoint until{};          // of the lease
};

struct LeaseCall {
  std::vector<std::string> queues;
  std::size_t most = 1;  // jobs
  std::string worker;
  // Asked to stop a job that was cancelled, by its token; runs on the loop. Not for jobs that the lease has not given yet:
  // those that are cancelled on the way are never given. What it throws is logged.
  std::function<void(std::uint64_t)> on_cancel;
};

// How a run ended.
struct Verdict {
  Outcome outcome = Outcome::done;
  std::string result;             // done; retry, bury: what is kept of the failed attempt
  std::string error;              // retry, bury, cancel
  std::optional<Duration> delay;  // retry, release: from now; nullopt: retry by the queue's policy, release at once
  std::optional<std::int32_t> priority;  // retry
  std::vector<NewJob> follow_ups;        // put in the same transaction
};

// One step of one schedule, as FireRequest; the jobs are the caller's.
struct FireJob {
  NewJob job;
  std::uint64_t run = 0;        // the entry it is the run of
  std::uint64_t after_run = 0;  // the entry whose job it waits for
};
struct FireCall {
  ScheduleId id = 0;
  std::uint64_t version = 0;
  SchedulePlace place;
  std::vector<ScheduleRun> runs;
  std::vector<FireJob> jobs;
  std::optional<ScheduleRun> amended;
};

struct JobExplanation {
  JobId id = 0;
  std::string queue;
  JobState state = JobState::ready;
  WaitReason reason = WaitReason::none;
  std::optional<WallTime> until;  // when time alone ends the reason
  std::uint64_t ahead = 0;        // jobs that are ready and come first: more important, or put before; up to a million
  std::vector<JobId> waits_for;   // up to ten of them
  std::uint32_t attempts = 0;
  std::uint32_t max_attempts = 0;
  std::string error;  // of the last attempt
  std::optional<WallTime> lease_until;
  std::string worker;
  double progress = 0;
  std::string progress_message;
  // What may keep it besides, and only the owner of its queue could say: asked from outside (Guest::explain).
  std::vector<WaitReason> owner_knows;
};
// One sentence for people: `waits until 12:00:05Z: the bucket of key "example.org" is empty`.
std::string to_sentence(const JobExplanation& explanation);
// One line; the reason in the words of to_string(WaitReason), times in RFC 3339 or null.
std::string to_json(const JobExplanation& explanation);

// Times that go in and come out are the calendar's. What the store holds may differ from them by what the calendar has
// jumped since (broker time runs on through jumps, so that delays and leases keep their length).
//
// Suspends: where a Coro is returned, until the change is committed. Changes take effect in the order they are called.
// Cancel:   cancelling the wait does not undo a change; a cancelled lease() takes nothing, or gives back.
// Errors:   those of the store, after which nothing works any more but close(); not_found for a queue or job that does not
//           exist; too_large for a payload above the queue's limit; refused for a queue at capacity; invalid_input for
//           what breaks the bounds of NewJob.
// Waits:    a store that is slow is waited for, and so is one that answers `busy`; meanwhile no lease runs out whose job has
//           not been given yet, or whose end is on its way into the store.
// Lifetime: may be destroyed at any moment, without close() and with calls under way, as when an exception unwinds. What is
//           on its way into the store takes effect or does not, and every call that waits is answered: with its result,
//           a lease with nothing, others with Errc::cancelled. Leases end as if the process had: the next owner ends
//           them. No listener is called any more.
// Threads:  the loop's own.
class Broker {
 public:
  // `store` was opened with StoreAccess::own and outlives the broker.
  static Coro<Result<std::unique_ptr<Broker>>> open(Store& store, BrokerOptions options = {});
  virtual ~Broker() = default;

  // Hands out nothing more, gives back what is leased, waits until all that was asked is committed.
  virtual Coro<Result<void>> close() = 0;

  // --- queues
  virtual Coro<Result<void>> configure(std::string queue, QueueConfig config) = 0;
  virtual Coro<Result<void>> pause(std::string queue) = 0;
  virtual Coro<Result<void>> resume(std::string queue) = 0;
  virtual Result<QueueConfig> config(std::string_view queue) const = 0;
  virtual std::vector<std::string> queue_names() const = 0;
  // Jobs of this key start not before `until` (kNever: until wake_key); not remembered by the store.
  virtual Result<void> rest_key(std::string_view queue, std::string_view key, TimePoint until) = 0;
  virtual Result<void> wake_key(std::string_view queue, std::string_view key) = 0;

  // --- jobs come
  virtual Coro<Result<PutReply>> put(NewJob job) = 0;
  // All or none, in one transaction.
  virtual Coro<Result<std::vector<PutReply>>> put_all(std::vector<NewJob> jobs) = 0;
  // The same, and then `completion`, which waits for all of them. With DependencyPolicy::run it runs when all have ended.
  // The last reply is that of the completion job; its id names the batch.
  virtual Coro<Result<std::vector<PutReply>>> put_batch(std::vector<NewJob> jobs, NewJob completion) = 0;

  // --- schedules come
  // Store::fire: each by itself, and those that are accepted in one transaction. It waits for no room: an item is refused
  // alone (refused) when a queue has not enough for all of its jobs, as it is for every other fault of its own (not_found,
  // too_large, invalid_input). A stale one is no error: FireReply::fired.
  // Errors: of the store, and then nothing was fired.
  virtual Coro<Result<std::vector<Result<FireReply>>>> fire(std::vector<FireCall> calls) = 0;
  // `hear` is called on the loop with what other processes have done to schedules, after a look at the store that found
  // some (BrokerOptions::poll_interval). One may hear; an empty function ends it. It must not throw.
  virtual void on_schedules_changed(std::function<void(const std::vector<ScheduleId>&)> hear) = 0;
  // The calendar's time as of the last look at it and run on from there, so that its jumps are heard of before they are
  // seen.
  virtual WallTime calendar_now() const = 0;
  // Looks whether the calendar has jumped, as the broker does itself every poll_interval.
  virtual void look_at_calendar() = 0;
  // `hear` is called on the loop by the look that finds a jump, with its length. As on_schedules_changed().
  virtual void on_calendar_jump(std::function<void(Duration)> hear) = 0;

  // --- jobs run
  // Waits until there is a job, and gives up to `most` that may start now. An empty answer: the broker closes.
  // Callers are served first come, first served; queues that have work share by their weights.
  virtual Coro<Result<std::vector<LeasedJob>>> lease(LeaseCall call) = 0;
  // The same without waiting: perhaps nothing.
  virtual Coro<Result<std::vector<LeasedJob>>> lease_now(LeaseCall call) = 0;
  // False when the lease was lost before: nothing was done then, and no follow-up put.
  // Errors: of a follow-up that cannot be put, as put() would give it. The run is settled then, as a failed attempt
  //         with that error, and none of its follow-ups is put.
  virtual Coro<Result<bool>> settle(std::uint64_t token, Verdict verdict) = 0;
  // Extends the lease by the queue's lease time from now; false when it is lost.
  virtual bool renew(std::uint64_t token) = 0;
  virtual bool set_progress(std::uint64_t token, double fraction, std::string message) = 0;
  // Its connection or process is gone: its leases end at once.
  virtual Coro<Result<void>> worker_gone(std::string worker) = 0;

  // --- jobs are changed
  // A job that runs is asked to stop, and cancelled when its run ends, unless it is done then. The request is
  // committed when this returns, and holds for the next owner too.
  virtual Coro<Result<void>> cancel(JobId id, std::string why = {}) = 0;
  virtual Coro<Result<void>> kick(JobId id) = 0;  // buried or delayed: ready now
  virtual Coro<Result<void>> set_priority(JobId id, std::int32_t priority) = 0;
  virtual Coro<Result<void>> set_due(JobId id, WallTime due_at) = 0;
  virtual Coro<Result<void>> erase(JobId id) = 0;  // forget it, whatever it is, unless it runs

  // --- to look at
  virtual Coro<Result<JobRecord>> get(JobId id) = 0;
  virtual Coro<Result<JobExplanation>> explain(JobId id) = 0;
  // As of now, by name; those in memory, those in the store and those that ended.
  virtual Coro<Result<std::vector<std::pair<std::string, StateCounts>>>> counts() = 0;
  // How many jobs are in memory.
  virtual std::size_t in_memory() const = 0;
  virtual std::optional<Error> failure() const = 0;

  // --- events
  using ListenerId = std::uint64_t;
  virtual ListenerId add_listener(std::uint32_t mask, JobListener listener) = 0;
  virtual void remove_listener(ListenerId id) = 0;
  // How often a listener has thrown. Such an exception is logged and goes no further.
  virtual std::uint64_t listener_errors() const = 0;

  // For those who may outlive the broker: while they hold this, calls after its destruction are no mistake, but answered
  // with Errc::cancelled, or false.
  virtual std::shared_ptr<const void> hold() = 0;
};

}  // namespace argiope
