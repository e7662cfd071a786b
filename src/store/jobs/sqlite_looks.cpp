#include "store/jobs/sqlite_looks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "jobs/internal/job_rules.hpp"
#include "store/jobs/internal/job_range.hpp"

namespace argiope {

using namespace job_rules;

namespace {

// Of so many the ids are read together.
constexpr std::int64_t kFewEnded = 4'000;

// A job that runs has the state of one that waits.
std::string condition_of(const JobFilter& filter) {
  switch (*filter.state) {
    case JobState::ready:
      if (!filter.due_by) return "state IN (0, 1)";
      return fmt::format("state IN (0, 1) OR (state = 2 AND due_at <= {})", to_ms(*filter.due_by));
    case JobState::delayed: return "state IN (2, 3)";
    case JobState::done: return "state = 4";
    case JobState::cancelled: return "state = 5";
    case JobState::buried: return "state = 6";
    case JobState::running: break;
  }
  return "state < 4";
}

// In the table of those that have ended. 0: of all queues.
std::string ended_condition(JobState state, QueueId queue) {
  const int number = state == JobState::done ? 4 : state == JobState::cancelled ? 5 : 6;
  const std::string queues =
      queue == 0 ? std::string("queue_id IN (SELECT queue_id FROM queues)") : fmt::format("queue_id = {}", queue);
  return fmt::format("{} AND state = {}", queues, number);
}

WaitingJob read_waiting(const SqliteStatement& row, QueueId queue_id, Shelf shelf) {
  return {static_cast<JobId>(row.number(0)),
          queue_id,
          std::string(row.text(6)),
          narrow(row.number(2)),
          from_ms(row.number(3)),
          static_cast<std::uint32_t>(row.number(4)),
          static_cast<std::uint32_t>(row.number(5)),
          shelf};
}

}  // namespace

// The fields that a lease adds to the record of a job that runs.
void SqliteLooks::add_lease(JobRecord& record, std::int64_t fence, std::int64_t flags) {
  if (has_ended(record.state) || !leases_.runs(record.id, fence)) return;
  const SqliteLeases::Lease& lease = *leases_.find(record.id);
  record.state = JobState::running;
  ++record.tally.runs;
  record.token = lease.token;
  record.lease_until = from_ms(lease.until);
  record.worker = leases_.worker_of(lease);
  record.cancel_asked = (flags & JobRow::kCancelAsked) != 0;
}

// --- windows ---------------------------------------------------------------------------------------------------------

// Two queries, because "of the same rank, or below it" as one would not be read from the index in order.
std::vector<WaitingJob> SqliteLooks::load_ranked(QueueId queue, const std::string* key, Rank after, std::size_t limit) {
  std::vector<WaitingJob> found;
  const Shelf shelf = key == nullptr ? Shelf::ready : Shelf::set_aside;
  const Query equal = key == nullptr ? Query::ready_equal : Query::aside_equal;
  const Query below = key == nullptr ? Query::ready_below : Query::aside_below;
  for (const Query query : {equal, below}) {
    SqliteUse rows = sql_.use(query);
    rows.with(queue, after.priority);
    if (query == equal) rows.with(std::min<JobId>(after.id, kMostJobId));
    if (query == below && key != nullptr) rows.with(0);
    if (key != nullptr) rows.with(*key);
    while (found.size() < limit && rows.next()) {
      if (!leases_.runs(static_cast<JobId>(rows.number(0)), rows.number(1))) {
        found.push_back(read_waiting(rows.row(), queue, shelf));
      }
    }
  }
  return found;
}

std::vector<std::string> SqliteLooks::keys_set_aside(QueueId queue_id, const std::optional<std::string>& after,
                                                     std::size_t limit) {
  std::vector<std::string> keys;
  // From key to key, past those whose jobs all run.
  while (keys.size() < limit) {
    const bool first = keys.empty() && !after;
    const std::string from = !keys.empty() ? keys.back() : after.value_or("");
    SqliteUse rows = sql_.use(first ? Query::aside_keys : Query::aside_keys_after);
    rows.with(queue_id, from);
    bool more = false;
    while (!more && rows.next()) more = !leases_.runs(static_cast<JobId>(rows.number(1)), rows.number(2));
    if (!more) break;
    keys.emplace_back(rows.text(0));
  }
  return keys;
}

std::vector<WaitingJob> SqliteLooks::load_delayed(QueueId queue_id, DueRank after, std::size_t limit) {
  std::vector<WaitingJob> found;
  SqliteUse rows = sql_.use(Query::delayed);
  rows.with(queue_id, to_ms(after.due_at), std::min<JobId>(after.id, kMostJobId));
  while (found.size() < limit && rows.next()) {
    if (!leases_.runs(static_cast<JobId>(rows.number(0)), rows.number(1))) {
      found.push_back(read_waiting(rows.row(), queue_id, Shelf::delayed));
    }
  }
  return found;
}

std::uint64_t SqliteLooks::count_ranked(QueueId queue, const std::string* key, Rank before, std::uint64_t most) {
  SqliteUse rows = sql_.use(key != nullptr ? Query::aside_from : Query::ready_from);
  rows.with(queue);
  if (key != nullptr) rows.with(*key);
  std::uint64_t count = 0;
  while (count < most && rows.next()) {
    const auto id = static_cast<JobId>(rows.number(1));
    if (!more_important({narrow(rows.number(0)), id}, before)) break;
    if (!leases_.runs(id, rows.number(2))) ++count;
  }
  return count;
}

// --- to look at ------------------------------------------------------------------------------------------------------

std::optional<JobRecord> SqliteLooks::record(JobId id) {
  if (id > kMostJobId) return std::nullopt;
  SqliteUse found = sql_.use(Query::job_record);
  if (!found.with(id).next()) return std::nullopt;
  JobRecord record = read_record(found.row(), queues_.all());
  add_lease(record, found.number(3), found.number(kFlagsColumn));
  return record;
}

JobSlice SqliteLooks::list(const JobFilter& filter) {
  QueueId queue_id = 0;
  if (!filter.queue.empty()) {
    queue_id = queues_.find(filter.queue);
    if (queue_id == 0) return {.jobs = {}, .after = filter.after, .is_last = true};
  }
  return filter.state == JobState::running ? list_running(filter) : list_others(filter, queue_id);
}

// By the job's id, which is the table's order: up to the last job that may be looked at. Those that have ended are
// found by a table of their own, where they are few, or all are to be found at once.
JobSlice SqliteLooks::list_others(const JobFilter& filter, QueueId queue_id) {
  JobSlice slice{.jobs = {}, .after = filter.after, .is_last = true, .newest = newest()};
  const JobRange all = range_of(filter);
  if (all.is_empty()) return slice;
  const bool down = filter.newest_first;
  const bool ended = filter.state && has_ended(*filter.state);
  const bool bounded = filter.most_looked < kMostJobId;
  const bool by_end = ended && (!bounded || are_few_ended(*filter.state, queue_id));
  JobRange range = all;
  if (bounded && !by_end) {
    JobId& end = down ? range.first : range.last;
    end = down ? std::max(all.first, nth_before(all.last + 1, filter.most_looked))
               : std::min(all.last, nth_after(all.first - 1, filter.most_looked));
  }
  std::string sql = std::string("SELECT ") + (filter.payloads ? kRecordColumns : kBriefColumns) +
                    " FROM jobs WHERE job_id >= ?1 AND job_id <= ?2";
  if (by_end) {
    const std::string condition = ended_condition(*filter.state, queue_id);
    sql += fmt::format(" AND job_id IN (SELECT job_id FROM ended_jobs WHERE {})", condition);
  } else {
    if (filter.state) sql += fmt::format(" AND ({})", condition_of(filter));
    if (queue_id != 0) sql += fmt::format(" AND +queue_id = {}", queue_id);
  }
  if (filter.key) sql += " AND key = ?3";
  sql += down ? " ORDER BY job_id DESC" : " ORDER BY job_id";
  SqliteStatement statement = sql_.prepare(sql);
  SqliteUse rows(sql_, statement);
  rows.with(range.first, range.last);
  if (filter.key) rows.with(*filter.key);
  std::size_t bytes = 0;
  bool full = false;
  while (!(full = slice.jobs.size() >= filter.limit || bytes >= filter.most_bytes) && rows.next()) {
    JobRecord record = read_record(rows.row(), queues_.all());
    slice.after = record.id;
    add_lease(record, rows.number(3), rows.number(kFlagsColumn));
    const bool is_wanted =
        !filter.state || is_listed_as(*filter.state, record.state, record.pending, record.due_at, filter.due_by);
    if (!is_wanted) continue;
    bytes += record.payload.size() + record.result.size();
    slice.jobs.push_back(std::move(record));
  }
  if (!full) slice.after = down ? range.first : range.last;
  slice.is_last = !full && range.first == all.first && range.last == all.last;
  const JobId top = std::min(down ? range.last : slice.after, slice.newest);
  const JobId bottom = down ? slice.after : range.first;
  const std::size_t gone_through = top < bottom ? 0 : top - bottom + 1;
  slice.looked = by_end ? slice.jobs.size() : std::min(filter.most_looked, gone_through);
  return slice;
}

// 0: there is no job.
JobId SqliteLooks::newest() {
  SqliteUse found = sql_.use(Query::job_newest);
  return found.next() ? static_cast<JobId>(found.number(0)) : 0;
}

// The id of the nth job behind `id`; kMostJobId where there are fewer.
JobId SqliteLooks::nth_after(JobId id, std::size_t n) {
  SqliteUse found = sql_.use(Query::job_after);
  return found.with(id, n - 1).next() ? static_cast<JobId>(found.number(0)) : kMostJobId;
}

// The same before `id`; 1 where there are fewer.
JobId SqliteLooks::nth_before(JobId id, std::size_t n) {
  SqliteUse found = sql_.use(Query::job_before);
  return found.with(id, n - 1).next() ? static_cast<JobId>(found.number(0)) : 1;
}

bool SqliteLooks::are_few_ended(JobState state, QueueId queue_id) {
  const std::string sql = fmt::format("SELECT count(*) FROM (SELECT 1 FROM ended_jobs WHERE {} LIMIT {})",
                                      ended_condition(state, queue_id), kFewEnded + 1);
  SqliteStatement statement = sql_.prepare(sql);
  SqliteUse count(sql_, statement);
  return count.next() && count.number(0) <= kFewEnded;
}

JobSlice SqliteLooks::list_running(const JobFilter& filter) {
  const JobRange range = range_of(filter);
  std::vector<JobId> ids = leases_.jobs_between(range.first, range.last);
  if (filter.newest_first) std::ranges::reverse(ids);
  JobSlice slice{.jobs = {}, .after = filter.after, .is_last = true, .newest = newest()};
  std::size_t bytes = 0;
  for (const JobId id : ids) {
    slice.is_last = slice.jobs.size() < filter.limit && slice.looked < filter.most_looked && bytes < filter.most_bytes;
    if (!slice.is_last) break;
    ++slice.looked;
    slice.after = id;
    auto record = this->record(id);
    if (!record || record->state != JobState::running) continue;
    if ((!filter.queue.empty() && record->queue != filter.queue) || (filter.key && record->key != *filter.key))
      continue;
    if (!filter.payloads) {
      record->payload.clear();
      record->result.clear();
    }
    bytes += record->payload.size() + record->result.size();
    slice.jobs.push_back(std::move(*record));
  }
  return slice;
}

}  // namespace argiope
