// Book and its ScheduleBook: what anyone does with jobs and schedules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/jobs/schedule.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

// ScheduleBook: what anyone may do with the schedules of a store, whether or not an engine fires them:
// Book::schedules(). Beside the owner, a command adds or pauses while a scheduler runs elsewhere, or while none does;
// the scheduler sees its changes when it next looks at the store.

// The meaning of ConflictPolicy here: with replace the id, the history and the runs stay, a pause stays, and where the
// schedule stands stays unless its trigger differs: a program may replace its schedules each time it starts and loses
// no run. APScheduler 4 calls the policies exception, replace and do_nothing.
enum class AddOutcome : std::uint8_t {
  added,
  replaced,
  kept,    // ConflictPolicy::keep: the old one
  exists,  // ConflictPolicy::fail: the same
};
struct AddReply {
  AddOutcome outcome = AddOutcome::added;
  ScheduleId id = 0;  // of the schedule that is there now
};

// A schedule as it stands in the store.
struct ScheduleStatus {
  ScheduleId id = 0;
  std::uint64_t version = 0;
  std::string name;
  std::optional<Schedule> schedule;  // nullopt: what the store holds cannot be read, and `trouble` says why
  std::string trouble;
  std::string trigger, definition;  // as the store has them
  SchedulePlace place;
  std::uint32_t active = 0;  // runs that have not ended
  std::string paused_by;     // while it is paused
  WallTime paused_at{};
};
// One line: {"name":…,"id":…,"next":…,"last":…,"runs":…,"missed":…,"active":…,"paused":…,"schedule":{…}}. Times in RFC
// 3339, in the trigger's zone.
std::string to_json(const ScheduleStatus& status);

enum class ResumeFrom : std::uint8_t {
  now,           // planned times of the pause are missed
  where_it_was,  // they are due, and the misfire policy applies
};

// Why a schedule does not run now. Of several reasons the one named is the first of this list that holds.
enum class ScheduleReason : std::uint8_t {
  unreadable,         // what the store holds of it is from another version, or damaged
  paused,             // see paused_by
  finished,           // no more planned times
  max_runs,           // it has had all its runs
  scheduler_stopped,  // it was not started, or was shut down
  scheduler_paused,
  unknown_executor,  // its queue has no executor here, and `foreign_queues` is off
  unknown_function,  // its executor has no such function
  queue_full,        // its queue has no room; tried again
  job_refused,       // its job is refused for another reason: a payload larger than its queue takes; tried again
  overlap,           // max_instances of its runs have not ended
  not_due,
  due,  // it is on its way
};
std::string_view to_string(ScheduleReason reason) noexcept;

struct ScheduleExplanation {
  ScheduleId id = 0;
  std::string name;
  ScheduleReason reason = ScheduleReason::not_due;
  std::string text;                // what cannot be read, the executor or function that is missing, the error
  std::optional<WallTime> next;    // planned
  std::optional<WallTime> due_at;  // when it is to run: with its jitter
  TimeZone zone;                   // to show times in
  std::string paused_by;           // empty: not said
  WallTime paused_at{};
  std::uint32_t active = 0;
  std::uint32_t max_instances = 1;
  Overlap overlap = Overlap::skip;  // what happens to a time that comes while max_instances are active
  std::uint64_t fired = 0;
  std::uint64_t missed = 0;
  std::optional<ScheduleRun> last_misfire;  // the last missed or skipped entry of its history
  // The oldest of its runs that have not ended, and why that one's job does not run now: Book::explain() in a sentence.
  std::optional<ScheduleRun> active_run;
  std::string active_text;
};
// One sentence for people: `runs next at 2026-03-29T03:00:00+02:00; paused by alice since …`.
std::string to_sentence(const ScheduleExplanation& explanation);
// One line; reasons as to_string() has them, with _ for spaces.
std::string to_json(const ScheduleExplanation& explanation);

// docs/from-apscheduler.md compares it with APScheduler's BaseScheduler, name by name. Times are the calendar's.
//
// Suspends: until the effect is committed.
// Cancel:   cancelling the wait does not undo a change.
// Errors:   those of the store; not_found for a name that is not there; invalid_input for what breaks a bound; refused
//           where said. An edit never makes a second schedule of a name, and never leaves one half done. Edits of the
//           same schedule at the same moment all take effect, one after the other.
// Lifetime: as its Book.
// Threads:  the loop's own.
class ScheduleBook {
 public:
  struct State;
  explicit ScheduleBook(std::shared_ptr<State> state) noexcept;  // Book makes it

