// SqliteLooks: what is read of the jobs in a file besides their rows: shelves, records, counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/jobs/sqlite_leases.hpp"
#include "store/jobs/sqlite_queues.hpp"
#include "store/jobs/sqlite_statements.hpp"

namespace argiope {

class SqliteLooks final : public JobLooks {
 public:
  SqliteLooks(SqliteStatements& sql, SqliteQueues& queues, SqliteLeases& leases) noexcept
      : sql_(sql), queues_(queues), leases_(leases) {}

  std::vector<WaitingJob> load_ranked(QueueId queue, const std::string* key, Rank after, std::size_t limit) override;
  std::uint64_t count_ranked(QueueId queue, const std::string* key, Rank before, std::uint64_t most) override;
  std::vector<std::string> keys_set_aside(QueueId queue, const std::optional<std::string>& after,
                                          std::size_t limit) override;
  std::vector<WaitingJob> load_delayed(QueueId queue, DueRank after, std::size_t limit) override;
  std::optional<JobRecord> record(JobId id) override;
  JobSlice list(const JobFilter& filter) override;
  std::vector<QueueCounts> counts() override { return queues_.counts(); }

 private:
  void add_lease(JobRecord& record, std::int64_t fence, std::int64_t flags);
  JobSlice list_running(const JobFilter& filter);
  JobSlice list_others(const JobFilter& filter, QueueId queue);
  JobId nth_after(JobId id, std::size_t n);
  JobId nth_before(JobId id, std::size_t n);
  JobId newest();
  bool are_few_ended(JobState state, QueueId queue);

  SqliteStatements& sql_;
  SqliteQueues& queues_;
  SqliteLeases& leases_;
};

}  // namespace argiope
