#include "store/redis/redis_queues.hpp"

#include <map>

#include "base/internal/printable.hpp"
#include "store/redis/redis_keys.hpp"
#include "store/redis/row_text.hpp"

namespace argiope {
namespace {

constexpr JobState kCountedStates[] = {JobState::ready, JobState::delayed, JobState::running,
                                       JobState::done,  JobState::buried,  JobState::cancelled};

}  // namespace

QueueId RedisQueues::add(const std::string& name, const QueueConfig& config) {
  if (access_ == StoreAccess::read) throw RequestRefused{{Errc::refused, "redis: opened for reading only"}};
  const QueueId id = list_.add(name, config);
  write(id, name, config, false);
  return id;
}

void RedisQueues::configure(QueueId queue, const QueueConfig& config) {
  list_.configure(queue, config);
  write(queue, list_.all()[queue - 1].name, config, false);
}

bool RedisQueues::is_empty(QueueId queue) {
  want_counts(queue);
  rows_.fetch();
  return counts_of(queue).counts == StateCounts{};
}

void RedisQueues::erase(QueueId queue) {
  const StoredQueue its = list_.all()[queue - 1];
  write(queue, its.name, its.config, true);
  list_.erase(queue);
}

void RedisQueues::write(QueueId queue, const std::string& name, const QueueConfig& config, bool is_erased) {
  rows_.set(RedisTable::queues, std::to_string(queue), row_text(name, to_json(config), is_erased));
  rows_.tell(RedisTable::jobs, 0);
}

const std::string& RedisQueues::name_of(QueueId queue) {
  if (queue == 0 || queue > list_.all().size())
    throw DatabaseFailed{{Errc::corrupt, fmt::format("redis: a row names queue {}, which is not there", queue)}};
  return list_.all()[queue - 1].name;
}

void RedisQueues::load() {
  list_.clear();
  std::map<QueueId, std::string> in_order;
  for (auto& [id, row] : rows_.all(RedisTable::queues)) {
    in_order[static_cast<QueueId>(redis_keys::number_in(id))] = std::move(row);
  }
  for (const auto& [id, row] : in_order) {
    std::string name, json;
    bool is_erased = false;
    RowText<false> io(row);
    io(name, json, is_erased);
    const auto config = parse_queue_config(json);
    if (!config) {
      throw DatabaseFailed{
          {Errc::corrupt, "redis: the configuration of queue " + in_quotes(name) + ": " + config.error().message}};
    }
    // Rows name queues by number, and there is none between them that is not there.
    if (list_.add(name, *config) != id) {
      throw DatabaseFailed{
          {Errc::corrupt, fmt::format("redis: queue {} is not where its number says", in_quotes(name))}};
    }
    if (is_erased) list_.erase(id);
  }
}

void RedisQueues::want_counts(QueueId queue) {
  for (const JobState state : kCountedStates) {
    rows_.want(RedisTable::counts, fmt::format("{}:{}", queue, to_string(state)));
  }
  rows_.want(RedisTable::counts, fmt::format("{}:ended", queue));
}

QueueCounts RedisQueues::counts_of(QueueId queue) {
  QueueCounts counts{.queue = queue, .counts = {}, .ended = counted(queue, "ended")};
  for (const JobState state : kCountedStates) counts.counts.of(state) = counted(queue, to_string(state));
  return counts;
}

std::vector<QueueCounts> RedisQueues::counts() {
  std::vector<QueueCounts> all;
  for (const StoredQueue& queue : list_.all()) want_counts(queue.id);
  rows_.fetch();
  for (std::size_t i = 0; i < list_.all().size(); ++i) all.push_back(counts_of(static_cast<QueueId>(i + 1)));
  return all;
}

}  // namespace argiope
