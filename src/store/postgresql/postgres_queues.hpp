// PostgresQueues: the queues of a store in PostgreSQL, and how many jobs each has in which state, as the owner has them
// in memory.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "store/jobs/internal/queue_list.hpp"
#include "store/jobs/internal/store_driver.hpp"
#include "store/postgresql/postgres_work.hpp"

namespace argiope {

class PostgresQueues final : public QueueRows {
 public:
  explicit PostgresQueues(PostgresWork& work) noexcept : work_(work) {}

  const std::vector<StoredQueue>& all() override { return list_.all(); }
  QueueId find(std::string_view name) override { return list_.find(name); }
  QueueId add(const std::string& name, const QueueConfig& config) override;
  void configure(QueueId queue, const QueueConfig& config) override;
  bool is_empty(QueueId queue) override;
  void erase(QueueId queue) override;

  std::vector<QueueCounts> counts() const;
  // So many jobs more are in that state.
  void count(QueueId queue, JobState state, int by);
  void count_done(QueueId queue);

  void load();
  void write();
  void begin() { list_.mark(); }
  void mark();
  void take_back();
  void committed();
  void drop() noexcept {
    changes_.clear();
    written_.clear();
  }

 private:
  using Counts = std::array<std::int64_t, 7>;  // by JobState; and those that have been done
  static constexpr std::size_t kEnded = 6;
  Counts& changed(QueueId queue);

  PostgresWork& work_;
  QueueList list_;
  std::vector<Counts> stored_;            // by QueueId - 1
  std::vector<Counts> changes_, marked_;  // of the present transaction
  std::vector<Counts> written_;
};

}  // namespace argiope
