// SqliteJobs: the rows of jobs in a file, their names and the links between them. Jobs are one lean table; which of
// them run is not in it (SqliteLeases).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/jobs/sqlite_leases.hpp"
#include "store/jobs/sqlite_news.hpp"
#include "store/jobs/sqlite_queues.hpp"
#include "store/jobs/sqlite_statements.hpp"

namespace argiope {

class SqliteJobs final : public JobRows {
 public:
  SqliteJobs(SqliteStatements& sql, SqliteQueues& queues, SqliteLeases& leases, SqliteNews& news, bool owns) noexcept
      : sql_(sql), queues_(queues), leases_(leases), news_(news), owns_(owns) {}

  std::optional<JobRow> load(JobId id) override;
  void insert(const JobRow& row, const NewJob& job, WallTime now) override;
  void save(const JobRow& before, const JobRow& after) override;
  void write_work(JobId id, const NewJob& job) override;
  void erase(const JobRow& row) override;
  std::optional<ErasedJob> erase_done(JobId id, std::uint64_t token) override;
  bool keep_done(JobId id, std::uint64_t token, std::int64_t ended_ms) override;
  std::vector<JobId> erase_ended(QueueId queue, JobState state, WallTime before, std::size_t limit) override;
  JobId find_name(const std::string& name) override;
  JobId find_unique(QueueId queue, const std::string& unique) override;
  void link(JobId waited_for, JobId job) override;
  void unlink(JobId job) override;
  std::vector<JobId> take_dependants(JobId waited_for) override;
  std::vector<JobId> waits_for(JobId job, std::size_t limit) override;

 private:
  // But for its row in ended_jobs.
  void erase_row(JobId id, std::int64_t flags);
  void add_flags(JobId id, std::int64_t flags);

  SqliteStatements& sql_;
  SqliteQueues& queues_;
  SqliteLeases& leases_;
  SqliteNews& news_;
  const bool owns_;
};

}  // namespace argiope
