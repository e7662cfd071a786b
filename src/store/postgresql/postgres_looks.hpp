// PostgresLooks: what is looked at besides the rows of a transaction: shelves, records, counts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/postgresql/postgres_queues.hpp"
#include "store/postgresql/postgres_work.hpp"

namespace argiope {

class PostgresLooks final : public JobLooks {
 public:
  PostgresLooks(PostgresWork& work, PostgresQueues& queues) noexcept : work_(work), queues_(queues) {}

  std::vector<WaitingJob> load_ranked(QueueId queue, const std::string* key, Rank after, std::size_t limit) override;
  std::uint64_t count_ranked(QueueId queue, const std::string* key, Rank before, std::uint64_t most) override;
  std::vector<std::string> keys_set_aside(QueueId queue, const std::optional<std::string>& after,
                                          std::size_t limit) override;
  std::vector<WaitingJob> load_delayed(QueueId queue, DueRank after, std::size_t limit) override;
  std::optional<JobRecord> record(JobId id) override;
  JobSlice list(const JobFilter& filter) override;
  std::vector<QueueCounts> counts() override { return queues_.counts(); }

 private:
  PostgresWork& work_;
  PostgresQueues& queues_;
};

}  // namespace argiope
