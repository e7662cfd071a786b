// Engine, the owner of a store: its Scheduler, and the events of both for listeners in the process.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"
#include "argiope/engine/book.hpp"
#include "argiope/engine/detail/lease.hpp"
#include "argiope/engine/worker.hpp"
#include "argiope/jobs/job.hpp"
#include "argiope/jobs/schedule.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

// The events of jobs, for listeners in the process: bits, to be combined into a mask.
enum class JobEventKind : std::uint32_t {
  added = 1 << 0,
  changed = 1 << 1,    // a put was merged into it or replaced it, or its priority or time was set
  due = 1 << 2,        // delayed -> ready, once its owner's memory holds it
  leased = 1 << 3,     // ready -> running
  done = 1 << 4,       // running -> done
  retrying = 1 << 5,   // running -> delayed or ready, after a failure
  buried = 1 << 6,     // running -> buried
  cancelled = 1 << 7,  // -> cancelled
  released = 1 << 8,   // running -> ready or delayed, without having failed
  // running -> ready, for the lease ran out or its holder has gone; where that buries the job, buried follows at once
  expired = 1 << 9,
  kicked = 1 << 10,     // buried or delayed -> ready
  unblocked = 1 << 11,  // the jobs it waited for have ended
  progress = 1 << 12,   // a run has said how far it is, or has printed more
  erased = 1 << 13,
  queue_changed = 1 << 14,  // configured, paused or resumed; has no job
};
inline constexpr std::uint32_t kAllJobEvents = (1u << 15) - 1;

std::string_view to_string(JobEventKind kind) noexcept;

struct JobEvent {
  JobEventKind kind{};
  JobId id = 0;
  std::string_view queue;
  WallTime at{};
  std::uint32_t attempt = 0;  // leased and what ends a lease: which one it is
  // added, retrying, released: when it is to run; the epoch: at once. leased, for the first time: since when it could
  // have run.
  WallTime due_at{};
  std::string_view text;  // error, worker or progress message; done: JobContext::finding
  double fraction = 0;    // progress
  // Of an event that ends a job which a schedule has put: whose run it was. 0: no schedule's, or the job goes on.
  ScheduleId schedule = 0;
  std::uint64_t run = 0;
};

// Called on the owner's loop when the change is committed, in the order of the changes of each job. The views end with
// the call. It may add and remove listeners, itself too; what it throws is logged and counted
// (Engine::listener_errors).
using JobListener = std::function<void(const JobEvent&)>;

// The events of a scheduler and its schedules, for listeners in the process: bits, to be combined into a mask.
// APScheduler's events, under its names in small letters, and what it has none for.
enum class ScheduleEventKind : std::uint32_t {
  scheduler_started = 1 << 0,
  scheduler_shutdown = 1 << 1,
  scheduler_paused = 1 << 2,
  scheduler_resumed = 1 << 3,
  executor_added = 1 << 4,    // `text` is its name
  executor_removed = 1 << 5,  // the same
  schedule_added = 1 << 6,
  schedule_removed = 1 << 7,
  schedule_modified = 1 << 8,  // also paused, resumed and replaced
  all_schedules_removed = 1 << 9,
  job_submitted = 1 << 10,  // a run was put into its queue; `planned` and `job` say which
  job_executed = 1 << 11,   // a run has ended well
  job_error = 1 << 12,      // a run was buried after its last attempt
  job_cancelled = 1 << 13,
  job_missed = 1 << 14,         // planned times were not run: too late, or left out by coalescing; `count` of them
  job_max_instances = 1 << 15,  // planned times were not run because of max_instances
  schedule_finished = 1 << 16,  // it has no more times
  schedule_marked = 1 << 17,    // it cannot be run for now; `text` says why
  schedule_unmarked = 1 << 18,  // it can again
  calendar_jumped = 1 << 19,    // `jump` says how far
};
inline constexpr std::uint32_t kAllScheduleEvents = (1u << 20) - 1;

std::string_view to_string(ScheduleEventKind kind) noexcept;

