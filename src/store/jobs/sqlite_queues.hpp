// SqliteQueues: the queues of a file of jobs, and how many jobs each has in which state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/jobs/internal/queue_list.hpp"
#include "store/jobs/internal/store_driver.hpp"
#include "store/jobs/sqlite_news.hpp"
#include "store/jobs/sqlite_statements.hpp"

namespace argiope {

class SqliteQueues final : public QueueRows {
 public:
  SqliteQueues(SqliteStatements& sql, SqliteNews& news, const std::string& path, StoreAccess access) noexcept
      : sql_(sql), news_(news), path_(path), access_(access) {}

  const std::vector<StoredQueue>& all() override { return queues_.all(); }
  QueueId find(std::string_view name) override { return queues_.find(name); }
  QueueId add(const std::string& name, const QueueConfig& config) override;
  void configure(QueueId queue, const QueueConfig& config) override;
  bool is_empty(QueueId queue) override;
  void erase(QueueId queue) override;

  std::vector<QueueCounts> counts();
  // So many jobs more are in that state.
  void count(QueueId queue, JobState state, int by) { changed(queue).of[static_cast<std::size_t>(state)] += by; }
  void count_done(QueueId queue) { ++changed(queue).ended; }

  // As they are in the file.
  void load();
  void begin() { queues_.mark(); }
  void mark();
  void take_back();
  // Counts are kept until the end of the transaction, so that they cost a row for each queue and not one for each job.
  void flush();
  void drop() noexcept { counts_.clear(); }

 private:
  struct Counts {
    std::int64_t of[6] = {};  // by JobState
    std::int64_t ended = 0;
    bool touched = false;
  };
  Counts& changed(QueueId queue);

  SqliteStatements& sql_;
  SqliteNews& news_;
  const std::string& path_;
  const StoreAccess access_;
  QueueList queues_;
  std::vector<Counts> counts_, marked_;  // by QueueId - 1
};

}  // namespace argiope
