#include "store/postgresql/postgres_looks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/job_tally.hpp"
#include "store/jobs/internal/job_range.hpp"
#include "store/postgresql/postgres_records.hpp"

namespace argiope {

using namespace job_rules;

namespace {

constexpr std::string_view kWaiting =
    "SELECT job_id, key, rank, due_at, attempts, expiries FROM jobs j WHERE partition = 0 AND ";
constexpr std::string_view kIsNotLeased =
    " AND (SELECT l.token FROM leases l WHERE l.partition = 0 AND l.job_id = j.job_id) IS NULL";

std::vector<WaitingJob> read_waiting_jobs(const PostgresRows& rows, QueueId queue, Shelf shelf) {
  std::vector<WaitingJob> found;
  for (int i = 0; i < rows.size(); ++i) {
    found.push_back({static_cast<JobId>(rows.number(i, 0)), queue, std::string(rows.text(i, 1)),
                     static_cast<std::int32_t>(rows.number(i, 2)), from_ms(rows.number(i, 3)),
                     static_cast<std::uint32_t>(rows.number(i, 4)), static_cast<std::uint32_t>(rows.number(i, 5)),
                     shelf});
  }
  return found;
}

// As is_listed_as() says. $3: by when delayed ones are due; the least number: they are not asked.
std::string_view condition_of(JobState state) {
  switch (state) {
    case JobState::ready: return "l.token IS NULL AND (j.state IN (0, 1) OR (j.state = 2 AND j.due_at <= $3))";
    case JobState::delayed: return "l.token IS NULL AND (j.state = 3 OR (j.state = 2 AND j.due_at > $3))";
    case JobState::running: return "l.token IS NOT NULL";
    case JobState::done: return "j.state = 4";
    case JobState::cancelled: return "j.state = 5";
    case JobState::buried: break;
  }
  return "j.state = 6";
}

std::int64_t bounded(std::uint64_t number) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(number, kMostJobId + 1));
}

}  // namespace

JobRecord read_postgres_record(const PostgresRows& rows, int row, const std::vector<StoredQueue>& queues,
                               bool with_lease) {
  const auto number = [&](int column) { return rows.number(row, column); };
  const auto text = [&](int column) { return std::string(rows.text(row, column)); };
  JobRecord record;
  record.id = static_cast<JobId>(number(0));
  record.queue = queues[static_cast<std::size_t>(number(kPostgresQueueColumn)) - 1].name;
  record.state = state_of(static_cast<RowState>(number(2)));
  record.name = text(3);
  record.key = text(4);
  record.unique = text(5);
  record.priority = static_cast<std::int32_t>(number(6));
  record.due_at = from_ms(number(7));
  record.function = text(8);
  record.attempts = static_cast<std::uint32_t>(number(9));
  record.max_attempts = static_cast<std::uint32_t>(number(10));
  record.expiries = static_cast<std::uint32_t>(number(11));
  record.pending = static_cast<std::uint32_t>(number(12));
  record.if_failed = number(13) == 0 ? DependencyPolicy::cancel : DependencyPolicy::run;
  record.created_at = from_ms(number(14));
  record.ended_at = from_ms(number(15));
  record.error = text(16);
  record.schedule = static_cast<ScheduleId>(number(17));
  record.run = static_cast<std::uint64_t>(number(18));
  const bool runs = with_lease && !rows.is_null(row, kPostgresTokenColumn);
  record.tally = job_tally::tally_of(static_cast<std::uint64_t>(number(19)), record.attempts, record.expiries, runs);
  record.lease_time = std::chrono::milliseconds{number(kPostgresLeaseTimeColumn)};
  record.result = text(kPostgresResultColumn);
  record.payload = text(kPostgresPayloadColumn);
  if (!runs) return record;
  record.state = JobState::running;
  record.token = static_cast<std::uint64_t>(number(kPostgresTokenColumn));
  record.lease_until = from_ms(number(kPostgresTokenColumn + 1));
  record.worker = text(kPostgresTokenColumn + 2);
  record.cancel_asked = (number(kPostgresFlagsColumn) & JobRow::kCancelAsked) != 0;
  return record;
}