struct ScheduleEvent {
  ScheduleEventKind kind{};
  WallTime at{};
  ScheduleId schedule = 0;
  std::string_view name;  // of the schedule
  // Of the job; of the other events of one schedule, that of its jobs: schedule_removed as it was, all else as it is
  // now. Empty where that cannot be read, or where another process has removed it.
  std::string_view queue;
  JobId job = 0;            // job_…
  std::uint64_t run = 0;    // job_…: number of the entry in the schedule's history
  WallTime planned{};       // job_…: the (first) planned time
  WallTime last_planned{};  // job_missed, job_max_instances: the last one
  std::uint64_t count = 1;  // job_missed, job_max_instances: how many of them, at least
  std::string_view text;    // error or reason; job_executed: JobContext::finding
  Duration jump{};          // calendar_jumped
};

// Called on the scheduler's loop when what it tells of is committed, for each schedule in the order it happened. The
// views end with the call. It may add and remove listeners, itself too; what it throws is logged and counted
// (Scheduler::listener_errors).
using ScheduleListener = std::function<void(const ScheduleEvent&)>;

// Scheduler: the part of an engine that fires its store's schedules when they are due, each planned time at most once,
// whatever happens to the process or the clock in between. Schedules are added and changed in the engine's book.
//
// A run is a job. Putting it, writing it into the schedule's history and moving the schedule on is one transaction of
// the store, so that a crash at any instant neither loses nor doubles a run. In memory are, of each schedule, its id
// and when it is due; all else is read when it fires.

class SchedulerImpl;

struct SchedulerOptions {
  // Schedules fired in one transaction.
  std::size_t batch = 2'000;
  // The calendar is looked at no less often, because it may be set at any time.
  Duration look_interval = std::chrono::seconds{1};
  // A calendar set back repeats nothing: what was run for a planned time is not run again when that time comes a second
  // time. But a schedule that has got further than this beyond the calendar begins anew from there: it had been led
  // into the future by a clock that was wrong.
  Duration step_back = std::chrono::hours{3};
  // How soon to try again what a queue without room has refused.
  Duration retry_interval = std::chrono::seconds{1};
  // Whether jobs may be put into queues that have no executor here, for workers elsewhere. If not, a schedule that
  // wants to is marked until its executor is added.
  bool foreign_queues = true;
};

enum class SchedulerState : std::uint8_t { stopped, running, paused };
std::string_view to_string(SchedulerState state) noexcept;

// Which run of which schedule a job is.
struct ScheduledRun {
  ScheduleId schedule = 0;
  std::string name;
  std::uint64_t run = 0;
  WallTime planned{};
  WallTime fired_at{};
};

struct ExecutorOptions {
  std::size_t concurrency = 16;
  // How long shutdown(wait) and remove_executor let runs go on before they are cancelled, and run again later.
  Duration drain_limit = Duration::max();
};

// docs/from-apscheduler.md compares it with APScheduler's BaseScheduler, name by name.
//
// Suspends: until the effect is committed.
// Errors:   as ScheduleBook.
// Cancel:   cancelling the wait does not undo a change.
// Lifetime: its engine's. It may end at any moment, without shutdown() and with calls under way: runs of its executors
//           are cancelled, and run again later.
// Threads:  the loop's own.
class Scheduler {
 public:
  explicit Scheduler(std::shared_ptr<SchedulerImpl> impl) noexcept;  // Engine makes it
  Scheduler(const Scheduler&) = delete;
  ~Scheduler();

  // --- the whole
  // Begins to fire; `paused`: only runs what has been put already.
  void start(bool paused = false);
  void pause();
  void resume();  // what has come due in between falls under the misfire policies
  // Fires nothing more, for good; `wait` for the runs of its executors to end, or cancel them, to be run again later.
  // While one that waits is under way, one that does not ends its waiting.
  Coro<Result<void>> shutdown(bool wait = true);
  SchedulerState state() const noexcept;
  std::optional<Error> failure() const;
  std::size_t size() const noexcept;
  // When the next of them is due, if any is.
  std::optional<WallTime> next_due() const noexcept;

  // --- executors
  // An executor is a queue of that name with a Worker behind it. It works from its adding on, started or not.
  Coro<Result<void>> add_executor(std::string name, ExecutorOptions options = {});
  // For jobs that name `function` or, when that is empty, name none. As long as a schedule names a function
  // that its executor has not, it is marked, and nothing of it is lost but what its misfire policy lets go. The
  // executor "default", whose queue a schedule's jobs go to if nothing else is said, is made if it is not there.
  Result<void> add_function(std::string executor, std::string function, JobFunction run);
  Coro<Result<void>> remove_executor(std::string name, bool wait = true);
  std::vector<std::string> executors() const;
  // The run that a job was put for, or nullopt when it was no schedule's or its run is not in the history any more.
  Coro<Result<std::optional<ScheduledRun>>> run_of(JobId job);

