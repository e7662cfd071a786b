#include "store/postgresql/postgres_queues.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/internal/printable.hpp"

namespace argiope {

QueueId PostgresQueues::add(const std::string& name, const QueueConfig& config) {
  if (work_.access() == StoreAccess::read)
    throw RequestRefused{{Errc::refused, work_.name() + ": opened for reading only"}};
  const QueueId id = list_.add(name, config);
  work_.later(
      "INSERT INTO queues (partition, queue_id, name, config) VALUES (0, $1, $2, $3) ON CONFLICT (partition, queue_id) "
      "DO "
      "UPDATE SET config = excluded.config, erased = 0",
      PostgresValues(id, name, to_json(config)));
  work_.touch(false, 0);
  return id;
}

void PostgresQueues::configure(QueueId id, const QueueConfig& config) {
  list_.configure(id, config);
  work_.later("UPDATE queues SET config = $2 WHERE partition = 0 AND queue_id = $1",
              PostgresValues(id, to_json(config)));
  work_.touch(false, 0);
}

bool PostgresQueues::is_empty(QueueId id) {
  const std::vector<QueueCounts> all = counts();
  const auto its = std::ranges::find(all, id, &QueueCounts::queue);
  return its == all.end() || its->counts == StateCounts{};
}

void PostgresQueues::erase(QueueId id) {
  list_.erase(id);
  work_.later("UPDATE queues SET erased = 1 WHERE partition = 0 AND queue_id = $1", PostgresValues(id));
  work_.touch(false, 0);
}

// --- counts ----------------------------------------------------------------------------------------------------------

std::vector<QueueCounts> PostgresQueues::counts() const {
  std::vector<QueueCounts> all;
  for (std::size_t i = 0; i < list_.all().size(); ++i) {
    Counts sum{};
    for (const auto* part : {&stored_, &written_, &changes_}) {
      for (std::size_t state = 0; i < part->size() && state < sum.size(); ++state) sum[state] += (*part)[i][state];
    }
    QueueCounts& of = all.emplace_back();
    of.queue = static_cast<QueueId>(i + 1);
    for (std::size_t state = 0; state < kEnded; ++state)
      of.counts.of(static_cast<JobState>(state)) = static_cast<std::uint64_t>(sum[state]);
    of.ended = static_cast<std::uint64_t>(sum[kEnded]);
  }
  return all;
}

PostgresQueues::Counts& PostgresQueues::changed(QueueId queue) {
  if (changes_.size() < queue) changes_.resize(queue);
  return changes_[queue - 1];
}

void PostgresQueues::count(QueueId queue, JobState state, int by) {
  changed(queue)[static_cast<std::size_t>(state)] += by;
}
void PostgresQueues::count_done(QueueId queue) { ++changed(queue)[kEnded]; }

// --- transactions ----------------------------------------------------------------------------------------------------

void PostgresQueues::load() {
  list_.clear();
  stored_.clear();
  drop();
  written_.clear();
  const auto answers =
      work_.read({{"SELECT queue_id, name, config, erased, delayed, ready, running, done, cancelled, buried, "
                   "ended FROM queues WHERE partition = 0 ORDER BY queue_id",
                   PostgresValues()}});
  const PostgresRows& rows = answers.at(0);
  for (int i = 0; i < rows.size(); ++i) {
    const auto config = parse_queue_config(rows.text(i, 2));
    if (!config) {
      work_.failed(Errc::corrupt, fmt::format("the configuration of queue {}: {}", in_quotes(rows.text(i, 1)),
                                              config.error().message));
    }
    const QueueId id = list_.add(std::string(rows.text(i, 1)), *config);
    if (rows.number(i, 3) != 0) list_.erase(id);
    Counts& counts = stored_.emplace_back();
    for (std::size_t state = 0; state < counts.size(); ++state)
      counts[state] = rows.number(i, 4 + static_cast<int>(state));
  }
  begin();
}

void PostgresQueues::write() {
  PostgresColumn ids;
  std::array<PostgresColumn, 7> columns;
  written_.resize(std::max(written_.size(), changes_.size()));
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    if (changes_[i] == Counts{}) continue;
    ids.add(i + 1);
    for (std::size_t state = 0; state < columns.size(); ++state) {
      columns[state].add(changes_[i][state]);
      written_[i][state] += changes_[i][state];
    }
  }
  changes_.clear();
  if (ids.empty()) return;
  work_.write(
      "UPDATE queues q SET delayed = q.delayed + n.a, ready = q.ready + n.b, running = q.running + n.c, done = q.done "
      "+ n.d, "
      "cancelled = q.cancelled + n.e, buried = q.buried + n.f, ended = q.ended + n.g FROM unnest($1::bigint[], "
      "$2::bigint[], "
      "$3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[]) AS n(id, a, b, c, d, e, f, "
      "g) "
      "WHERE q.partition = 0 AND q.queue_id = n.id",
      PostgresValues(ids, columns[0], columns[1], columns[2], columns[3], columns[4], columns[5], columns[6]));
}

void PostgresQueues::mark() {
  list_.mark();
  marked_ = changes_;
}

void PostgresQueues::take_back() {
  list_.take_back();
  changes_ = marked_;
}

void PostgresQueues::committed() {
  stored_.resize(std::max(stored_.size(), written_.size()));
  for (std::size_t i = 0; i < written_.size(); ++i) {
    for (std::size_t state = 0; state < written_[i].size(); ++state) stored_[i][state] += written_[i][state];
  }
  written_.clear();
}

}  // namespace argiope
