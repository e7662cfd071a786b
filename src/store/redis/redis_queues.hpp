// Queues of a store on Redis: their names and policies in memory, and how many jobs of each are in which state.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "store/jobs/internal/queue_list.hpp"
#include "store/jobs/internal/store_driver.hpp"
#include "store/redis/redis_rows.hpp"

namespace argiope {

class RedisQueues final : public QueueRows {
 public:
  RedisQueues(RedisRows& rows, StoreAccess access) noexcept : rows_(rows), access_(access) {}

  const std::vector<StoredQueue>& all() override { return list_.all(); }
  QueueId find(std::string_view name) override { return list_.find(name); }
  QueueId add(const std::string& name, const QueueConfig& config) override;
  void configure(QueueId queue, const QueueConfig& config) override;
  bool is_empty(QueueId queue) override;
  void erase(QueueId queue) override;

  // Of a queue that a row names. Errors: corrupt for one that is not there.
  const std::string& name_of(QueueId queue);
  void count(QueueId queue, JobState state, std::int64_t by) { count(queue, to_string(state), by); }
  void count_ended(QueueId queue) { count(queue, "ended", 1); }
  std::vector<QueueCounts> counts();

  void load();
  void mark() { list_.mark(); }
  void take_back() { list_.take_back(); }

 private:
  void count(QueueId queue, std::string_view what, std::int64_t by) {
    rows_.increment(RedisTable::counts, fmt::format("{}:{}", queue, what), by);
  }
  std::uint64_t counted(QueueId queue, std::string_view what) {
    return static_cast<std::uint64_t>(rows_.number(RedisTable::counts, fmt::format("{}:{}", queue, what)));
  }
  QueueCounts counts_of(QueueId queue);
  void want_counts(QueueId queue);
  void write(QueueId queue, const std::string& name, const QueueConfig& config, bool is_erased);

  RedisRows& rows_;
  const StoreAccess access_;
  QueueList list_;
};

}  // namespace argiope