  // Begins with the first planned time from now on; a date is due whenever it was. Errors: refused when there is one of
  // that name and the policy is to fail.
  Coro<Result<AddReply>> add(Schedule schedule, ConflictPolicy conflict = ConflictPolicy::fail);
  // In one transaction; of those to be replaced that another process changes, or that come due, at that moment, in one
  // that follows. With the policy to fail, one whose name is there is told of, and keeps no other back. Errors:
  // invalid_input for one of them, and then none is added.
  Coro<Result<std::vector<AddReply>>> add_all(std::vector<Schedule> schedules,
                                              ConflictPolicy conflict = ConflictPolicy::fail);
  Coro<Result<ScheduleStatus>> get(std::string name);
  // In the order of their ids, those after `after`; at most 10,000 at a time.
  Coro<Result<std::vector<ScheduleStatus>>> list(ScheduleId after = 0, std::size_t limit = 1000);
  // `change` is called with the schedule as it is; again, when another change came first. With another trigger it goes
  // on with the first planned time from now on. Its name stays: invalid_input. Errors: wrong_format when it cannot be
  // read.
  Coro<Result<ScheduleStatus>> modify(std::string name, std::function<void(Schedule&)> change);
  Coro<Result<ScheduleStatus>> reschedule(std::string name, Trigger trigger);
  // Pausing what is paused, and resuming what is not, changes nothing. Runs under way go on.
  Coro<Result<ScheduleStatus>> pause(std::string name, std::string by = {});
  Coro<Result<ScheduleStatus>> resume(std::string name, ResumeFrom from = ResumeFrom::where_it_was);
  // Its history goes with it, its jobs stay. The id it had.
  Coro<Result<ScheduleId>> remove(std::string name);
  // How many there were.
  Coro<Result<std::uint64_t>> remove_all();
  // Puts a run at once, whatever its trigger, pause and max_instances say, and leaves its planned times as they are.
  // Errors: too_large for a payload above the queue's limit; of the owner refused for a queue without room, and
  //         not_found when its executor or function is not there.
  Coro<Result<JobId>> run_now(std::string name);
  // The fates of its last planned times, the newest first; at most kRunsKept.
  Coro<Result<std::vector<ScheduleRun>>> history(std::string name, std::size_t limit = 20);
  // The result of the last of its runs that left one; nullopt when none has.
  Coro<Result<std::optional<ScheduleOutput>>> output(std::string name);
  // Beside the owner: as far as the store tells.
  Coro<Result<ScheduleExplanation>> explain(std::string name);

 private:
  std::shared_ptr<State> state_;
};

// Book: what anyone may do with the jobs and schedules of a store. A process beside the owner opens one on the store: a
// command that puts or cancels while a worker runs elsewhere, or while none does. The owner's own, Engine::book(), is
// the same class, and knows besides what only an owner knows.

class Broker;
class RemoteBook;
class SchedulerImpl;

// A request with a key of its own: jobs to put, or changes.
struct OnceCall {
  RequestKey key;
  enum class As : std::uint8_t { each, all, batch };
  std::vector<NewJob> jobs;
  As as = As::each;  // the jobs: as put_each(), put_all(), or put_batch() with the completion last
  std::vector<Change> changes;
};

struct BookOptions {
  // false: a put into a queue that was not made or configured before is an error.
  bool create_queues = true;
  QueueConfig new_queue;  // the policy of queues made by a put
  // How long a queue's policy is believed before it is read again.
  Duration believe = std::chrono::seconds{1};
  // How often to look whether a full queue has room (CapacityPolicy::wait).
  Duration poll_interval = std::chrono::milliseconds{100};
  // Whether a process owns the store, which explanations depend on. open() of a name finds that out itself.
  bool owned = true;
  StoreAccess access = StoreAccess::share;  // of open() by name: what else than `read` is there for others
};

