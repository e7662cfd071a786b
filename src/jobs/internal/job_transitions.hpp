// A job's life, for every store: what a put, a lease, the end of a run, a change and a schedule's step do to the rows.
// Nothing here waits, reads a clock or knows how rows are kept.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/jobs/detail/requests.hpp"
#include "jobs/internal/store_rows.hpp"

namespace argiope {

NeededRows needed_by(std::span<const JobId> ids);  // declared before its use: an id says nothing of this namespace

// The writes of Store, within a transaction of the driver that keeps the rows. Throws RequestRefused where the whole
// call is refused; then nothing of it is done. Costs nothing to make.
//
// Lifetime: `rows` must outlive it.
class JobTransitions {
 public:
  explicit JobTransitions(const StoreRows& rows) noexcept : rows_(rows) {}

  StoredQueue open_queue(const std::string& name, const QueueConfig& config);
  void configure(QueueId queue, const QueueConfig& config);
  void erase_queue(QueueId queue);
  const StoredQueue& queue(QueueId id);

  std::vector<Result<PutReply>> put(const std::vector<PutRequest>& requests, WallTime now, Refusal refusal);
  std::vector<std::optional<JobRecord>> lease(const std::vector<LeaseRequest>& leases);
  PutAndLeaseReply put_and_lease(const std::vector<PutRequest>& requests, WallTime now,
                                 const std::vector<PutLease>& leases);
  void write_output(JobId id, std::uint64_t token, const std::string& output);
  std::vector<SettleReply> settle(const std::vector<Settlement>& settlements);
  std::vector<ChangeReply> change(const std::vector<Change>& changes);
  OnceReply once(const OnceRequest& request);
  void shelve(const std::vector<JobId>& jobs, Shelf shelf);
  std::size_t prune(QueueId queue, JobState state, WallTime before, std::size_t limit);
  std::vector<Result<FireReply>> fire(const std::vector<FireRequest>& requests, WallTime now);

  std::vector<std::optional<WaitingJob>> find_waiting(const std::vector<JobId>& ids);

 private:
  struct Failed {
    JobId id = 0;  // 0: none has
    std::string_view how;
  };
  // When a job ends, and what is told of runs that have ended by that.
  struct Ending {
    std::int64_t at_ms;
    WallTime calendar_at;
    std::vector<EndedRun>& runs;
  };
  // How: in a word, for who waits for it; empty: it is done.
  struct End {
    JobState state;
    bool keep;
    std::string_view how;
    const std::string& result;
    const std::string& error;
  };
  struct Effects {
    std::vector<WaitingJob>& released;
    std::vector<CancelledJob>& cancelled;
  };

  // The row of an id that a caller gives.
  std::optional<JobRow> load_any(JobId id) { return id > kMostJobId ? std::nullopt : rows_.jobs.load(id); }
  template <class Requests>
  void bring_for(const Requests& requests) {
    if (rows_.transaction.is_far()) rows_.transaction.bring(needed_by(std::span(requests)));
  }
  template <class Act>
  auto undone_if_refused(bool may_be, Act act) -> decltype(act());
  bool depends(const PutRequest& request);
  bool depends_on_others(const PutRequest& request);
  bool keeps_cancelled(QueueId queue) { return this->queue(queue).config.keep_cancelled > Duration{}; }

  // `before`: the jobs of those put before it in the same call.
  PutReply put_one(const PutRequest& request, WallTime now, std::span<const JobId> before = {},
                   ScheduleId schedule = 0);
  PutReply put_on(const JobRow& holder, const PutRequest& request, WallTime now);
  std::optional<JobRow> same_job(const NewJob& wanted);
  JobId next_id();
  bool was_given(JobId id);
  // Whether the job may name others of that queue.
  bool reaches(const NewJob& job, QueueId queue);
  // As put_one(); what is out of its reach refuses it.
  PutReply put_in_reach(const PutRequest& request, WallTime now, std::span<const JobId> before = {});
  std::vector<JobId> not_ended(const NewJob& job, std::span<const JobId> ids, Failed& failed);
  void join_batch(const NewJob& job, JobRow& part, const std::vector<JobId>& waits_for);
  std::shared_ptr<const CancelledAtPut> cancel_at_put(const JobRow& row, Failed because_of, WallTime now);

  std::vector<Result<PutReply>> put_good(const OnceRequest& request);
  SettleReply settle_one(const Settlement& asked);
  // The news for its dependants.
  struct News {
    std::vector<JobId> dependants;
    std::string_view how;
  };
  News settle_done(const ErasedJob& job, const Settlement& settlement, const Ending& ending);
  News settle_row(const JobRow& row, const Settlement& asked, const Ending& ending, SettleReply& reply);
  std::optional<Settlement> cancellation_of(const Settlement& asked, const JobRow& row);
  void give_back(const JobRow& before, const Settlement& settlement, std::int64_t at_ms, SettleReply& reply);
  void failed_attempt(JobRow& row, const Settlement& settlement, const char* outcome, std::int64_t at_ms);
  // Gives those that waited for it, who are to be told.
  std::vector<JobId> end(const JobRow& row, const Ending& ending, const End& how);
  void end_run(EndedRun run, const Ending& ending, std::string_view error, std::string_view result);
  void tell_dependants(JobId ended, std::vector<JobId> dependants, bool badly, std::string_view how,
                       const Ending& ending, Effects into);
  ChangeReply change_one(const Change& change);
  static void give_attempts_anew(JobRow& row);
  bool lost_unique(const JobRow& row);
  void kick_for_lease(const LeaseRequest& request);
  FireReply fire_one(const FireRequest& request, WallTime now);
  void place_now(JobRow& row, std::int64_t at_ms, bool set_aside = false);

  const StoreRows& rows_;
};

// The rows that will be asked for. A plain put, a lease and an end as done without a record to keep need none.
NeededRows needed_by(std::span<const PutRequest> puts);
NeededRows needed_by(std::span<const LeaseRequest> leases);
NeededRows needed_by(std::span<const Settlement> settlements);
NeededRows needed_by(std::span<const Change> changes);
NeededRows needed_by(std::span<const FireRequest> steps);
NeededRows needed_by(std::span<const RequestKey> keys);

// As an owner's window has it. Of a job that waits.
WaitingJob waiting(const JobRow& row);

}  // namespace argiope