// --- windows ---------------------------------------------------------------------------------------------------------

// Two queries, because "of the same rank, or below it" as one would not be read from the index in order.
std::vector<WaitingJob> PostgresLooks::load_ranked(QueueId queue, const std::string* key, Rank after,
                                                   std::size_t limit) {
  const std::string from = std::string(kWaiting) + (key == nullptr ? "state = 0" : "state = 1 AND key = $5") +
                           " AND queue_id = $1" + std::string(kIsNotLeased);
  const std::string sql = fmt::format(
      "({0} AND rank = $2 AND job_id > $3 ORDER BY job_id LIMIT $4) UNION ALL ({0} AND rank < $2 ORDER BY rank "
      "DESC, job_id LIMIT $4) LIMIT $4",
      from);
  return read_waiting_jobs(
      key == nullptr ? work_.look(sql, PostgresValues(queue, after.priority, bounded(after.id), bounded(limit)))
                     : work_.look(sql, PostgresValues(queue, after.priority, bounded(after.id), bounded(limit), *key)),
      queue, key == nullptr ? Shelf::ready : Shelf::set_aside);
}

std::uint64_t PostgresLooks::count_ranked(QueueId queue, const std::string* key, Rank before, std::uint64_t most) {
  const std::string sql = "SELECT count(*) FROM (" + std::string(kWaiting) +
                          (key == nullptr ? "state = 0" : "state = 1 AND key = $5") +
                          " AND queue_id = $1 AND rank >= $2 AND (rank > $2 OR job_id < $3)" +
                          std::string(kIsNotLeased) + " ORDER BY rank DESC, job_id LIMIT $4) AS before";
  const PostgresRows rows =
      key == nullptr ? work_.look(sql, PostgresValues(queue, before.priority, bounded(before.id), bounded(most)))
                     : work_.look(sql, PostgresValues(queue, before.priority, bounded(before.id), bounded(most), *key));
  return static_cast<std::uint64_t>(rows.number(0, 0));
}

// From key to key, past those whose jobs all run.
std::vector<std::string> PostgresLooks::keys_set_aside(QueueId queue, const std::optional<std::string>& after,
                                                       std::size_t limit) {
  static const std::string kKeys = fmt::format(
      "WITH RECURSIVE keys AS ((SELECT key FROM jobs j WHERE partition = 0 AND queue_id = $1 AND state = 1 AND "
      "($3::bigint = 0 OR key "
      "> $2){0} ORDER BY key LIMIT 1) UNION ALL SELECT (SELECT j.key FROM jobs j WHERE j.partition = 0 AND j.queue_id "
      "= $1 "
      "AND j.state = 1 AND j.key > keys.key{0} ORDER BY j.key LIMIT 1) FROM keys WHERE keys.key IS NOT NULL) SELECT "
      "key FROM "
      "keys WHERE key IS NOT NULL LIMIT $4",
      kIsNotLeased);
  const PostgresRows rows = work_.look(kKeys, PostgresValues(queue, after.value_or(""), after ? 1 : 0, bounded(limit)));
  std::vector<std::string> keys;
  for (int i = 0; i < rows.size(); ++i) keys.emplace_back(rows.text(i, 0));
  return keys;
}

std::vector<WaitingJob> PostgresLooks::load_delayed(QueueId queue, DueRank after, std::size_t limit) {
  static const std::string kDelayed = std::string(kWaiting) +
                                      "state = 2 AND queue_id = $1 AND (due_at, job_id) > ($2::bigint, $3::bigint)" +
                                      std::string(kIsNotLeased) + " ORDER BY due_at, job_id LIMIT $4";
  return read_waiting_jobs(
      work_.look(kDelayed, PostgresValues(queue, to_ms(after.due_at), bounded(after.id), bounded(limit))), queue,
      Shelf::delayed);
}

// --- to look at ------------------------------------------------------------------------------------------------------

