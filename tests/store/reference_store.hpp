// What a store of jobs is to do, said a second time and in another way than the rules that all stores share
// (jobs/internal/job_transitions.hpp): random sequences of calls are asked of both.
//
// All there is to know of a job is in its Job; shelves, names and counts follow from it. So every change is made in
// three steps: out of the indexes, changed, back into them; and a call that has to be undone puts the old Jobs back.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "argiope/store/store.hpp"
#include "jobs/internal/job_rules.hpp"
#include "store/jobs/memory_schedules.hpp"

namespace argiope {

class ReferenceStore final : public Store {
 public:
  Coro<Result<StoredQueue>> open_queue(std::string name, QueueConfig config) override;
  Coro<Result<void>> configure(QueueId queue, QueueConfig config) override;
  Coro<Result<void>> erase_queue(QueueId queue) override;
  Coro<Result<std::vector<StoredQueue>>> queues() override;
  Coro<Result<std::vector<Result<PutReply>>>> put(std::vector<PutRequest> jobs, WallTime now, Refusal refusal) override;
  Coro<Result<std::vector<std::optional<JobRecord>>>> lease(std::vector<LeaseRequest> leases) override;
  Coro<Result<PutAndLeaseReply>> put_and_lease(std::vector<PutRequest> jobs, WallTime now,
                                               std::vector<PutLease> leases) override;
  Coro<Result<void>> renew(std::vector<LeaseRequest> leases) override;
  Coro<Result<void>> write_output(JobId id, std::uint64_t token, std::string output) override;
  Coro<Result<std::vector<SettleReply>>> settle(std::vector<Settlement> settlements) override;
  Coro<Result<std::vector<ChangeReply>>> change(std::vector<Change> changes) override;
  Coro<Result<OnceReply>> once(OnceRequest request) override;
  Coro<Result<std::size_t>> prune_requests(WallTime before, std::size_t most, std::size_t limit) override;
  Coro<Result<void>> shelve(std::vector<JobId> jobs, Shelf shelf) override;
  Coro<Result<std::size_t>> prune(QueueId queue, JobState state, WallTime before, std::size_t limit) override;
  Coro<Result<std::vector<PutScheduleReply>>> put_schedules(std::vector<PutSchedule> schedules) override;
  Coro<Result<std::size_t>> erase_schedules(std::vector<ScheduleId> ids) override;
  Coro<Result<std::vector<StoredSchedule>>> schedules(ScheduleFilter filter) override;
  Coro<Result<std::vector<std::optional<StoredSchedule>>>> load_schedules(std::vector<ScheduleId> ids) override;
  Coro<Result<std::optional<StoredSchedule>>> find_schedule(std::string name) override;
  Coro<Result<std::vector<std::optional<ScheduleView>>>> look_at_schedules(std::vector<ScheduleLook> looks) override;
  Coro<Result<std::optional<ScheduleRun>>> schedule_run(ScheduleId id, std::uint64_t number) override;
  Coro<Result<std::vector<ScheduleRun>>> schedule_runs(ScheduleId id, std::size_t limit) override;
  Coro<Result<std::optional<ScheduleOutput>>> schedule_output(ScheduleId id) override;
  Coro<Result<std::vector<Result<FireReply>>>> fire(std::vector<FireRequest> requests, WallTime now) override;
  Coro<Result<std::vector<WaitingJob>>> read_shelf(QueueId queue, ShelfRead read, std::string key) override;
  Coro<Result<std::vector<std::string>>> keys_set_aside(QueueId queue, std::optional<std::string> after,
                                                        std::size_t limit) override;
  Coro<Result<std::vector<std::optional<WaitingJob>>>> find_waiting(std::vector<JobId> jobs) override;
  Coro<Result<std::optional<JobRecord>>> get(JobId id) override;
  Coro<Result<std::optional<JobId>>> find_name(std::string name) override;
  Coro<Result<std::vector<Attempt>>> history(JobId id) override;
  Coro<Result<std::vector<JobRecord>>> list(JobFilter filter) override;
  Coro<Result<JobSlice>> look(JobFilter filter) override;
  Coro<Result<std::vector<QueueCounts>>> counts() override;
  Coro<Result<std::uint64_t>> count_before(QueueId queue, Rank rank, std::uint64_t most,
                                           std::optional<std::string> key) override;
  Coro<Result<std::vector<JobId>>> waits_for(JobId id, std::size_t limit) override;
  std::uint64_t last_token() const override;
  Coro<Result<std::vector<OldLease>>> old_leases() override;
  Coro<Result<ChangedElsewhere>> changed_elsewhere() override;
  Coro<Result<void>> remember(std::string name, std::int64_t value) override;
  Coro<Result<std::optional<std::int64_t>>> recall(std::string name) override;
  // Whether the worker that holds its lease is.
  bool is_remote(JobId id) { return find(id)->remote; }
  std::optional<Error> failure() const override { return std::nullopt; }
  Result<void> close() override {
    open_.reset();
    return {};
  }

