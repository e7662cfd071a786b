// Queues in memory, and what follows from the rows of their jobs: shelves, counts, holders of unique names.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/jobs/internal/queue_list.hpp"
#include "store/jobs/internal/store_driver.hpp"

namespace argiope {

class MemoryQueues final : public QueueRows {
 public:
  struct MoreImportant {
    bool operator()(const Rank& a, const Rank& b) const noexcept { return more_important(a, b); }
  };
  using Ranked = std::set<Rank, MoreImportant>;
  using ByTime = std::set<std::pair<std::int64_t, JobId>>;
  struct Queue {
    StateCounts counts;
    std::uint64_t ended = 0;
    Ranked ready;
    std::map<std::string, Ranked> set_aside;
    ByTime delayed;
    std::map<RowState, ByTime> ended_jobs;
  };

  const std::vector<StoredQueue>& all() override { return queues_.all(); }
  QueueId find(std::string_view name) override { return queues_.find(name); }
  QueueId add(const std::string& name, const QueueConfig& config) override;
  void configure(QueueId queue, const QueueConfig& config) override { queues_.configure(queue, config); }
  bool is_empty(QueueId queue) override { return of(queue).counts == StateCounts{}; }
  void erase(QueueId queue) override { queues_.erase(queue); }

  Queue& of(QueueId queue) { return of_queues_[queue - 1]; }
  const std::string& name_of(QueueId queue) const { return queues_.all()[queue - 1].name; }
  // `key`: of those set aside; null: the shelf of ready ones.
  const Ranked& ranked(QueueId queue, const std::string* key);
  JobId find_unique(QueueId queue, const std::string& unique) const;
  std::vector<QueueCounts> counts() const;

  // A row is taken out before it changes, and put back after it.
  void index(const JobRow& row);
  void unindex(const JobRow& row);

  // Queues added from here on can be taken back.
  void mark() { queues_.mark(); }
  void take_back();

 private:
  QueueList queues_;
  std::vector<Queue> of_queues_;
  std::map<std::pair<QueueId, std::string>, JobId> uniques_;
};

}  // namespace argiope
