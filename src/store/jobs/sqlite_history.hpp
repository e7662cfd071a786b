// SqliteHistory: how the runs of jobs in a file have ended, and what they have left.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/jobs/sqlite_leases.hpp"
#include "store/jobs/sqlite_statements.hpp"

namespace argiope {

class SqliteHistory final : public JobHistory {
 public:
  SqliteHistory(SqliteStatements& sql, SqliteLeases& leases) noexcept : sql_(sql), leases_(leases) {}

  void write_attempt(JobId id, const Attempt& attempt, const std::string* result) override;
  void write_end(JobId id, const std::string& error, const std::string* result) override;
  void write_result(JobId id, const std::string& result) override;
  void write_error(JobId id, const std::string& error) override;
  std::string error_of(JobId id) override;
  std::vector<Attempt> attempts(JobId id) override;
  std::string_view failure_of(JobId id) override;
  void set_failure(JobId id, std::string_view how) override;

 private:
  SqliteStatements& sql_;
  SqliteLeases& leases_;
};

}  // namespace argiope
