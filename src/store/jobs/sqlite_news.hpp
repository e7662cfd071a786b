// SqliteNews: the changes that processes which share a file leave for its owner to read.
#pragma once

#include <string>

#include "store/jobs/internal/store_driver.hpp"
#include "store/jobs/sqlite_statements.hpp"

namespace argiope {

class SqliteNews {
 public:
  SqliteNews(SqliteStatements& sql, const std::string& path, StoreAccess access) noexcept
      : sql_(sql), path_(path), access_(access) {}

  // The owner is to hear of them; 0: of a queue.
  void touch(JobId id);
  void touch_schedule(ScheduleId id);

  // For the owner. Others may have written.
  void note_others() noexcept { is_there_ = true; }
  bool is_there() const noexcept { return is_there_; }
  ChangedElsewhere take();
  void forget();

  // At the end of a transaction.
  void flush();
  void drop() noexcept { has_touched_ = false; }

 private:
  void bound();

  SqliteStatements& sql_;
  const std::string& path_;
  const StoreAccess access_;
  bool is_there_ = true;
  bool has_touched_ = false;  // in this transaction
};

}  // namespace argiope
