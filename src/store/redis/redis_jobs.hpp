// Jobs of a store on Redis: rows, leases, names, links and histories, and the shelves that follow from the rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/redis/redis_queues.hpp"
#include "store/redis/redis_rows.hpp"

namespace argiope {

class RedisJobs final : public JobRows, public LeaseRows, public JobHistory, public JobLooks {
 public:
  RedisJobs(RedisRows& rows, RedisQueues& queues, JobCounters& counters) noexcept
      : rows_(rows), queues_(queues), counters_(counters) {}

  // All that a call will look at, in one round trip, or two where names are among it.
  void bring(const NeededRows& needed);

  std::optional<JobRow> load(JobId id) override;
  void insert(const JobRow& row, const NewJob& job, WallTime now) override;
  void save(const JobRow& before, const JobRow& after) override;
  void write_work(JobId id, const NewJob& job) override;
  void erase(const JobRow& row) override;
  std::optional<ErasedJob> erase_done(JobId id, std::uint64_t token) override;
  std::vector<JobId> erase_ended(QueueId queue, JobState state, WallTime before, std::size_t limit) override;
  JobId find_name(const std::string& name) override;
  JobId find_unique(QueueId queue, const std::string& unique) override;
  void link(JobId waited_for, JobId job) override;
  void unlink(JobId job) override;
  std::vector<JobId> take_dependants(JobId waited_for) override;
  std::vector<JobId> waits_for(JobId job, std::size_t limit) override;

  std::vector<std::optional<JobRecord>> lease(std::span<const LeaseRequest> leases) override;
  void renew(std::span<const LeaseRequest> leases) override;
  std::vector<OldLease> old_leases();

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

 private:
  // A job's row, which says what else there is of it.
  struct Job {
    JobRow row;
    std::string name, function;
    std::uint32_t max_attempts = 0;
    std::int64_t lease_ms = 0;
    WallTime created_at{};
    std::uint64_t payload_bytes = 0, result_bytes = 0;
    bool has_error = false, has_attempts = false;
    void fields(auto& io) {
      io(row.queue, row.state, row.rank, row.priority, row.due_ms, row.attempts, row.expiries, row.pending,
         row.cancelled_with_others, row.flags, row.fence, row.ended_ms, row.key, row.unique, row.schedule, row.run,
         row.tally, name, function, max_attempts, lease_ms, created_at, payload_bytes, result_bytes, has_error,
         has_attempts);
    }
  };
  struct Lease {
    std::uint64_t token = 0;
    WallTime until{};
    std::string worker;
    bool remote = false;
    std::string epoch;  // of the owner that gave or renewed it
    void fields(auto& io) { io(token, until, worker, remote, epoch); }
  };

  void want(JobId id);
  void want_texts(const Job& job);
  std::optional<Job> read(JobId id);
  Job must_read(JobId id);
  std::optional<Lease> lease_of(JobId id);
  void write(Job& job);
  void write_lease(JobId id, const LeaseRequest& lease, WallTime until);
  void place(const JobRow& row, bool is_there);
  void write_text(Job& job, RedisTable table, const std::string& text);
  std::string text_of(RedisTable table, JobId id);
  JobRecord record_of(const Job& job, bool with_payloads);
  std::vector<WaitingJob> waiting_in(const std::vector<std::string>& members);

  RedisRows& rows_;
  RedisQueues& queues_;
  JobCounters& counters_;
};

}  // namespace argiope
