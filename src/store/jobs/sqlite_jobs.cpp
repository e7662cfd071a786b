#include "store/jobs/sqlite_jobs.hpp"

#include <algorithm>
#include <limits>

#include "jobs/internal/job_rules.hpp"

namespace argiope {

using namespace job_rules;

std::optional<JobRow> SqliteJobs::load(JobId id) {
  SqliteUse found = sql_.use(Query::job_core);
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
  if (is_leasable(row.state)) row.token = leases_.token_of(id, found.number(10));
  return row;
}

void SqliteJobs::insert(const JobRow& row, const NewJob& wanted, WallTime now) {
  sql_.gather(row, wanted, now);
  if (!wanted.name.empty()) sql_.use(Query::name_add).with(wanted.name, row.id).run();
  if (!wanted.unique.empty()) sql_.use(Query::unique_add).with(row.queue, wanted.unique, row.id).run();
  queues_.count(row.queue, state_of(row.state), 1);
  news_.touch(row.id);
}

void SqliteJobs::save(const JobRow& before, const JobRow& after) {
  if (before.shown_state() != after.shown_state()) {
    queues_.count(before.queue, before.shown_state(), -1);
    queues_.count(after.queue, after.shown_state(), 1);
    if (after.state == RowState::done) queues_.count_done(after.queue);
  }
  sql_.use(Query::job_update)
      .with(after.id, after.state, after.rank, after.priority)
      .with_or_null(after.due_ms, after.attempts, after.expiries, after.pending, after.flags, after.fence,
                    after.ended_ms)
      .with(after.key)
      .with_or_null(after.unique, after.tally)
      .run();
  const bool keeps_unique = before.holds_unique() && after.holds_unique();
  if (before.holds_unique() && !keeps_unique)
    sql_.use(Query::unique_delete).with(before.queue, before.unique, before.id).run();
  if (after.holds_unique() && !keeps_unique)
    sql_.use(Query::unique_add).with(after.queue, after.unique, after.id).run();
  if (before.has_ended())
    sql_.use(Query::ended_delete).with(before.queue, before.state, before.ended_ms, before.id).run();
  if (after.has_ended()) sql_.use(Query::ended_add).with(after.queue, after.state, after.ended_ms, after.id).run();
  if (before.runs() && !after.runs()) leases_.end(after.id);
  leases_.set_flags(after.id, after.flags);
  news_.touch(after.id);
}

void SqliteJobs::write_work(JobId id, const NewJob& job) {
  sql_.use(Query::job_set_work).with(id).with_or_null(job.function, job.payload, lease_ms(job.lease_time)).run();
}

void SqliteJobs::erase_row(JobId id, std::int64_t flags) {
  if ((flags & (JobRow::kHasHistory | JobRow::kHasNames)) == 0) return sql_.gather_done(id);
  if ((flags & JobRow::kHasHistory) != 0) sql_.use(Query::history_delete).with(id).run();
  if ((flags & JobRow::kHasNames) != 0) {
    SqliteUse names = sql_.use(Query::job_names);
    if (names.with(id).next()) {
      const auto queue = names.number(1);
      if (!names.text(0).empty()) sql_.use(Query::name_delete).with(names.text(0)).run();
      if (!names.text(2).empty()) sql_.use(Query::unique_delete).with(queue, names.text(2), id).run();
    }
  }
  sql_.use(Query::job_delete).with(id).run();
}

void SqliteJobs::erase(const JobRow& row) {
  erase_row(row.id, row.flags);
  if (row.has_ended()) sql_.use(Query::ended_delete).with(row.queue, row.state, row.ended_ms, row.id).run();
  queues_.count(row.queue, row.shown_state(), -1);
  if (row.runs()) leases_.end(row.id);
  news_.touch(row.id);
}

// The owner's knowledge of a lease says where the job is and what else there is of it.
std::optional<ErasedJob> SqliteJobs::erase_done(JobId id, std::uint64_t token) {
  const SqliteLeases::Lease* lease = leases_.find(id);
  if (lease == nullptr || lease->token != token) return std::nullopt;
  QueueId queue = lease->queue;
  std::int64_t flags = lease->flags;
  ErasedJob erased;
  if (queue == 0 || (flags & JobRow::kIsRun) != 0) {
    SqliteUse found = sql_.use(Query::job_brief);
    if (!found.with(id).next()) sql_.failed(SQLITE_CORRUPT);
    queue = static_cast<QueueId>(found.number(0));
    flags = found.number(1);
    erased.schedule = static_cast<ScheduleId>(found.number(2));
    erased.run = static_cast<std::uint64_t>(found.number(3));
  }
  erased.has_dependants = (flags & JobRow::kHasDependants) != 0;
  erase_row(id, flags);
  queues_.count(queue, JobState::running, -1);
  queues_.count_done(queue);
  leases_.end(id);
  return erased;
}

bool SqliteJobs::keep_done(JobId id, std::uint64_t token, std::int64_t ended_ms) {
  const SqliteLeases::Lease* lease = leases_.find(id);
  if (lease == nullptr || lease->token != token) return false;
  const QueueId queue = lease->queue;
  if (queue == 0 || lease->flags != 0 || !lease->is_first_run || !owns_) return false;
  sql_.gather_kept({id, token, ended_ms});
  queues_.count(queue, JobState::running, -1);
  queues_.count(queue, JobState::done, 1);
  queues_.count_done(queue);
  leases_.end(id);
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
    SqliteUse rows = sql_.use(Query::jobs_ended);
    rows.with(queue, row_state(state), to_ms(before),
              static_cast<std::int64_t>(std::min<std::size_t>(limit, std::numeric_limits<std::int64_t>::max())));
    while (rows.next()) old.push_back({static_cast<JobId>(rows.number(0)), rows.number(1), rows.number(2)});
  }
  std::vector<JobId> erased;
  erased.reserve(old.size());
  for (const Old& job : old) erase_row(job.id, job.flags);
  for (const Old& job : old) {
    sql_.use(Query::ended_delete).with(queue, row_state(state), job.ended_ms, job.id).run();
    queues_.count(queue, state, -1);
    erased.push_back(job.id);
  }
  return erased;
}

