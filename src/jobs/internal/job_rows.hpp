// What a store of jobs looks like to the rules of their life (job_transitions.hpp): rows that are loaded and saved, names,
// links between jobs. Whoever keeps them decides nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/jobs/requests.hpp"

namespace argiope {

// The request breaks its contract. Thrown by the rules and by who keeps the rows: nothing of the request is done.
struct RequestRefused {
  Error error;
};

// Where a job stands: on a shelf, or how it has ended. One that runs keeps the shelf that it was leased from, and goes
// back there when its lease is over. The numbers are in files.
enum class RowState : std::uint8_t { ready, set_aside, delayed, waiting, done, cancelled, buried };

constexpr RowState row_state(Shelf shelf) noexcept { return static_cast<RowState>(shelf); }
constexpr RowState row_state(JobState ended) noexcept {
  return ended == JobState::done ? RowState::done : ended == JobState::cancelled ? RowState::cancelled : RowState::buried;
}
constexpr bool has_shelf(RowState state) noexcept { return state <= RowState::waiting; }
// It waits for time and turn alone.
constexpr bool is_leasable(RowState state) noexcept { return state < RowState::waiting; }
constexpr JobState state_of(RowState state) noexcept {
  switch (state) {
    case RowState::ready:
    case RowState::set_aside: return JobState::ready;
    case RowState::delayed:
    case RowState::waiting: return JobState::delayed;
    case RowState::done: return JobState::done;
    case RowState::cancelled: return JobState::cancelled;
    case RowState::buried: break;
  }
  return JobState::buried;
}

// What the rules read of a job. What else is known of it (payload, result, error …) they only write.
struct JobRow {
  JobId id = 0;
  QueueId queue = 0;
  RowState state = RowState::ready;
  std::int32_t rank = 0;
  std::int32_t priority = 0;
  std::int64_t due_ms = 0;
  std::uint32_t attempts = 0;
  std::uint32_t expiries = 0;
  std::uint32_t pending = 0;          // jobs it waits for
  bool cancelled_with_others = true;  // DependencyPolicy::cancel
  std::int64_t flags = 0;
  std::uint64_t token = 0;  // of its lease; 0: it does not run
  std::uint64_t fence = 0;  // leases with tokens up to this one are over
  std::int64_t ended_ms = 0;
  std::string key;
  std::string unique;
  ScheduleId schedule = 0;
  std::uint64_t run = 0;
  std::uint64_t tally = 0;  // packed: job_tally.hpp

  // They are in files. What a row does not have need not be looked for.
  static constexpr std::int64_t kHasDependants = 1;
  static constexpr std::int64_t kHasHistory = 2;
  static constexpr std::int64_t kHasNames = 4;  // a name, a unique one, or both
  static constexpr std::int64_t kIsRun = 8;     // of a schedule
  static constexpr std::int64_t kCancelAsked = 16;

  bool runs() const noexcept { return token != 0; }
  bool has_ended() const noexcept { return !has_shelf(state); }
  bool holds_unique() const noexcept { return !unique.empty() && has_shelf(state); }
  JobState shown_state() const noexcept { return runs() ? JobState::running : state_of(state); }
};

// What is left of a job whose record went when it was done.
struct ErasedJob {
  bool has_dependants = false;
  ScheduleId schedule = 0;
  std::uint64_t run = 0;
};

// A request that came under a key.
struct KeptRequest {
  std::string digest;
  std::string reply;  // request_memory.hpp
};

struct JobCounters {
  JobId last_id = 0;
  JobId last_chosen_id = 0;  // the largest above kMostCountedId that a caller has chosen
  std::uint64_t last_token = 0;
};

// The rows and names that requests are about to look at, as far as the requests say: of ids that are gone, whether they had
// failed; of names and unique names, the rows of who holds them too. Those that wait for a job that ends are not among
// them: they come with take_dependants().
struct NeededRows {
  std::vector<JobId> ids;
  std::vector<std::string> names;
  std::vector<std::pair<std::string, std::string>> uniques;  // queue, unique name
  std::vector<ScheduleId> schedules;
  std::vector<std::string> requests;  // by their keys
  bool empty() const noexcept {
    return ids.empty() && names.empty() && uniques.empty() && schedules.empty() && requests.empty();
  }
};

// All within one transaction, which is not the rules' business. Ids are at most kMostJobId, those of queues are of queues
// that there are, and names are no longer than kMostNameBytes.
class JobRows {
 public:
  virtual ~JobRows() = default;

  // --- what a call will look at, told before it begins: a store that is far away can have it brought in one round trip
  virtual bool is_far() const noexcept { return false; }
  virtual void bring(const NeededRows& needed) { (void)needed; }