struct JobExplanation {
  JobId id = 0;
  std::string queue;
  JobState state = JobState::ready;
  WaitReason reason = WaitReason::none;
  std::optional<WallTime> until;  // when time alone ends the reason
  std::uint64_t ahead = 0;        // jobs that are ready and come first: more important, or put before; 5,000: at least
  std::vector<JobId> waits_for;   // up to ten of them
  std::uint32_t attempts = 0;
  std::uint32_t max_attempts = 0;
  std::string error;  // of the last attempt
  std::optional<WallTime> lease_until;
  std::string worker;
  double progress = 0;
  std::string progress_message;
  // Other reasons may keep it that only the owner of its queue could say: of a book beside the owner.
  std::vector<WaitReason> owner_knows;
};
// One sentence for people: `waits until 12:00:05Z: the bucket of key "example.org" is empty`.
std::string to_sentence(const JobExplanation& explanation);
// One line; the reason in the words of to_string(WaitReason), times in RFC 3339 or null.
std::string to_json(const JobExplanation& explanation);

// The part of a job's output that is known already, and how long to wait for more.
struct OutputLook {
  std::uint32_t run = 0;  // whose output that is, of which
  std::size_t after = 0;  // so many bytes are known
  Duration wait{};
};
// The output of a job's last run from some byte on.
struct JobOutput {
  std::uint32_t run = 0;  // which one of the job's: JobTally::runs; 0: none has begun
  std::size_t after = 0;  // what was asked for, or 0 where another run has begun since
  std::string bytes;
  JobState state{};
  std::string error;  // of a job that has ended or failed
  bool may_grow() const noexcept {
    return state != JobState::done && state != JobState::cancelled && state != JobState::buried;
  }
  // Whether it tells more than was known, or that no more comes: what a look waits for.
  bool is_news(const OutputLook& known) const noexcept { return !bytes.empty() || run != known.run || !may_grow(); }
};

using NamedCounts = std::pair<std::string, StateCounts>;

// Times that go in and come out are the calendar's. Beside the owner a change is seen by him when he next looks at the
// store.
//
// Suspends: until the effect is committed. Changes take effect in the order they are called.
// Cancel:   cancelling the wait does not undo a change.
// Errors:   those of the store; not_found for a queue, job or name that is not there; too_large for a payload above the
//           queue's limit; refused for a queue at capacity whose policy is to refuse, and for a change that the job's
//           state does not allow; invalid_input for what breaks the bounds of NewJob.
// Lifetime: may be destroyed or moved at any moment, with calls under way: what has reached the store takes effect, the
//           rest is answered with Errc::cancelled.
// Threads:  the loop's own.
class Book {
 public:
  // Beside the owner of the store that `where` names, or while it has none. Blocks while files are opened, and waits
  // for no owner.
  // Errors: as open_store().
  static Coro<Result<Book>> open(std::string where, BookOptions options = {});
  // `store` was opened with any access, and outlives the book.
  static Coro<Result<Book>> open(Store& store, BookOptions options = {});
  // Of the store of a daemon elsewhere. On a loop that runs.
  static Book of_remote(std::shared_ptr<RemoteBook> remote);
  Book(Book&&) noexcept;
  Book& operator=(Book&&) noexcept;
  ~Book();

  // Closes the store if open() was given its name, which the destructor does too, but drops the error.
  Result<void> close();
  // Of the store that open() was given the name of; else empty.
  std::string durability() const;

  // --- jobs come
  // Each waits while its queue is full, where the queue's policy is to wait. The capacity of a queue is exact in the
  // owner's book; beside the owner it is looked up, and those who put at the same moment may exceed it together.
  Coro<Result<PutReply>> put(NewJob job);
  // Each by itself: one that is refused keeps no other back. Errors: of the store, and then nothing was put.
  Coro<Result<std::vector<Result<PutReply>>>> put_each(std::vector<NewJob> jobs);
  // All or none, in one transaction.
  Coro<Result<std::vector<PutReply>>> put_all(std::vector<NewJob> jobs);
  // The same, and then `completion`, which waits for all of them. With DependencyPolicy::run it runs when all have
  // ended. The last reply is that of the completion job; its id names the batch.
  Coro<Result<std::vector<PutReply>>> put_batch(std::vector<NewJob> jobs, NewJob completion);

