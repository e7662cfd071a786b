// Book: what anyone may do with the jobs and schedules of a store. A process beside the owner opens one on the store: a
// command that puts or cancels while a worker runs elsewhere, or while none does. The owner's own, Engine::book(), is
// the same class, and knows besides what only an owner knows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/engine/schedule_book.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/store/store.hpp"

namespace argiope {

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
  // It goes on by itself then, whoever owns it.
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