 private:
  struct Job {
    JobRecord record;  // its state says what the shelf does while it waits
    QueueId queue = 0;
    Shelf shelf = Shelf::ready;
    std::int32_t rank = 0;
    std::set<JobId> waits_for;
    std::set<JobId> dependants;
    std::vector<Attempt> history;
    bool remote = false;  // who holds its lease
  };
  struct MoreImportant {
    bool operator()(const Rank& a, const Rank& b) const noexcept { return more_important(a, b); }
  };
  using Ranked = std::set<Rank, MoreImportant>;
  struct Queue {
    std::string name;
    QueueConfig config;
    bool is_erased = false;
    StateCounts counts;
    std::uint64_t ended = 0;
    Ranked ready;
    std::map<std::string, Ranked> set_aside;
    std::set<std::pair<WallTime, JobId>> delayed;
    std::map<JobState, std::set<std::pair<WallTime, JobId>>> ended_jobs;
  };
  struct Failed {
    JobId id = 0;  // 0: none has
    std::string_view how;
  };
  // What a call that is refused midway takes back.
  struct Undo {
    std::map<JobId, std::optional<Job>> jobs;
    std::map<QueueId, std::uint64_t> ended;
    std::vector<std::pair<QueueId, QueueConfig>> made_again;
    std::vector<std::pair<JobId, Failed>> failed;  // slots and what they held, latest last
    std::size_t queues = 0;
    JobId last_id = 0;
    JobId last_chosen_id = 0;
  };
  // How a job ends: `how` in a word, for who waits for it, and empty where it is done; `calendar_at` and `error` also
  // go into the history of a schedule whose run it is.
  struct End {
    JobState state{};
    WallTime at{};
    WallTime calendar_at{};
    bool keep = false;
    std::string_view how;
    const std::string& result;
    const std::string& error;
  };
  // What an end brings about.
  struct Effects {
    std::vector<WaitingJob>& released;
    std::vector<CancelledJob>& cancelled;
    std::vector<EndedRun>& ended_runs;
  };

  // A call that takes effect when it is awaited, if the store is still there.
  template <class Act>
  auto call(Act act) -> Coro<decltype(act())> {
    return run(open_, std::move(act));
  }
  template <class Act>
  static auto run(std::weak_ptr<const bool> open, Act act) -> Coro<decltype(act())> {
    if (open.expired()) co_return std::unexpected(job_rules::closed());
    co_return act();
  }
  // `act` returns Result<…>; when it is refused, everything is as before.
  template <class Act>
  auto atomically(Act act) -> decltype(act());
  template <class Act>
  auto all_or_nothing(Act act) -> decltype(act());
  void take_back();

  void index(const Job& job);
  void unindex(const Job& job);
  // Changes a job by `how(Job&)`.
  template <class How>
  void alter(JobId id, How how);
  void add(Job job);
  void erase(JobId id);
  void remember_for_undo(JobId id);

  Job* find(JobId id);
  QueueId queue_of(const std::string& name, const QueueConfig& config);
  Queue* queue(QueueId id) {
    return id == 0 || id > queues_.size() || queues_[id - 1].is_erased ? nullptr : &queues_[id - 1];
  }
  WaitingJob waiting(const Job& job) const;
  static bool leasable(const Job& job);

  // `before`: the jobs of those put before it in the same call.
  Result<PutReply> put_one(const PutRequest& request, WallTime now, std::span<const JobId> before = {},
                           ScheduleId schedule = 0);
  Result<PutReply> put_in_reach(const PutRequest& request, WallTime now, std::span<const JobId> before = {});
  JobId next_id();  // above kMostJobId: there is none left
  bool was_given(JobId id) const noexcept;
  Failed failure_of(JobId id);
  void remember_failed(JobId id, std::string_view how);
  std::shared_ptr<const CancelledAtPut> cancel_at_put(JobId id, Failed because_of, WallTime now);
  PutReply put_on(Job& holder, const PutRequest& request, WallTime now);
  Result<void> join_batch(JobId batch, const Job& job);
  Result<std::vector<Result<PutReply>>> put_all(const std::vector<PutRequest>& requests, WallTime now, Refusal refusal);
  std::vector<SettleReply> settle_all(const std::vector<Settlement>& settlements);
  Result<OnceReply> do_once(const OnceRequest& request);
  JobSlice slice_of(const JobFilter& filter) const;
  Result<std::vector<std::optional<JobRecord>>> lease_all(const std::vector<LeaseRequest>& leases);
  void kick_for_lease(const Job& found, WallTime at);
  Result<SettleReply> settle_one(const Settlement& asked);
  ChangeReply change_one(const Change& change);
  void end(JobId id, const End& how, std::vector<EndedRun>& ended_runs);
  void tell_dependants(JobId id, bool failed, std::string_view what, WallTime at, WallTime calendar_at, Effects into);
  Result<FireReply> fire_one(const FireRequest& request, WallTime now);
  void place_now(Job& job, WallTime at);

  std::shared_ptr<const bool> open_ = std::make_shared<const bool>(true);
  mutable std::mutex mutex_;
  std::vector<Queue> queues_;
  std::map<std::string, QueueId> queue_ids_;
  std::map<JobId, Job> jobs_;
  std::map<std::pair<QueueId, std::string>, JobId> uniques_;
  std::map<std::string, JobId> names_;
  std::map<std::string, std::int64_t> remembered_;
  std::map<JobId, OldLease> old_leases_;
  MemorySchedules schedules_;
  boost::unordered_flat_map<JobId, Failed> failed_;  // whose records are gone, by slot
  JobId last_id_ = 0;
  JobId last_chosen_id_ = 0;  // the largest above kMostCountedId that a caller has chosen
  std::uint64_t last_token_ = 0;
  struct Request {
    RequestKey key;
    WallTime at{};
    OnceReply reply;
  };
  std::vector<Request> requests_;  // in the order they came
  Undo undo_;
  // Who waited for jobs that have just been deleted, until they are told.
  std::map<JobId, std::set<JobId>> orphans_;
};

}  // namespace argiope
