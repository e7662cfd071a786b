// Rows of jobs, and what is kept beside them.
#include <algorithm>

#include "jobs/internal/job_rules.hpp"
#include "store/jobs/sqlite_jobs.hpp"
#include "store/jobs/sqlite_jobs_use.hpp"

namespace argiope {

using namespace job_rules;

std::optional<JobRow> SqliteJobs::load(JobId id) {
  Use found = use(Query::job_core);
  if (!found.with(id).next()) return std::nullopt;
  JobRow row;
  row.id = id;
  row.queue = static_cast<QueueId>(found.number(0));
  row.state = static_cast<RowState>(found.number(1));
  row.rank = narrow(found.number(2));
  row.priority = narrow(found.number(3));
  row.due_ms = found.number(4);
  row.attempts = static_cast<std::uint32_t>(found.number(5));
  row.expiries = static_cast<std::uint32_t>(found.number(6));
  row.pending = static_cast<std::uint32_t>(found.number(7));
  row.cancelled_with_others = found.number(8) == 0;
  row.flags = found.number(9);
  row.fence = static_cast<std::uint64_t>(found.number(10));
  row.ended_ms = found.number(11);
  row.key = found.text(12);
  row.unique = found.text(13);
  row.schedule = static_cast<ScheduleId>(found.number(14));
  row.run = static_cast<std::uint64_t>(found.number(15));
  row.tally = static_cast<std::uint64_t>(found.number(16));
  if (is_leasable(row.state)) row.token = token_of(id, found.number(10));
  return row;
}

void SqliteJobs::insert(const JobRow& row, const NewJob& wanted, WallTime now) {
  gather(row, wanted, now);
  if (!wanted.name.empty()) use(Query::name_add).with(wanted.name, row.id).run();
  if (!wanted.unique.empty()) use(Query::unique_add).with(row.queue, wanted.unique, row.id).run();
  count(row.queue, state_of(row.state), 1);
  touch(row.id);
}

void SqliteJobs::save(const JobRow& before, const JobRow& after) {
  if (before.shown_state() != after.shown_state()) {
    count(before.queue, before.shown_state(), -1);
    count(after.queue, after.shown_state(), 1);
    if (after.state == RowState::done) ++counts_of(after.queue).ended;
  }
  use(Query::job_update)
      .with(after.id, after.state, after.rank, after.priority)
      .with_or_null(after.due_ms, after.attempts, after.expiries, after.pending, after.flags, after.fence,
                    after.ended_ms)
      .with(after.key)
      .with_or_null(after.unique, after.tally)
      .run();
  const bool keeps_unique = before.holds_unique() && after.holds_unique();
  if (before.holds_unique() && !keeps_unique)
    use(Query::unique_delete).with(before.queue, before.unique, before.id).run();
  if (after.holds_unique() && !keeps_unique) use(Query::unique_add).with(after.queue, after.unique, after.id).run();
  if (before.has_ended()) use(Query::ended_delete).with(before.queue, before.state, before.ended_ms, before.id).run();
  if (after.has_ended()) use(Query::ended_add).with(after.queue, after.state, after.ended_ms, after.id).run();
  if (before.runs() && !after.runs()) set_lease(after.id, std::nullopt);
  if (const auto lease = leases_.find(after.id); lease != leases_.end()) lease->second.flags = after.flags;
  touch(after.id);
}

void SqliteJobs::erase_row(JobId id, std::int64_t flags) {
  if ((flags & (JobRow::kHasHistory | JobRow::kHasNames)) == 0) return gather_done(id);
  if ((flags & JobRow::kHasHistory) != 0) use(Query::history_delete).with(id).run();
  if ((flags & JobRow::kHasNames) != 0) {
    Use names = use(Query::job_names);
    if (names.with(id).next()) {
      const auto queue = names.number(1);
      if (!names.text(0).empty()) use(Query::name_delete).with(names.text(0)).run();
      if (!names.text(2).empty()) use(Query::unique_delete).with(queue, names.text(2), id).run();
    }
  }
  use(Query::job_delete).with(id).run();
}

void SqliteJobs::erase(const JobRow& row) {
  erase_row(row.id, row.flags);
  if (row.has_ended()) use(Query::ended_delete).with(row.queue, row.state, row.ended_ms, row.id).run();
  count(row.queue, row.shown_state(), -1);
  if (row.runs()) set_lease(row.id, std::nullopt);
  touch(row.id);
}

// What the owner knows of a lease says where the job is and what else there is of it.
std::optional<ErasedJob> SqliteJobs::erase_done(JobId id, std::uint64_t token) {
  const Lease* lease = find_lease(id);
  if (lease == nullptr || lease->token != token) return std::nullopt;
  QueueId queue = lease->queue;
  std::int64_t flags = lease->flags;
  ErasedJob erased;
  if (queue == 0 || (flags & JobRow::kIsRun) != 0) {
    Use found = use(Query::job_brief);
    if (!found.with(id).next()) failed(SQLITE_CORRUPT);
    queue = static_cast<QueueId>(found.number(0));
    flags = found.number(1);
    erased.schedule = static_cast<ScheduleId>(found.number(2));
    erased.run = static_cast<std::uint64_t>(found.number(3));
  }
  erased.has_dependants = (flags & JobRow::kHasDependants) != 0;
  erase_row(id, flags);
  count(queue, JobState::running, -1);
  ++counts_of(queue).ended;
  set_lease(id, std::nullopt);
  return erased;
}

bool SqliteJobs::keep_done(JobId id, std::uint64_t token, std::int64_t ended_ms) {
  const Lease* lease = find_lease(id);
  if (lease == nullptr || lease->token != token) return false;
  const QueueId queue = lease->queue;
  if (queue == 0 || lease->flags != 0 || !lease->is_first_run || access() != StoreAccess::own) return false;
  gather_kept({id, token, ended_ms});
  count(queue, JobState::running, -1);
  count(queue, JobState::done, 1);
  ++counts_of(queue).ended;
  set_lease(id, std::nullopt);
  return true;
}

// The owner does not hear of it: its windows hold nothing that has ended.
std::vector<JobId> SqliteJobs::erase_ended(QueueId queue, JobState state, WallTime before, std::size_t limit) {
  struct Old {
    JobId id;
    std::int64_t ended_ms;
    std::int64_t flags;
  };
  std::vector<Old> old;
  {
    Use rows = use(Query::jobs_ended);
    rows.with(queue, row_state(state), to_ms(before),
              static_cast<std::int64_t>(std::min<std::size_t>(limit, std::numeric_limits<std::int64_t>::max())));
    while (rows.next()) old.push_back({static_cast<JobId>(rows.number(0)), rows.number(1), rows.number(2)});
  }
  std::vector<JobId> erased;
  erased.reserve(old.size());
  for (const Old& job : old) erase_row(job.id, job.flags);
  for (const Old& job : old) {
    use(Query::ended_delete).with(queue, row_state(state), job.ended_ms, job.id).run();
    count(queue, state, -1);
    erased.push_back(job.id);
  }
  return erased;
}

void SqliteJobs::add_flags(JobId id, std::int64_t flags) {
  use(Query::job_set_flags).with(id, flags).run();
  if (const auto lease = leases_.find(id); lease != leases_.end()) lease->second.flags |= flags;
}

// --- what rows do not say --------------------------------------------------------------------------------------------

void SqliteJobs::write_work(JobId id, const NewJob& job) {
  use(Query::job_set_work).with(id).with_or_null(job.function, job.payload, lease_ms(job.lease_time)).run();
}

void SqliteJobs::write_attempt(JobId id, const Attempt& attempt, const std::string* result) {
  std::int64_t last = 0;
  {
    Use found = use(Query::history_last);
    if (found.with(id).next()) last = found.number(0);
  }
  use(Query::history_add)
      .with(id, last + 1, attempt.number, to_ms(attempt.ended_at), attempt.outcome)
      .with_or_null(attempt.error, attempt.worker)
      .run();
  if (last >= static_cast<std::int64_t>(kMostAttemptsKept)) {
    use(Query::history_trim).with(id, last + 1 - static_cast<std::int64_t>(kMostAttemptsKept)).run();
  }
  if (result == nullptr) return write_error(id, attempt.error);
  use(Query::job_set_failure).with(id).with_or_null(attempt.error, *result).run();
}

void SqliteJobs::write_end(JobId id, const std::string& error, const std::string* result) {
  if (result == nullptr) return use(Query::job_set_end).with(id).with_or_null(error).run();
  use(Query::job_set_result).with(id).with_or_null(error, *result).run();
}

void SqliteJobs::write_result(JobId id, const std::string& result) {
  use(Query::job_set_output).with(id).with_or_null(result).run();
  // keep_done() leaves a record's result alone, so this one is no longer for it.
  if (const auto lease = leases_.find(id); lease != leases_.end()) lease->second.is_first_run = false;
}

void SqliteJobs::write_error(JobId id, const std::string& error) {
  use(Query::job_set_error).with(id).with_or_null(error).run();
}

std::string SqliteJobs::error_of(JobId id) {
  Use found = use(Query::job_error);
  return found.with(id).next() ? std::string(found.text(0)) : std::string{};
}

// --- names -----------------------------------------------------------------------------------------------------------

JobId SqliteJobs::find_name(const std::string& name) {
  Use found = use(Query::name_find);
  return found.with(name).next() ? static_cast<JobId>(found.number(0)) : 0;
}

JobId SqliteJobs::find_unique(QueueId queue, const std::string& unique) {
  Use found = use(Query::unique_find);
  return found.with(queue, unique).next() ? static_cast<JobId>(found.number(0)) : 0;
}

// --- links -----------------------------------------------------------------------------------------------------------

void SqliteJobs::link(JobId waited_for, JobId job) {
  use(Query::dependency_add).with(waited_for, job).run();
  add_flags(waited_for, JobRow::kHasDependants);
}

void SqliteJobs::unlink(JobId job) { use(Query::waits_for_delete).with(job).run(); }

std::vector<JobId> SqliteJobs::take_dependants(JobId waited_for) {
  std::vector<JobId> found;
  {
    Use rows = use(Query::dependants);
    rows.with(waited_for);
    while (rows.next()) found.push_back(static_cast<JobId>(rows.number(0)));
  }
  if (!found.empty()) use(Query::dependants_delete).with(waited_for).run();
  return found;
}

std::vector<JobId> SqliteJobs::waits_for(JobId job, std::size_t limit) {
  std::vector<JobId> found;
  if (job > kMostJobId) return found;
  Use rows = use(Query::waits_for);
  rows.with(job, static_cast<std::int64_t>(std::min<std::size_t>(limit, kMostJobId)));
  while (rows.next()) found.push_back(static_cast<JobId>(rows.number(0)));
  return found;
}

// --- requests --------------------------------------------------------------------------------------------------------

std::optional<KeptRequest> SqliteJobs::find_request(const std::string& key) {
  Use found = use(Query::request_find);
  if (!found.with(key).next()) return std::nullopt;
  return KeptRequest{std::string(found.text(0)), std::string(found.text(1))};
}

void SqliteJobs::write_request(const RequestKey& key, WallTime at, const std::string& reply) {
  use(Query::request_add).with(key.key, to_ms(at), key.digest, reply).run();
}

std::size_t SqliteJobs::prune_requests(WallTime before, std::size_t most, std::size_t limit) {
  std::int64_t last = 0;
  {
    Use found = use(Query::requests_last);
    found.next();
    last = found.number(0);
  }
  std::int64_t up_to = 0;
  std::size_t count = 0;
  {
    Use oldest = use(Query::requests_oldest);
    oldest.with(static_cast<std::int64_t>(std::min<std::size_t>(limit, kMostJobId)));
    while (oldest.next()) {
      const std::int64_t n = oldest.number(0);
      const bool too_many = last - n >= static_cast<std::int64_t>(std::min<std::size_t>(most, kMostJobId));
      if (!too_many && oldest.number(1) >= to_ms(before)) break;
      up_to = n;
      ++count;
    }
  }
  if (count > 0) use(Query::requests_delete).with(up_to).run();
  return count;
}

// --- failures --------------------------------------------------------------------------------------------------------

std::string_view SqliteJobs::failure_of(JobId id) {
  Use found = use(Query::failed_find);
  if (!found.with(id % kFailuresRemembered, id).next()) return {};
  return how_failed(found.text(0));
}

void SqliteJobs::set_failure(JobId id, std::string_view how) {
  if (how.empty()) {
    use(Query::failed_delete).with(id % kFailuresRemembered, id).run();
  } else {
    use(Query::failed_add).with(id % kFailuresRemembered, id, how).run();
  }
}

}  // namespace argiope
