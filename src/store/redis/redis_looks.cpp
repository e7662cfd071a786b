// Looks at jobs of a store on Redis besides their shelves: records and lists of them.
#include <algorithm>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/job_tally.hpp"
#include "store/jobs/internal/job_range.hpp"
#include "store/redis/redis_jobs.hpp"
#include "store/redis/redis_keys.hpp"

namespace argiope {

using namespace job_rules;

void RedisJobs::want_texts(const Job& job) {
  const std::string field = std::to_string(job.row.id);
  if (job.payload_bytes > 0) rows_.want(RedisTable::payloads, field);
  if (job.result_bytes > 0) rows_.want(RedisTable::results, field);
  if (job.has_error) rows_.want(RedisTable::errors, field);
}

JobRecord RedisJobs::record_of(const Job& job, bool with_payloads) {
  const JobRow& row = job.row;
  const auto text = [&](RedisTable table, bool is_there) { return is_there ? text_of(table, row.id) : std::string(); };
  const Lease lease = lease_of(row.id).value_or(Lease{});
  return {.id = row.id,
          .name = job.name,
          .queue = queues_.name_of(row.queue),
          .key = row.key,
          .unique = row.unique,
          .state = row.shown_state(),
          .priority = row.priority,
          .due_at = from_ms(row.due_ms),
          .function = job.function,
          .payload = text(RedisTable::payloads, with_payloads && job.payload_bytes > 0),
          .attempts = row.attempts,
          .max_attempts = job.max_attempts,
          .expiries = row.expiries,
          .tally = job_tally::tally_of(row.tally, row.attempts, row.expiries, row.runs()),
          .lease_time = std::chrono::milliseconds{job.lease_ms},
          .pending = row.pending,
          .if_failed = row.cancelled_with_others ? DependencyPolicy::cancel : DependencyPolicy::run,
          .created_at = job.created_at,
          .ended_at = from_ms(row.ended_ms),
          .result = text(RedisTable::results, with_payloads && job.result_bytes > 0),
          .error = text(RedisTable::errors, job.has_error),
          .token = row.token,
          .worker = lease.worker,
          .lease_until = lease.until,
          .cancel_asked = row.runs() && (row.flags & JobRow::kCancelAsked) != 0,
          .schedule = row.schedule,
          .run = row.run};
}

std::optional<JobRecord> RedisJobs::record(JobId id) {
  if (id > kMostJobId) return std::nullopt;
  const auto job = read(id);
  if (!job) return std::nullopt;
  want_texts(*job);
  rows_.fetch();
  return record_of(*job, true);
}

// The ids come in pieces, each with its rows; which jobs are wanted the rows say, and how many bytes they have.
JobSlice RedisJobs::list(const JobFilter& filter) {
  constexpr std::size_t kAtOnce = 256;
  JobSlice slice{.jobs = {}, .after = filter.after, .is_last = true};
  const QueueId queue = queues_.find(filter.queue);
  if (!filter.queue.empty() && queue == 0) return slice;
  if (const auto newest = rows_.range("ids", {.limit = 1, .backwards = true}); !newest.empty()) {
    slice.newest = redis_keys::number_in(newest.front());
  }
  const JobRange ids = range_of(filter);
  if (ids.is_empty()) return slice;
  std::vector<Job> wanted;
  std::size_t bytes = 0;
  // False: the slice ends before that job.
  const auto look_at = [&](JobId id) {
    slice.is_last = wanted.size() < filter.limit && slice.looked < filter.most_looked && bytes < filter.most_bytes;
    if (!slice.is_last) return false;
    ++slice.looked;
    slice.after = id;
    auto job = read(id);
    if (!job || (queue != 0 && job->row.queue != queue) || (filter.key && job->row.key != *filter.key)) return true;
    const bool is_wanted = !filter.state || is_listed_as(*filter.state, job->row.shown_state(), job->row.pending,
                                                         from_ms(job->row.due_ms), filter.due_by);
    if (!is_wanted) return true;
    if (filter.payloads) bytes += job->payload_bytes + job->result_bytes;
    wanted.push_back(std::move(*job));
    return true;
  };
  RedisRange range{.after = redis_keys::digits(ids.first - 1),
                   .before = redis_keys::digits(ids.last + 1),
                   .limit = kAtOnce,
                   .backwards = filter.newest_first};
  for (bool goes_on = true; goes_on;) {
    const std::vector<std::string> members = rows_.range("ids", range);
    for (const std::string& member : members) want(redis_keys::number_in(member));
    rows_.fetch();
    goes_on =
        std::ranges::all_of(members, [&](const auto& member) { return look_at(redis_keys::number_in(member)); }) &&
        members.size() == kAtOnce;
    if (!members.empty()) (filter.newest_first ? range.before : range.after) = members.back();
  }
  for (const Job& job : wanted) {
    if (filter.payloads)
      want_texts(job);
    else if (job.has_error)
      rows_.want(RedisTable::errors, std::to_string(job.row.id));
  }
  rows_.fetch();
  for (const Job& job : wanted) slice.jobs.push_back(record_of(job, filter.payloads));
  return slice;
}

}  // namespace argiope