void SqliteJobs::add_flags(JobId id, std::int64_t flags) {
  sql_.use(Query::job_set_flags).with(id, flags).run();
  leases_.add_flags(id, flags);
}

// --- names -----------------------------------------------------------------------------------------------------------

JobId SqliteJobs::find_name(const std::string& name) {
  SqliteUse found = sql_.use(Query::name_find);
  return found.with(name).next() ? static_cast<JobId>(found.number(0)) : 0;
}

JobId SqliteJobs::find_unique(QueueId queue, const std::string& unique) {
  SqliteUse found = sql_.use(Query::unique_find);
  return found.with(queue, unique).next() ? static_cast<JobId>(found.number(0)) : 0;
}

// --- links -----------------------------------------------------------------------------------------------------------

void SqliteJobs::link(JobId waited_for, JobId job) {
  sql_.use(Query::dependency_add).with(waited_for, job).run();
  add_flags(waited_for, JobRow::kHasDependants);
}

void SqliteJobs::unlink(JobId job) { sql_.use(Query::waits_for_delete).with(job).run(); }

std::vector<JobId> SqliteJobs::take_dependants(JobId waited_for) {
  std::vector<JobId> found;
  {
    SqliteUse rows = sql_.use(Query::dependants);
    rows.with(waited_for);
    while (rows.next()) found.push_back(static_cast<JobId>(rows.number(0)));
  }
  if (!found.empty()) sql_.use(Query::dependants_delete).with(waited_for).run();
  return found;
}

std::vector<JobId> SqliteJobs::waits_for(JobId job, std::size_t limit) {
  std::vector<JobId> found;
  if (job > kMostJobId) return found;
  SqliteUse rows = sql_.use(Query::waits_for);
  rows.with(job, static_cast<std::int64_t>(std::min<std::size_t>(limit, kMostJobId)));
  while (rows.next()) found.push_back(static_cast<JobId>(rows.number(0)));
  return found;
}

}  // namespace argiope