  // --- jobs are changed
  // A job that runs is asked to stop, and cancelled when its run ends, unless it is done then. The request is
  // committed when this returns, and holds for the next owner too.
  Coro<Result<void>> cancel(JobId id, std::string why = {});
  Coro<Result<void>> kick(JobId id);  // buried or delayed: ready now
  Coro<Result<void>> set_priority(JobId id, std::int32_t priority);
  Coro<Result<void>> set_due(JobId id, WallTime due_at);
  Coro<Result<void>> erase(JobId id);  // forget it, whatever it is, unless it runs
  // Several: what became of each. Beside the owner they are one transaction. Change's times `at` and `calendar_at` are
  // now.
  Coro<Result<std::vector<ChangeReply>>> change(std::vector<Change> changes);

  // --- requests that are done once, however often they come
  // Puts or changes jobs unless a request of that key has come in the last day (kRequestsKept). A repetition of it gets
  // the answer that it had and does nothing; another request under its key is a mismatch, and does nothing. OnceReply
  // holds each job's outcome. One transaction; a request that fails as a whole is not remembered, and may be retried.
  // Waits while there is no room for all of its jobs, where their queues' policies are to wait and they can hold so
  // many.
  Coro<Result<OnceReply>> once(OnceCall call);

  // --- to look at
  // The job of that number or name. Errors: not_found.
  Coro<Result<JobId>> find(std::string id_or_name);
  Coro<Result<JobRecord>> get(JobId id);
  // Waits until there is more than is known, another run has begun, or the job has ended. Beside the owner it looks
  // four times a second. Errors: not_found.
  Coro<Result<JobOutput>> output(JobId id, OutputLook look = {});
  // As Store::history.
  Coro<Result<std::vector<Attempt>>> history(JobId id);
  // As Store::list, but delayed jobs whose time has come are ready ones here. Of any length.
  Coro<Result<std::vector<JobRecord>>> list(JobFilter filter);
  // The same in slices, which may be shorter than the filter allows, or empty: until JobSlice::is_last. In the owner's
  // process those who go through much of the store take turns, with pauses while others put, lease or settle.
  Coro<Result<JobSlice>> look(JobFilter filter);
  // By name; of `only` alone, where it is not empty. Delayed jobs whose time has come count as ready: the first 2,000
  // of a queue.
  Coro<Result<std::vector<NamedCounts>>> counts(std::string only = {});
  // The same of those of `names` that are there: what is due is looked up in them alone.
  Coro<Result<std::vector<NamedCounts>>> counts_of(std::vector<std::string> names);
  // Why a job does not run now. Of several reasons the first that holds: it runs; it has ended, is buried or waits for
  // others; it is not due; nobody owns the store; the limits of its queue and key; no worker; others are ahead.
  // Beside the owner the store tells of pauses, of what runs and of how many may; JobExplanation::owner_knows names
  // what may also keep it and is not in the store: whether a worker takes jobs of its queue at all, rates, rests of its
  // key.
  Coro<Result<JobExplanation>> explain(JobId id);

  // --- queues
  Coro<Result<StoredQueue>> queue(std::string name);
  Coro<Result<std::vector<StoredQueue>>> queues();
  // Makes it if need be: for `asker`, where there is one.
  Coro<Result<void>> configure(std::string queue, QueueConfig config, JobReachRef asker = nullptr);
  Coro<Result<void>> pause(std::string queue);
  // It goes on by itself then, whichever process owns it.
  Coro<Result<void>> pause(std::string queue, WallTime until);
  Coro<Result<void>> resume(std::string queue);
  // Forgets it with its configuration; a put makes it anew. Errors: not_found; refused while there are jobs in it,
  // those kept after their end included.
  Coro<Result<void>> erase_queue(std::string queue);

  // --- schedules
  ScheduleBook& schedules() noexcept;

  // As jobs are timed: the calendar's, less its jumps.
  WallTime job_now() const;

 private:
  friend class Engine;
  struct State;
  explicit Book(std::shared_ptr<State> state) noexcept;
  static Book of_owner(Store& store, std::shared_ptr<Broker> owner, std::shared_ptr<SchedulerImpl> scheduler,
                       QueueConfig new_queue);
  void let_go() noexcept;

  std::shared_ptr<State> state_;
};

}  // namespace argiope