  // --- events
  using ListenerId = std::uint64_t;
  ListenerId add_listener(std::uint32_t mask, ScheduleListener listener);
  void remove_listener(ListenerId id);
  // How often a listener has thrown. Such an exception is logged and goes no further.
  std::uint64_t listener_errors() const;

 private:
  std::shared_ptr<SchedulerImpl> impl_;
};

// Engine: the owner of a store. It hands out its jobs under leases when they are due and allowed, most important first,
// stores how they ended, and fires its schedules. Its book holds the calls that anyone may make.
//
// The store is the truth, this is the index: of each queue it keeps a bounded window in memory and reads on as the
// window empties. A store has one owner at a time.

struct EngineOptions {
  // Ready jobs of one queue kept in memory, and as many delayed ones; twice that for a moment.
  std::size_t window = 20'000;
  // false: a put into a queue that was not made or configured before is an error.
  bool create_queues = true;
  // Each takes some kilobytes of memory: beyond so many no more are made (refused). Half of them are made for one
  // JobReach::who at most.
  std::size_t most_queues = std::numeric_limits<std::size_t>::max();
  // Queues that do not count for that, and can always be made, by their names. Asked when one is made or configured;
  // empty: none.
  std::function<bool(std::string_view name)> is_free_queue{};
  QueueConfig new_queue;  // the policy of queues made by a put
  // Jobs that were running when the owner before this one ended: true, it counts as an expiry of their lease, so that a
  // job which kills its process is buried in the end; false, they are run again as if they had not been leased.
  bool blame_old_leases = true;
  // Leases of remote workers (LeaseCall::remote) outlive their owner: true, close() leaves them as they are, and the
  // next owner goes on with them for a full lease time from its open(), with the same tokens. false: they end as all
  // others do.
  bool adopt_leases = true;
  // How often to look for what other processes have put into the store.
  Duration poll_interval = std::chrono::milliseconds{200};
  Duration prune_interval = std::chrono::seconds{60};
  std::uint64_t seed = 0;  // of the jitter of retries
  SchedulerOptions schedules;
  // false: it reads no schedules and has no scheduler(); another program fires them.
  bool fires_schedules = true;
  // open() of a name waits so long for another process to give the store up. A program that an owner has just begun to
  // start holds the lock of a file until it runs, also where the owner was killed meanwhile.
  Duration owner_limit = std::chrono::seconds{3};
};

// Times that go in and come out are the calendar's. Times in the store may differ from them by the jumps of the
// calendar since (the engine's time runs on through jumps, so that delays and leases keep their length).
//
// Suspends: where a Coro is returned, until the change is committed. Changes take effect in the order they are called.
// Cancel:   cancelling the wait does not undo a change; a cancelled lease() takes nothing, or gives back.
// Errors:   those of the store, after which nothing works any more but close(); not_found for a queue or job that does
//           not exist; too_large for a payload above the queue's limit; refused for a queue at capacity; invalid_input
//           for what breaks the bounds of NewJob.
// Waits:    a store that is slow is waited for, and so is one that answers `busy`; meanwhile no lease runs out whose
//           job has not been given yet, or whose end is on its way into the store.
// Lifetime: may be moved, or destroyed at any moment, without close() and with calls under way, as when an exception
//           unwinds. A call that is on its way into the store takes effect or does not, and every call that waits is
//           answered: with its result, a lease with nothing, others with Errc::cancelled. Leases end as if the process
//           had: the next owner ends them. No listener is called any more.
// Threads:  the loop's own.
class Engine {
 public:
  // Opens the store that `where` names ("sqlite:FILE", "memory:"), which closes with the engine. Blocks while files are
  // opened.
  // Errors: as open_store(); busy when another process has owned it for `owner_limit`.
  static Coro<Result<Engine>> open(std::string where, EngineOptions options = {});
  // `store` was opened with StoreAccess::own and outlives the engine.
  static Coro<Result<Engine>> open(Store& store, EngineOptions options = {});
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  // Fires and hands out nothing more, gives back what is leased, waits until all that was asked is committed, and
  // closes the store if it was opened by its name. To let runs of executors end first, call scheduler().shutdown().
  Coro<Result<void>> close();

