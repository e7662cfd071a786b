// The store of jobs in memory, which nothing outlives. All that follows from a row (shelves, counts, holders of unique names) is
// taken out of the indexes before the row changes and put back after it.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "store/jobs/memory_schedules.hpp"
#include "store/jobs/queue_list.hpp"
#include "store/jobs/store_driver.hpp"

namespace argiope {

class MemoryDriver : public StoreDriver {
 public:
  std::uint64_t last_token() const noexcept { return counters_.last_token; }
  // What ran are the leases of an owner before.
  void reopen();

  void mark() override;
  void keep() override;
  void take_back() override;
  JobCounters& counters() override { return counters_; }
  const std::vector<StoredQueue>& all_queues() override { return queues_.all(); }
  QueueId find_queue(std::string_view name) override;
  QueueId add_queue(const std::string& name, const QueueConfig& config) override;
  void configure_queue(QueueId queue, const QueueConfig& config) override;
  bool is_empty(QueueId queue) override { return of_queues_[queue - 1].counts == StateCounts{}; }
  void erase_queue(QueueId queue) override { queues_.erase(queue); }
  std::optional<JobRow> load(JobId id) override;
  void insert(const JobRow& row, const NewJob& job, WallTime now) override;
  void save(const JobRow& before, const JobRow& after) override;
  void erase(const JobRow& row) override;
  std::optional<ErasedJob> erase_done(JobId id, std::uint64_t token) override;
  std::vector<JobId> erase_ended(QueueId queue, JobState state, WallTime before, std::size_t limit) override;
  void write_work(JobId id, const NewJob& job) override;
  void write_attempt(JobId id, const Attempt& attempt, const std::string* result) override;
  void write_end(JobId id, const std::string& error, const std::string* result) override;
  void write_result(JobId id, const std::string& result) override;
  void write_error(JobId id, const std::string& error) override;
  std::string error_of(JobId id) override;
  JobId find_name(const std::string& name) override;
  JobId find_unique(QueueId queue, const std::string& unique) override;
  void link(JobId waited_for, JobId job) override;
  void unlink(JobId job) override;
  std::vector<JobId> take_dependants(JobId waited_for) override;
  std::vector<JobId> waits_for(JobId job, std::size_t limit) override;
  std::string_view failure_of(JobId id) override;
  void set_failure(JobId id, std::string_view how) override;
  std::vector<std::optional<JobRecord>> lease(std::span<const LeaseRequest> leases) override;
  void renew(std::span<const LeaseRequest> leases) override;
  bool advance(const FireRequest& step, std::uint64_t entries, std::uint32_t started) override;
  void write_runs(const FireRequest& step, const std::vector<ScheduleRun>& runs) override;
  void take_off_started(ScheduleId id, std::uint32_t count) override;
  std::optional<ScheduleRun> schedule_run(ScheduleId id, std::uint64_t number) override;
  void end_run(const EndedRun& run, WallTime at, std::string_view error, std::string_view result) override;

  std::vector<WaitingJob> load_ranked(QueueId queue, const std::string* key, Rank after, std::size_t limit) override;
  std::uint64_t count_ranked(QueueId queue, const std::string* key, Rank before, std::uint64_t most) override;
  std::vector<std::string> keys_set_aside(QueueId queue, const std::optional<std::string>& after,
                                          std::size_t limit) override;
  std::optional<KeptRequest> find_request(const std::string& key) override;
  void write_request(const RequestKey& key, WallTime at, const std::string& reply) override;
  std::size_t prune_requests(WallTime before, std::size_t most, std::size_t limit) override;
  std::vector<WaitingJob> load_delayed(QueueId queue, DueRank after, std::size_t limit) override;
  std::optional<JobRecord> record(JobId id) override;
  std::vector<Attempt> attempts(JobId id) override;
  JobSlice list(const JobFilter& filter) override;
  std::vector<QueueCounts> counts() override;
  std::vector<PutScheduleReply> put_schedules(const std::vector<PutSchedule>& schedules) override;
  bool erase_schedule(ScheduleId id) override;
  std::vector<StoredSchedule> schedules(const ScheduleFilter& filter) override;
  std::optional<StoredSchedule> schedule(ScheduleId id) override;
  std::optional<StoredSchedule> find_schedule(const std::string& name) override;
  std::optional<ScheduleView> look_at_schedule(const ScheduleLook& look) override;
  std::vector<ScheduleRun> schedule_runs(ScheduleId id, std::size_t limit) override;
  std::optional<ScheduleOutput> schedule_output(ScheduleId id) override;
  std::vector<OldLease> old_leases() override;
  ChangedElsewhere changed_elsewhere() override { return {}; }
  void remember(const std::string& name, std::int64_t value) override { remembered_[name] = value; }
  std::optional<std::int64_t> recall(const std::string& name) override;

 private:
  struct Job {
    JobRow row;
    std::string name, function, payload, result, error, worker;
    std::uint32_t max_attempts = 0;
    std::int64_t lease_ms = 0;
    WallTime created_at{};
    WallTime lease_until{};
    bool lease_is_old = false;
    bool is_remote = false;
    std::vector<Attempt> attempts;
  };
  struct MoreImportant {
    bool operator()(const Rank& a, const Rank& b) const noexcept { return more_important(a, b); }
  };
  using Ranked = std::set<Rank, MoreImportant>;
  // What follows from the rows of its jobs.
  struct Queue {
    StateCounts counts;
    std::uint64_t ended = 0;
    Ranked ready;
    std::map<std::string, Ranked> set_aside;
    std::set<std::pair<std::int64_t, JobId>> delayed;
    std::map<RowState, std::set<std::pair<std::int64_t, JobId>>> ended_jobs;
  };
  struct Failure {
    JobId id = 0;
    std::string_view how;
  };
  // What was there before a change.
  struct LinkBefore {
    JobId waited_for, job;
    bool was_there;
  };
  struct FailureBefore {
    JobId slot;
    Failure failure;
  };
  struct EndedBefore {
    QueueId queue;
    std::uint64_t ended;
  };
  using Before = std::variant<LinkBefore, FailureBefore, EndedBefore>;

  template <class What>
  void remember_before(What what) {
    if (marked_) undo_.emplace_back(what());
  }
  Job& changing(JobId id);  // there is one
  void index(const Job& job);
  void unindex(const Job& job);
  void set_link(JobId waited_for, JobId job, bool there);
  JobRecord record_of(const Job& job) const;
  JobRecord brief_of(const Job& job) const;
  const Ranked& ranked(QueueId queue, const std::string* key) const;

  QueueList queues_;
  std::vector<Queue> of_queues_;
  std::map<JobId, Job> jobs_;
  std::map<std::pair<QueueId, std::string>, JobId> uniques_;
  std::map<std::string, JobId> names_;
  std::set<std::pair<JobId, JobId>> dependants_;        // waited for, job
  std::set<std::pair<JobId, JobId>> waits_for_;         // the other way round
  boost::unordered_flat_map<JobId, Failure> failures_;  // by slot
  std::map<std::string, std::int64_t> remembered_;
  std::map<std::string, KeptRequest> requests_;
  std::deque<std::pair<WallTime, std::string>> request_keys_;  // in the order they came
  MemorySchedules schedules_;
  JobCounters counters_;

  bool marked_ = false;
  std::map<JobId, std::optional<Job>> jobs_before_;  // nullopt: there was none
  std::vector<Before> undo_;
  JobCounters counters_before_;
};

}  // namespace argiope