std::optional<JobRecord> PostgresLooks::record(JobId id) {
  if (id > kMostJobId) return std::nullopt;
  static const std::string kRecord = fmt::format(
      "SELECT {}, j.result, j.payload, l.token, l.until, l.worker FROM jobs j LEFT JOIN leases l USING (partition, "
      "job_id) "
      "WHERE partition = 0 AND job_id = $1",
      kPostgresRecord);
  const PostgresRows rows = work_.look(kRecord, PostgresValues(id));
  return rows.size() == 0 ? std::nullopt : std::optional(read_postgres_record(rows, 0, queues_.all(), true));
}

// By the job's id, up to the last job that may be looked at.
JobSlice PostgresLooks::list(const JobFilter& filter) {
  JobSlice slice{.jobs = {}, .after = filter.after, .is_last = true};
  const QueueId queue = filter.queue.empty() ? 0 : queues_.find(filter.queue);
  if (!filter.queue.empty() && queue == 0) return slice;
  slice.newest = static_cast<JobId>(
      work_.look("SELECT coalesce(max(job_id), 0)::bigint FROM jobs WHERE partition = 0").number(0, 0));
  const JobRange all = range_of(filter);
  if (all.is_empty()) return slice;
  const bool down = filter.newest_first;
  JobRange range = all;
  if (filter.most_looked < kMostJobId) {
    const std::string sql = fmt::format(
        "SELECT job_id FROM jobs WHERE partition = 0 AND job_id >= $1 AND job_id <= $2 ORDER BY job_id {} OFFSET $3 "
        "LIMIT 1",
        down ? "DESC" : "ASC");
    const PostgresRows last = work_.look(sql, PostgresValues(all.first, all.last, filter.most_looked - 1));
    if (last.size() == 1) (down ? range.first : range.last) = static_cast<JobId>(last.number(0, 0));
  }
  const std::string texts = filter.payloads ? "j.result AS r, j.payload AS p" : "''::bytea AS r, ''::bytea AS p";
  const std::string sql = fmt::format(
      "SELECT {0}, j.r, j.p, j.token, j.until, j.worker FROM (SELECT j.*, l.token, l.until, l.worker, {1}, "
      "sum(octet_length({2}) + octet_length({3})) OVER (ORDER BY j.job_id {4} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 "
      "PRECEDING) AS before FROM jobs j LEFT JOIN leases l USING (partition, job_id) WHERE partition = 0 AND job_id >= "
      "$1 AND "
      "job_id <= $2 AND ($4::bigint = 0 OR j.queue_id = $4) AND ($7::bigint = 0 OR j.key = $8) AND $3::bigint IS NOT "
      "NULL AND {5} ORDER BY job_id {4} LIMIT "
      "$5) j WHERE coalesce(before, 0) < $6 ORDER BY job_id {4}",
      kPostgresRecord, texts, filter.payloads ? "j.result" : "''::bytea", filter.payloads ? "j.payload" : "''::bytea",
      down ? "DESC" : "ASC", filter.state ? condition_of(*filter.state) : "true");
  const std::int64_t due_by = filter.due_by ? to_ms(*filter.due_by) : std::numeric_limits<std::int64_t>::min();
  const PostgresRows rows =
      work_.look(sql, PostgresValues(range.first, range.last, due_by, queue, bounded(filter.limit),
                                     bounded(filter.most_bytes), filter.key ? 1 : 0, filter.key.value_or("")));
  std::size_t bytes = 0;
  for (int i = 0; i < rows.size(); ++i) {
    slice.jobs.push_back(read_postgres_record(rows, i, queues_.all(), true));
    slice.after = slice.jobs.back().id;
    bytes += slice.jobs.back().payload.size() + slice.jobs.back().result.size();
  }
  const bool full = slice.jobs.size() >= filter.limit || bytes >= filter.most_bytes;
  if (!full) slice.after = down ? range.first : range.last;
  slice.is_last = !full && range.first == all.first && range.last == all.last;
  const JobId top = std::min(down ? range.last : slice.after, slice.newest);
  const JobId bottom = down ? slice.after : range.first;
  slice.looked = std::min<std::size_t>(filter.most_looked, top < bottom ? 0 : top - bottom + 1);
  return slice;
}

}  // namespace argiope