  // --- one request that may be refused when half of it is done: mark(), and then keep() or take_back()
  virtual void mark() = 0;
  virtual void keep() = 0;
  virtual void take_back() = 0;

  // --- queues and counters
  virtual JobCounters& counters() = 0;  // to be changed in place
  virtual const std::vector<StoredQueue>& all_queues() = 0;  // by id, from 1; those erased have no name
  virtual QueueId find_queue(std::string_view name) = 0;     // 0: there is none
  virtual QueueId add_queue(const std::string& name, const QueueConfig& config) = 0;
  virtual void configure_queue(QueueId queue, const QueueConfig& config) = 0;
  virtual bool is_empty(QueueId queue) = 0;  // it has no job, and no record of one
  // Its place in all_queues() stays, and is its own again when add_queue() makes it anew.
  virtual void erase_queue(QueueId queue) = 0;

  // --- rows
  virtual std::optional<JobRow> load(JobId id) = 0;
  virtual void insert(const JobRow& row, const NewJob& job, WallTime now) = 0;
  // Its shelf, its unique name's holder, its lease and the counts of its queue follow from the two.
  virtual void save(const JobRow& before, const JobRow& after) = 0;
  // Links of those that wait for it stay: take_dependants().
  virtual void erase(const JobRow& row) = 0;
  // The commonest end: a job that runs under this token is done, and its record goes. nullopt: it does not.
  virtual std::optional<ErasedJob> erase_done(JobId id, std::uint64_t token) = 0;
  // The same where its record is kept and says nothing but that it has been done, in its first run: nothing waits for it, it has
  // no names and no history, is of no schedule, and nobody has asked for its end. False: that is not so, or not known without
  // its row, and nothing is done.
  virtual bool keep_done(JobId id, std::uint64_t token, std::int64_t ended_ms) {
    (void)id, (void)token, (void)ended_ms;
    return false;
  }
  // Erases those that ended in `state` before `before`, the earliest first; which they were.
  virtual std::vector<JobId> erase_ended(QueueId queue, JobState state, WallTime before, std::size_t limit) = 0;

  // --- what rows do not say
  virtual void write_work(JobId id, const NewJob& job) = 0;  // function, payload and lease time
  // `result`: null: what is there stays.
  virtual void write_attempt(JobId id, const Attempt& attempt, const std::string* result) = 0;
  // It has ended; it is of no schedule any more. `result`: as write_attempt()'s.
  virtual void write_end(JobId id, const std::string& error, const std::string* result) = 0;
  virtual void write_result(JobId id, const std::string& result) = 0;
  virtual void write_error(JobId id, const std::string& error) = 0;
  virtual std::string error_of(JobId id) = 0;

  // --- names; 0: nobody has it. A unique name is held by a job that waits or runs.
  virtual JobId find_name(const std::string& name) = 0;
  virtual JobId find_unique(QueueId queue, const std::string& unique) = 0;

  // --- links
  virtual void link(JobId waited_for, JobId job) = 0;
  virtual void unlink(JobId job) = 0;  // it waits for none
  virtual std::vector<JobId> take_dependants(JobId waited_for) = 0;
  virtual std::vector<JobId> waits_for(JobId job, std::size_t limit) = 0;

  // --- jobs whose records are gone and that had failed; empty: none known
  virtual std::string_view failure_of(JobId id) = 0;
  virtual void set_failure(JobId id, std::string_view how) = 0;

  // --- requests that came under a key. Their times do not step back.
  virtual std::optional<KeptRequest> find_request(const std::string& key) = 0;
  // There is none of that key.
  virtual void write_request(const RequestKey& key, WallTime at, const std::string& reply) = 0;
  virtual std::size_t prune_requests(WallTime before, std::size_t most, std::size_t limit) = 0;

  // --- leases. Each by itself: a job that does not wait, or waits for others, is passed over. Tokens are in order. Until when:
  // job_rules::lease_end().
  virtual std::vector<std::optional<JobRecord>> lease(std::span<const LeaseRequest> leases) = 0;
  virtual void renew(std::span<const LeaseRequest> leases) = 0;

  // --- schedules. False: there is none of that id, it has another version, or other entries than `entries`.
  virtual bool advance(const FireRequest& step, std::uint64_t entries, std::uint32_t started) = 0;
  virtual void write_runs(const FireRequest& step, const std::vector<ScheduleRun>& runs) = 0;
  virtual void take_off_started(ScheduleId id, std::uint32_t count) = 0;
  virtual std::optional<ScheduleRun> schedule_run(ScheduleId id, std::uint64_t number) = 0;
  // Written into its entry, if that is kept. The schedule may be gone.
  virtual void end_run(const EndedRun& run, WallTime at, std::string_view error, std::string_view result) = 0;
};

}  // namespace argiope
