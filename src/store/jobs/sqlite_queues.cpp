#include "store/jobs/sqlite_queues.hpp"

#include <algorithm>

#include "base/internal/printable.hpp"

namespace argiope {

QueueId SqliteQueues::add(const std::string& name, const QueueConfig& config) {
  if (access_ == StoreAccess::read) {
    throw RequestRefused{{Errc::refused, "database " + path_ + ": opened for reading only"}};
  }
  const std::string json = to_json(config);
  const bool was_there = queues_.find_erased(name) != 0;
  const QueueId id = queues_.add(name, config);
  if (was_there) {
    sql_.use(Query::queue_configure).with(id, json).run();
  } else {
    sql_.use(Query::queue_add).with(id, name, json).run();
    sql_.use(Query::counts_add).with(id).run();
  }
  news_.touch(0);
  return id;
}

void SqliteQueues::configure(QueueId id, const QueueConfig& config) {
  const std::string json = to_json(config);
  sql_.use(Query::queue_configure).with(id, json).run();
  queues_.configure(id, config);
  news_.touch(0);
}

bool SqliteQueues::is_empty(QueueId id) {
  const std::vector<QueueCounts> all = counts();
  const auto its = std::ranges::find(all, id, &QueueCounts::queue);
  return its == all.end() || its->counts == StateCounts{};
}

void SqliteQueues::erase(QueueId id) {
  sql_.use(Query::queue_erase).with(id).run();
  queues_.erase(id);
  news_.touch(0);
}

// --- counts ----------------------------------------------------------------------------------------------------------

std::vector<QueueCounts> SqliteQueues::counts() {
  flush();  // those of calls that came just before, in this transaction
  std::vector<QueueCounts> all;
  SqliteUse rows = sql_.use(Query::counts);
  while (rows.next()) {
    const auto of = [&](int column) { return static_cast<std::uint64_t>(rows.number(column)); };
    all.push_back(
        {static_cast<QueueId>(of(0)),
         {.ready = of(2), .delayed = of(1), .running = of(3), .done = of(4), .buried = of(6), .cancelled = of(5)},
         of(7)});
  }
  return all;
}

SqliteQueues::Counts& SqliteQueues::changed(QueueId queue) {
  if (counts_.size() < queue) counts_.resize(queue);
  Counts& counts = counts_[queue - 1];
  counts.touched = true;
  return counts;
}

void SqliteQueues::flush() {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    Counts& counts = counts_[i];
    if (!counts.touched) continue;
    const auto of = [&](JobState state) { return counts.of[static_cast<std::size_t>(state)]; };
    sql_.use(Query::counts_change)
        .with(i + 1, of(JobState::delayed), of(JobState::ready), of(JobState::running), of(JobState::done),
              of(JobState::cancelled), of(JobState::buried), counts.ended)
        .run();
    counts = {};
  }
}

// --- transactions ----------------------------------------------------------------------------------------------------

void SqliteQueues::load() {
  queues_.clear();
  SqliteUse rows = sql_.use(Query::queues);
  while (rows.next()) {
    const auto id = static_cast<QueueId>(rows.number(0));
    auto config = parse_queue_config(rows.text(2));
    if (!config) {
      throw DatabaseFailed{{Errc::corrupt, "database " + path_ + ": the configuration of queue " +
                                               in_quotes(rows.text(1)) + ": " + config.error().message}};
    }
    queues_.add(std::string(rows.text(1)), *config);
    if (rows.number(3) != 0) queues_.erase(id);
  }
}

void SqliteQueues::mark() {
  queues_.mark();
  marked_ = counts_;
}

void SqliteQueues::take_back() {
  queues_.take_back();
  counts_ = marked_;
}

}  // namespace argiope
