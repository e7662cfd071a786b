// Jobs in memory. An entry made of a row (MemoryQueues) is taken out before the row changes and put back after it.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/jobs/memory_queues.hpp"

namespace argiope {

class MemoryJobs : public JobRows, public LeaseRows, public JobHistory, public JobLooks {
 public:
  MemoryJobs(MemoryQueues& queues, JobCounters& counters) noexcept : queues_(queues), counters_(counters) {}

  std::optional<JobRow> load(JobId id) override;
  void insert(const JobRow& row, const NewJob& job, WallTime now) override;
  void save(const JobRow& before, const JobRow& after) override;
  void write_work(JobId id, const NewJob& job) override;
  void erase(const JobRow& row) override;
  std::optional<ErasedJob> erase_done(JobId id, std::uint64_t token) override;
  std::vector<JobId> erase_ended(QueueId queue, JobState state, WallTime before, std::size_t limit) override;
  JobId find_name(const std::string& name) override;
  JobId find_unique(QueueId queue, const std::string& unique) override { return queues_.find_unique(queue, unique); }
  void link(JobId waited_for, JobId job) override;
  void unlink(JobId job) override;
  std::vector<JobId> take_dependants(JobId waited_for) override;
  std::vector<JobId> waits_for(JobId job, std::size_t limit) override;

  std::vector<std::optional<JobRecord>> lease(std::span<const LeaseRequest> leases) override;
  void renew(std::span<const LeaseRequest> leases) override;
  std::vector<OldLease> old_leases() const;
  // Jobs that ran are the leases of an owner before.
  void reopen();

  void write_attempt(JobId id, const Attempt& attempt, const std::string* result) override;
  void write_end(JobId id, const std::string& error, const std::string* result) override;
  void write_result(JobId id, const std::string& result) override;
  void write_error(JobId id, const std::string& error) override;
  std::string error_of(JobId id) override;
  std::vector<Attempt> attempts(JobId id) override;
  std::string_view failure_of(JobId id) override;
  void set_failure(JobId id, std::string_view how) override;

  std::vector<WaitingJob> load_ranked(QueueId queue, const std::string* key, Rank after, std::size_t limit) override;
  std::uint64_t count_ranked(QueueId queue, const std::string* key, Rank before, std::uint64_t most) override;
  std::vector<std::string> keys_set_aside(QueueId queue, const std::optional<std::string>& after,
                                          std::size_t limit) override;
  std::vector<WaitingJob> load_delayed(QueueId queue, DueRank after, std::size_t limit) override;
  std::optional<JobRecord> record(JobId id) override;
  JobSlice list(const JobFilter& filter) override;
  std::vector<QueueCounts> counts() override { return queues_.counts(); }

  // Changes from mark() on can be taken back, until keep().
  void mark();
  void keep();
  void take_back();

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
  struct Failure {
    JobId id = 0;
    std::string_view how;
  };
  // The link as it was before a change.
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
  void set_link(JobId waited_for, JobId job, bool there);
  JobRecord record_of(const Job& job) const;
  JobRecord brief_of(const Job& job) const;

  MemoryQueues& queues_;
  JobCounters& counters_;
  std::map<JobId, Job> jobs_;
  std::map<std::string, JobId> names_;
  std::set<std::pair<JobId, JobId>> dependants_;        // waited for, job
  std::set<std::pair<JobId, JobId>> waits_for_;         // the other way round
  boost::unordered_flat_map<JobId, Failure> failures_;  // by slot

  bool marked_ = false;
  std::map<JobId, std::optional<Job>> jobs_before_;  // nullopt: there was none
  std::vector<Before> undo_;
};

}  // namespace argiope
