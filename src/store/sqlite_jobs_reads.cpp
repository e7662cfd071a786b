// Shelves and everything else that only looks.
#include <algorithm>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/job_tally.hpp"
#include "store/sqlite_jobs.hpp"
#include "store/sqlite_jobs_use.hpp"

namespace argiope {

using namespace job_rules;

namespace {

constexpr const char* condition_of(JobState state) noexcept {
  switch (state) {
    case JobState::ready: return "state IN (0, 1)";
    case JobState::delayed: return "state IN (2, 3)";
    case JobState::done: return "state = 4";
    case JobState::cancelled: return "state = 5";
    case JobState::buried: return "state = 6";
    case JobState::running: break;
  }
  return "state < 3";
}

}  // namespace

JobRecord SqliteJobs::read_record(const SqliteStatement& row) {
  JobRecord record;
  record.id = static_cast<JobId>(row.number(0));
  record.queue = queues_.all()[static_cast<std::size_t>(row.number(1)) - 1].name;
  record.state = state_of(static_cast<RowState>(row.number(2)));
  record.name = row.text(4);
  record.key = row.text(5);
  record.unique = row.text(6);
  record.priority = narrow(row.number(7));
  record.due_at = from_ms(row.number(8));
  record.function = row.text(9);
  record.attempts = static_cast<std::uint32_t>(row.number(10));
  record.max_attempts = static_cast<std::uint32_t>(row.number(11));
  record.expiries = static_cast<std::uint32_t>(row.number(12));
  record.pending = static_cast<std::uint32_t>(row.number(13));
  record.if_failed = row.number(14) == 0 ? DependencyPolicy::cancel : DependencyPolicy::run;
  record.created_at = from_ms(row.number(15));
  record.ended_at = from_ms(row.number(16));
  record.error = row.text(17);
  record.result = row.text(18);
  record.schedule = static_cast<ScheduleId>(row.number(19));
  record.run = static_cast<std::uint64_t>(row.number(20));
  record.tally =
      job_tally::tally_of(static_cast<std::uint64_t>(row.number(21)), record.attempts, record.expiries, false);
  record.lease_time = std::chrono::milliseconds{row.number(22)};
  record.payload = row.text(23);
  return record;
}

// What a lease adds to the record of a job that runs.
void SqliteJobs::add_lease(JobRecord& record, std::int64_t fence, std::int64_t flags) {
  if (has_ended(record.state) || !runs(record.id, fence)) return;
  const Lease& lease = *find_lease(record.id);
  record.state = JobState::running;
  ++record.tally.runs;
  record.token = lease.token;
  record.lease_until = from_ms(lease.until);
  record.worker = batches_[lease.batch].worker;
  record.cancel_asked = (flags & JobRow::kCancelAsked) != 0;
}

WaitingJob SqliteJobs::read_waiting(const SqliteStatement& row, QueueId queue_id, Shelf shelf) {
  return {static_cast<JobId>(row.number(0)),
          queue_id,
          std::string(row.text(6)),
          narrow(row.number(2)),
          from_ms(row.number(3)),
          static_cast<std::uint32_t>(row.number(4)),
          static_cast<std::uint32_t>(row.number(5)),
          shelf};
}

// --- windows ---------------------------------------------------------------------------------------------------------

// Two queries, because "of the same rank, or below it" as one would not be read from the index in order.
std::vector<WaitingJob> SqliteJobs::load_ranked(QueueId queue, const std::string* key, Rank after, std::size_t limit) {
  std::vector<WaitingJob> found;
  const Shelf shelf = key == nullptr ? Shelf::ready : Shelf::set_aside;
  const Query equal = key == nullptr ? Query::ready_equal : Query::aside_equal;
  const Query below = key == nullptr ? Query::ready_below : Query::aside_below;
  for (const Query query : {equal, below}) {
    Use rows = use(query);
    rows.with(queue, after.priority);
    if (query == equal) rows.with(std::min<JobId>(after.id, kMostJobId));
    if (query == below && key != nullptr) rows.with(0);
    if (key != nullptr) rows.with(*key);
    while (found.size() < limit && rows.next()) {
      if (!runs(static_cast<JobId>(rows.number(0)), rows.number(1))) {
        found.push_back(read_waiting(rows.row(), queue, shelf));
      }
    }
  }
  return found;
}

std::vector<std::string> SqliteJobs::keys_set_aside(QueueId queue_id, const std::optional<std::string>& after,
                                                    std::size_t limit) {
  std::vector<std::string> keys;
  // From key to key, past those whose jobs all run.
  while (keys.size() < limit) {
    const bool first = keys.empty() && !after;
    const std::string from = !keys.empty() ? keys.back() : after.value_or("");
    Use rows = use(first ? Query::aside_keys : Query::aside_keys_after);
    rows.with(queue_id, from);
    bool more = false;
    while (!more && rows.next()) more = !runs(static_cast<JobId>(rows.number(1)), rows.number(2));
    if (!more) break;
    keys.emplace_back(rows.text(0));
  }
  return keys;
}

std::vector<WaitingJob> SqliteJobs::load_delayed(QueueId queue_id, DueRank after, std::size_t limit) {
  std::vector<WaitingJob> found;
  Use rows = use(Query::delayed);
  rows.with(queue_id, to_ms(after.due_at), std::min<JobId>(after.id, kMostJobId));
  while (found.size() < limit && rows.next()) {
    if (!runs(static_cast<JobId>(rows.number(0)), rows.number(1))) {
      found.push_back(read_waiting(rows.row(), queue_id, Shelf::delayed));
    }
  }
  return found;
}

std::uint64_t SqliteJobs::count_ranked(QueueId queue, const std::string* key, Rank before, std::uint64_t most) {
  Use rows = use(key != nullptr ? Query::aside_from : Query::ready_from);
  rows.with(queue);
  if (key != nullptr) rows.with(*key);
  std::uint64_t count = 0;
  while (count < most && rows.next()) {
    const auto id = static_cast<JobId>(rows.number(1));
    if (!more_important({narrow(rows.number(0)), id}, before)) break;
    if (!runs(id, rows.number(2))) ++count;
  }
  return count;
}

// --- to look at ------------------------------------------------------------------------------------------------------

std::optional<JobRecord> SqliteJobs::record(JobId id) {
  if (id > kMostJobId) return std::nullopt;
  Use found = use(Query::job_record);
  if (!found.with(id).next()) return std::nullopt;
  JobRecord record = read_record(found.row());
  add_lease(record, found.number(3), found.number(kFlagsColumn));
  return record;
}

std::vector<Attempt> SqliteJobs::attempts(JobId id) {
  std::vector<Attempt> attempts;
  Use rows = use(Query::history);
  rows.with(id);
  while (rows.next()) {
    attempts.push_back({static_cast<std::uint32_t>(rows.number(0)), from_ms(rows.number(1)), std::string(rows.text(2)),
                        std::string(rows.text(3)), std::string(rows.text(4))});
  }
  return attempts;
}

std::vector<JobRecord> SqliteJobs::list(const JobFilter& filter) {
  const std::size_t limit = filter.limit;
  std::vector<JobRecord> found;
  QueueId queue_id = 0;
  if (!filter.queue.empty()) {
    queue_id = queues_.find(filter.queue);
    if (queue_id == 0) return found;
  }
  if (filter.state == JobState::running) return list_running(filter, limit);
  // By the job's id, which is the table's order; those that have ended are found by a table of their own.
  const bool ended = filter.state && has_ended(*filter.state);
  const std::string state = filter.state ? condition_of(*filter.state) : "";
  std::string sql = std::string("SELECT ") + kRecordColumns + (filter.payloads ? ", payload" : ", NULL") +
                    ", flags FROM jobs WHERE job_id > ?";
  if (ended) {
    sql += " AND job_id IN (SELECT job_id FROM ended_jobs WHERE " + state;
    sql += queue_id != 0 ? " AND queue_id = ?)" : " AND queue_id IN (SELECT queue_id FROM queues))";
  } else {
    if (filter.state) sql += " AND " + state;
    if (queue_id != 0) sql += " AND +queue_id = ?";
  }
  if (filter.key) sql += " AND key = ?";
  sql += " ORDER BY job_id";
  if (has_gathered_) write_gathered();
  auto statement = database_.prepare(sql);
  if (!statement) throw DatabaseFailed{std::move(statement.error())};
  Use rows(*this, *statement);
  rows.with(std::min<JobId>(filter.after, kMostJobId));
  if (queue_id != 0) rows.with(queue_id);
  if (filter.key) rows.with(*filter.key);
  while (found.size() < limit && rows.next()) {
    JobRecord record = read_record(rows.row());
    add_lease(record, rows.number(3), rows.number(kFlagsColumn));
    if (!filter.state || record.state == *filter.state) found.push_back(std::move(record));
  }
  return found;
}

std::vector<JobRecord> SqliteJobs::list_running(const JobFilter& filter, std::size_t limit) {
  (void)find_lease(0);
  std::vector<JobId> ids;
  for (const auto& [id, lease] : leases_) {
    if (id > filter.after) ids.push_back(id);
  }
  std::ranges::sort(ids);
  std::vector<JobRecord> found;
  for (const JobId id : ids) {
    if (found.size() == limit) break;
    auto record = this->record(id);
    if (!record || record->state != JobState::running) continue;
    if ((!filter.queue.empty() && record->queue != filter.queue) || (filter.key && record->key != *filter.key))
      continue;
    if (!filter.payloads) record->payload.clear();
    found.push_back(std::move(*record));
  }
  return found;
}

std::vector<QueueCounts> SqliteJobs::counts() {
  if (writing_) flush();  // those of calls that came just before, in this transaction
  std::vector<QueueCounts> all;
  Use rows = use(Query::counts);
  while (rows.next()) {
    const auto of = [&](int column) { return static_cast<std::uint64_t>(rows.number(column)); };
    all.push_back(
        {static_cast<QueueId>(of(0)),
         {.ready = of(2), .delayed = of(1), .running = of(3), .done = of(4), .buried = of(6), .cancelled = of(5)},
         of(7)});
  }
  return all;
}

}  // namespace argiope
