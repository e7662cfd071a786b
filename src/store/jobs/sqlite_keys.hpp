// SqliteKeys: requests to a file of jobs that came under a key.
#pragma once

#include <optional>
#include <string>

#include "store/jobs/internal/store_driver.hpp"
#include "store/jobs/sqlite_statements.hpp"

namespace argiope {

class SqliteKeys final : public KeyRows {
 public:
  explicit SqliteKeys(SqliteStatements& sql) noexcept : sql_(sql) {}

  std::optional<KeptRequest> find(const std::string& key) override;
  void write(const RequestKey& key, WallTime at, const std::string& reply) override;
  std::size_t prune(WallTime before, std::size_t most, std::size_t limit) override;

 private:
  SqliteStatements& sql_;
};

}  // namespace argiope