  // The store's jobs and schedules for anyone, as this owner knows them. Stays where it is when the engine moves.
  Book& book() const noexcept;
  // Throws std::logic_error where `fires_schedules` is off.
  Scheduler& scheduler() const;
  // For reads of what the book does not show.
  Store& store() const noexcept;

  // --- queues, as they are in memory
  Result<QueueConfig> config(std::string_view queue) const;
  std::vector<std::string> queue_names() const;
  // Jobs of this key start not before `until` (kNever: until wake_key); not remembered by the store.
  Result<void> rest_key(std::string_view queue, std::string_view key, TimePoint until);
  Result<void> wake_key(std::string_view queue, std::string_view key);

  // --- jobs run
  // Waits until there is a job, and gives up to `most` that may start now. An empty answer: the engine closes. Queues
  // that are not there are waited for, and not made; without create_queues they are an error (not_found).
  // Callers are served first come, first served; queues that have work share by their weights.
  Coro<Result<std::vector<LeasedJob>>> lease(LeaseCall call);
  // The same without waiting: perhaps nothing.
  Coro<Result<std::vector<LeasedJob>>> lease_now(LeaseCall call);
  // Leases this job, if it waits for no other: a ready one before its turn, a delayed one before its time, a buried one
  // as if it had been kicked. A pause, rates and rests do not hold it up; how many may run at once still counts, of its
  // queue and key. `call` names the worker; its `queues` and `most` mean nothing. nullopt: it runs, has ended or waits
  // for others, or as many run as may. Errors: not_found.
  Coro<Result<std::optional<LeasedJob>>> lease_job(JobId id, LeaseCall call);
  // False when the lease was lost before: nothing was done then, and no follow-up put.
  // Errors: of a follow-up that cannot be put, as Book::put() would give it. The run is settled then, as a failed
  //         attempt with that error, and none of its follow-ups is put.
  Coro<Result<bool>> settle(std::uint64_t token, Verdict verdict);
  // Several at once, each by itself: SettleReply::refused is settle()'s error. Errors: of the store.
  // Cancel: as of settle(); leases of which it had not come to hear go on.
  Coro<Result<std::vector<SettleReply>>> settle_each(std::vector<RunEnd> ends);
  // Several, in one transaction with the memory of the request: see Book::once(). OnceReply::settlements has what
  // became of each: `refused` is settle()'s error.
  Coro<Result<OnceReply>> settle_once(RequestKey key, std::vector<RunEnd> ends);
  // Extends the lease by its lease time from now; false when it is lost.
  bool renew(std::uint64_t token);
  // nullopt: there is no such lease now.
  std::optional<RunningJob> running(std::uint64_t token) const;
  // By token.
  std::vector<RunningJob> running() const;
  bool set_progress(std::uint64_t token, double fraction, std::string message);
  // All that the run has left so far: Store::write_output(), in the background. False: there is no such lease.
  bool set_output(std::uint64_t token, std::string output);
  // Its connection or process is gone: its leases end at once.
  Coro<Result<void>> worker_gone(std::string worker);
  // The same of these leases alone: how many there were.
  Coro<Result<std::size_t>> end_leases(std::vector<std::uint64_t> tokens);

  // --- schedules come; Scheduler calls this for those that are due
  // Store::fire: each by itself, and those that are accepted in one transaction. It waits for no room: an item is
  // refused alone (refused) when a queue has not enough for all of its jobs, as it is for every other fault of its own
  // (not_found, too_large, invalid_input). A stale one is no error: FireReply::fired.
  // Errors: of the store, and then nothing was fired.
  Coro<Result<std::vector<Result<FireReply>>>> fire(std::vector<FireCall> calls);

  // --- to look at
  // The calendar's time as of the last look at it and run on from there, so that its jumps are heard of before they are
  // seen.
  WallTime calendar_now() const;
  // Looks whether the calendar has jumped, as the engine does itself every poll_interval.
  void look_at_calendar();
  // How many jobs are in memory.
  std::size_t in_memory() const;
  std::optional<Error> failure() const;

  // --- events
  using ListenerId = std::uint64_t;
  ListenerId add_listener(std::uint32_t mask, JobListener listener);
  void remove_listener(ListenerId id);
  // How often a listener has thrown. Such an exception is logged and goes no further.
  std::uint64_t listener_errors() const;

 private:
  friend class Worker;
  struct State;
  explicit Engine(std::shared_ptr<State> state) noexcept;
  void let_go() noexcept;

  std::shared_ptr<State> state_;
};

}  // namespace argiope
