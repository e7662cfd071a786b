#include "store/postgresql/postgres_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/job_tally.hpp"
#include "store/postgresql/postgres_records.hpp"

namespace argiope {

using namespace job_rules;

namespace {

constexpr std::string_view kJobRows =
    "SELECT j.job_id, j.queue_id, j.state, j.rank, j.priority, j.due_at, j.attempts, j.expiries, j.pending, "
    "j.if_failed, "
    "j.flags, j.fence, j.ended_at, j.key, j.unique_name, j.schedule_id, j.run, j.tally, j.name, j.error, l.token FROM "
    "jobs j "
    "LEFT JOIN leases l USING (partition, job_id) WHERE partition = 0 AND ";

PostgresColumn column_of(const std::vector<JobId>& ids) {
  PostgresColumn column;
  for (const JobId id : ids) column.add(id);
  return column;
}

}  // namespace

// --- what is brought -------------------------------------------------------------------------------------------------

void PostgresJobs::ask_for(const NeededRows& needed, std::vector<PostgresWork::Statement>& reads) {
  const auto ask = [&](std::string_view condition, auto... values) {
    reads.push_back({std::string(kJobRows) + std::string(condition), PostgresValues(values...)});
  };
  if (!needed.ids.empty()) {
    const PostgresColumn ids = column_of(needed.ids);
    PostgresColumn slots;
    for (const JobId id : needed.ids) slots.add(id % kFailuresRemembered);
    ask("j.job_id = ANY($1::bigint[])", ids);
    reads.push_back({"SELECT waits_for, job_id FROM dependencies WHERE partition = 0 AND job_id = ANY($1::bigint[])",
                     PostgresValues(ids)});
    reads.push_back({"SELECT slot, job_id, how FROM failed_jobs WHERE partition = 0 AND slot = ANY($1::bigint[])",
                     PostgresValues(slots)});
  }
  if (!needed.names.empty()) {
    PostgresColumn names;
    for (const std::string& name : needed.names) names.add(name);
    ask("j.name <> '' AND j.name = ANY($1::bytea[])", names);
  }
  PostgresColumn queues, uniques;
  for (const auto& [queue, unique] : uniques_of(needed)) {
    queues.add(queue);
    uniques.add(unique);
  }
  if (!queues.empty()) {
    ask("j.unique_name <> '' AND j.state < 4 AND (j.queue_id, j.unique_name) IN (SELECT q, n FROM unnest($1::bigint[], "
        "$2::bytea[]) AS w(q, n))",
        queues, uniques);
  }
}

// In the order of ask_for(). A row, a name or a link that the transaction knows is not as it is stored.
void PostgresJobs::take_brought(const NeededRows& needed, PostgresWork::Answers& answers, std::size_t& at) {
  if (!needed.ids.empty()) {
    take_rows(answers.at(at++));
    for (const JobId id : needed.ids) {
      if (jobs_.find(id) == nullptr) jobs_[id].row.id = id;
    }
    const PostgresRows& links = answers.at(at++);
    std::set<JobId> news;
    for (const JobId id : needed.ids) {
      if (linked_.find(id) == nullptr) news.insert(id);
    }
    for (int i = 0; i < links.size(); ++i) {
      const Pair link(links.number(i, 0), links.number(i, 1));
      if (news.contains(link.second) && links_.find(link) == nullptr) links_[link] = {true, true};
    }
    for (const JobId id : news) linked_[id] = true;
    const PostgresRows& failures = answers.at(at++);
    std::set<std::uint64_t> slots;
    for (const JobId id : needed.ids) {
      if (failures_.find(id % kFailuresRemembered) == nullptr) slots.insert(id % kFailuresRemembered);
    }
    for (const std::uint64_t slot : slots) failures_[slot] = {};
    for (int i = 0; i < failures.size(); ++i) {
      const auto slot = static_cast<std::uint64_t>(failures.number(i, 0));
      if (slots.contains(slot))
        failures_[slot] = {static_cast<JobId>(failures.number(i, 1)), std::string(failures.text(i, 2))};
    }
  }
  // Those that the transaction has told already are as it has left them.
  const auto take_names = [&]<class Key>(PostgresOverlay<Key, JobId>& known, const std::vector<Key>& wanted,
                                         auto key_of) {
    const PostgresRows& rows = answers.at(at++);
    take_rows(rows);
    std::set<Key> news;
    for (const Key& key : wanted) {
      if (known.find(key) == nullptr) news.insert(key);
    }
    for (const Key& key : news) known[key] = 0;
    for (int i = 0; i < rows.size(); ++i) {
      const Job& job = *jobs_.find(static_cast<JobId>(rows.number(i, 0)));
      if (job.is_there && news.contains(key_of(job))) known[key_of(job)] = job.row.id;
    }
  };
  if (!needed.names.empty()) {
    take_names(names_, needed.names, [](const Job& job) { return job.name; });
  }
  if (const auto uniques = uniques_of(needed); !uniques.empty()) {
    take_names(uniques_, uniques,
               [](const Job& job) { return Unique(job.row.holds_unique() ? job.row.queue : 0, job.row.unique); });
  }
}

// But for those of queues that are not there.
std::vector<PostgresJobs::Unique> PostgresJobs::uniques_of(const NeededRows& needed) {
  std::vector<Unique> uniques;
  for (const auto& [queue, unique] : needed.uniques) {
    if (const QueueId id = queues_.find(queue); id != 0) uniques.emplace_back(id, unique);
  }
  return uniques;
}

void PostgresJobs::bring(const NeededRows& needed) {
  std::vector<PostgresWork::Statement> reads;
  ask_for(needed, reads);
  if (reads.empty()) return;
  PostgresWork::Answers answers = work_.read(reads);
  std::size_t at = 0;
  take_brought(needed, answers, at);
}

void PostgresJobs::take_rows(const PostgresRows& rows) {
  for (int i = 0; i < rows.size(); ++i) {
    const auto number = [&](int column) { return rows.number(i, column); };
    const auto id = static_cast<JobId>(number(0));
    if (jobs_.find(id) != nullptr) continue;
    Job& job = jobs_[id];
    job.is_there = job.was_there = true;
    JobRow& row = job.row;
    row.id = id;
    row.queue = static_cast<QueueId>(number(1));
    row.state = static_cast<RowState>(number(2));
    row.rank = static_cast<std::int32_t>(number(3));
    row.priority = static_cast<std::int32_t>(number(4));
    row.due_ms = number(5);
    row.attempts = static_cast<std::uint32_t>(number(6));
    row.expiries = static_cast<std::uint32_t>(number(7));
    row.pending = static_cast<std::uint32_t>(number(8));
    row.cancelled_with_others = number(9) == 0;
    row.flags = number(10);
    row.fence = static_cast<std::uint64_t>(number(11));
    row.ended_ms = number(12);
    row.key = rows.text(i, 13);
    row.unique = rows.text(i, 14);
    row.schedule = static_cast<ScheduleId>(number(15));
    row.run = static_cast<std::uint64_t>(number(16));
    row.tally = static_cast<std::uint64_t>(number(17));
    job.name = rows.text(i, 18);
    job.error = rows.text(i, 19);
    const auto* const lease = leases_.changed(id);
    row.token = lease == nullptr ? static_cast<std::uint64_t>(number(20)) : *lease ? (*lease)->token : 0;
  }
}

PostgresJobs::Job& PostgresJobs::known(JobId id) {
  if (jobs_.find(id) == nullptr) bring({.ids = {id}});
  return jobs_[id];
}

// --- rows ------------------------------------------------------------------------------------------------------------

std::optional<JobRow> PostgresJobs::load(JobId id) {
  const Job* job = jobs_.find(id);
  if (job == nullptr) {
    bring({.ids = {id}});
    job = jobs_.find(id);
  }
  return job->is_there ? std::optional(job->row) : std::nullopt;
}

void PostgresJobs::insert(const JobRow& row, const NewJob& wanted, WallTime now) {
  Job& job = jobs_[row.id];
  Job made;
  made.is_there = made.is_new = true;
  made.was_there = job.was_there;
  made.had_attempts = job.had_attempts;
  made.row = row;
  made.name = wanted.name;
  made.function = wanted.function;
  made.payload = wanted.payload;
  made.max_attempts = wanted.max_attempts;
  made.lease_ms = lease_ms(wanted.lease_time);
  made.created_ms = to_ms(now);
  job = std::move(made);
  if (!wanted.name.empty()) names_[wanted.name] = row.id;
  if (!wanted.unique.empty()) uniques_[Unique(row.queue, wanted.unique)] = row.id;
  linked_[row.id] = true;
  queues_.count(row.queue, state_of(row.state), 1);
  work_.touch(false, row.id);
}

void PostgresJobs::save(const JobRow& before, const JobRow& after) {
  if (before.shown_state() != after.shown_state()) {
    queues_.count(before.queue, before.shown_state(), -1);
    queues_.count(after.queue, after.shown_state(), 1);
    if (after.state == RowState::done) queues_.count_done(after.queue);
  }
  Job& job = known(after.id);
  job.row = after;
  job.has_changed = true;
  if (before.holds_unique()) uniques_[Unique(before.queue, before.unique)] = 0;
  if (after.holds_unique()) uniques_[Unique(after.queue, after.unique)] = after.id;
  if (before.runs() && !after.runs()) leases_.end(after.id);
  leases_.set_flags(after.id, after.flags);
  work_.touch(false, after.id);
}

void PostgresJobs::write_work(JobId id, const NewJob& wanted) {
  Job& job = known(id);
  job.has_work = true;
  job.function = wanted.function;
  job.payload = wanted.payload;
  job.lease_ms = lease_ms(wanted.lease_time);
}

void PostgresJobs::gone(Job& job) {
  const bool was_there = job.was_there;
  const bool had_attempts = job.had_attempts || (job.row.flags & JobRow::kHasHistory) != 0;
  job = {};
  job.was_there = was_there;
  job.had_attempts = had_attempts;
}

void PostgresJobs::erase_known(Job& job) {
  if (!job.name.empty()) names_[job.name] = 0;
  if (job.row.holds_unique()) uniques_[Unique(job.row.queue, job.row.unique)] = 0;
  gone(job);
}

void PostgresJobs::erase(const JobRow& row) {
  queues_.count(row.queue, row.shown_state(), -1);
  if (row.runs()) leases_.end(row.id);
  work_.touch(false, row.id);
  erase_known(known(row.id));
}

// The owner's knowledge of a lease says what else there is of the job, which is erased unseen where that is nothing.
std::optional<ErasedJob> PostgresJobs::erase_done(JobId id, std::uint64_t token) {
  const PostgresLeases::Lease* const lease = leases_.find(id);
  if (lease == nullptr || lease->token != token) return std::nullopt;
  const QueueId queue = lease->queue;
  const std::int64_t flags = lease->flags;
  ErasedJob erased{.has_dependants = (flags & JobRow::kHasDependants) != 0};
  if ((flags & (JobRow::kIsRun | JobRow::kHasNames)) != 0 || jobs_.find(id) != nullptr) {
    Job& job = known(id);
    erased.schedule = job.row.schedule;
    erased.run = job.row.run;
    erase_known(job);
  } else {
    Job& job = jobs_[id];
    job.was_there = true;
    job.row.flags = flags;
    gone(job);
  }
  queues_.count(queue, JobState::running, -1);
  queues_.count_done(queue);
  leases_.end(id);
  return erased;
}

std::vector<JobId> PostgresJobs::erase_ended(QueueId queue, JobState state, WallTime before, std::size_t limit) {
  const PostgresRows rows =
      work_.look(std::string(kJobRows) +
                     "j.queue_id = $1 AND j.state = $2 AND j.state >= 4 AND j.ended_at < $3 ORDER BY j.ended_at, "
                     "j.job_id LIMIT $4",
                 PostgresValues(queue, row_state(state), to_ms(before), std::min<std::size_t>(limit, kMostJobId)));
  take_rows(rows);
  std::vector<JobId> erased;
  for (int i = 0; i < rows.size(); ++i) {
    erased.push_back(static_cast<JobId>(rows.number(i, 0)));
    queues_.count(queue, state, -1);
    erase_known(jobs_[erased.back()]);
  }
  return erased;
}

// --- names and links -------------------------------------------------------------------------------------------------

JobId PostgresJobs::find_name(const std::string& name) {
  if (name.empty()) return 0;
  if (names_.find(name) == nullptr) bring({.names = {name}});
  return *names_.find(name);
}

JobId PostgresJobs::find_unique(QueueId queue, const std::string& unique) {
  const Unique key(queue, unique);
  if (uniques_.find(key) == nullptr) bring({.uniques = {{queues_.all()[queue - 1].name, unique}}});
  return *uniques_.find(key);
}

void PostgresJobs::link(JobId waited_for, JobId job) {
  links_[{waited_for, job}].is_there = true;
  Job& other = known(waited_for);
  other.row.flags |= JobRow::kHasDependants;
  other.has_changed = true;
  leases_.set_flags(waited_for, other.row.flags);
}

void PostgresJobs::unlink(JobId job) {
  for (const JobId other : waits_for(job, kMostJobId)) links_[{other, job}].is_there = false;
}

// The rows of those that wait come with them.
std::vector<JobId> PostgresJobs::take_dependants(JobId waited_for) {
  const Job* const job = jobs_.find(waited_for);
  if (job == nullptr || job->was_there) {
    const PostgresColumn ids = column_of({waited_for});
    PostgresWork::Answers answers = work_.read(
        {{"SELECT job_id FROM dependencies WHERE partition = 0 AND waits_for = ANY($1::bigint[])", PostgresValues(ids)},
         {std::string(kJobRows) +
              "j.job_id IN (SELECT d.job_id FROM dependencies d WHERE d.partition = 0 AND d.waits_for = "
              "ANY($1::bigint[]))",
          PostgresValues(ids)}});
    for (int i = 0; i < answers[0].size(); ++i) {
      const Pair link(waited_for, answers[0].number(i, 0));
      if (links_.find(link) == nullptr) links_[link] = {true, true};
    }
    take_rows(answers[1]);
  }
  std::vector<JobId> taken;
  for (auto at = links_.all().lower_bound({waited_for, 0}); at != links_.all().end() && at->first.first == waited_for;
       ++at) {
    if (at->second.is_there) taken.push_back(at->first.second);
  }
  for (const JobId id : taken) links_[{waited_for, id}].is_there = false;
  return taken;
}

std::vector<JobId> PostgresJobs::waits_for(JobId job, std::size_t limit) {
  std::vector<JobId> found;
  if (job > kMostJobId) return found;
  if (linked_.find(job) == nullptr) bring({.ids = {job}});
  for (const auto& [link, state] : links_.all()) {
    if (found.size() == limit) break;
    if (link.second == job && state.is_there) found.push_back(link.first);
  }
  return found;
}

// --- leases ----------------------------------------------------------------------------------------------------------

// Payloads that do not fit into one call are not sent, by the same count as LeasedBytes.
std::vector<std::optional<JobRecord>> PostgresJobs::lease(std::span<const LeaseRequest> leases) {
  std::vector<std::optional<JobRecord>> records(leases.size());
  PostgresColumn ids;
  std::set<JobId> asked;
  for (const LeaseRequest& request : leases) {
    if (request.id <= kMostJobId && asked.insert(request.id).second) ids.add(request.id);
  }
  std::map<JobId, int> found;
  static const std::string kRecords = fmt::format(
      "SELECT {}, CASE WHEN total <= {} OR total = bytes THEN result END, CASE WHEN total <= {} OR total = bytes THEN "
      "payload END, bytes FROM (SELECT j.*, w.n, b.bytes, sum(b.bytes) OVER (ORDER BY w.n)::bigint AS total FROM "
      "unnest($1::bigint[]) WITH ORDINALITY AS w(id, n) JOIN jobs j ON j.partition = 0 AND j.job_id = w.id CROSS JOIN "
      "LATERAL (SELECT (octet_length(j.payload) + octet_length(j.result))::bigint AS bytes) b WHERE j.state < 3 AND "
      "(SELECT "
      "l.token FROM leases l WHERE l.partition = 0 AND l.job_id = j.job_id) IS NULL) j ORDER BY n",
      kPostgresRecord, kMostLeasedBytes, kMostLeasedBytes);
  const PostgresRows rows = ids.empty() ? PostgresRows(nullptr) : work_.look(kRecords, PostgresValues(ids));
  for (int i = 0; i < rows.size(); ++i) found[static_cast<JobId>(rows.number(i, 0))] = i;
  LeasedBytes bytes;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const LeaseRequest& request = leases[i];
    work_.give_token(request.token);
    if (bytes.is_full()) {
      records[i] = left_as_it_is(request.id);
      continue;
    }
    const auto at = found.find(request.id);
    if (at == found.end() || leases_.find(request.id) != nullptr) continue;
    const int row = at->second;
    if (!bytes.take(static_cast<std::size_t>(rows.number(row, kPostgresTokenColumn)))) {
      records[i] = left_as_it_is(request.id);
      continue;
    }
    const std::int64_t until = lease_end(request, rows.number(row, kPostgresLeaseTimeColumn));
    const auto queue = static_cast<QueueId>(rows.number(row, kPostgresQueueColumn));
    leases_.set(request.id, {.token = request.token,
                             .until = until,
                             .worker = request.worker,
                             .remote = request.remote,
                             .queue = queue,
                             .flags = rows.number(row, kPostgresFlagsColumn)});
    if (jobs_.find(request.id) != nullptr) jobs_[request.id].row.token = request.token;
    JobRecord record = read_postgres_record(rows, row, queues_.all(), false);
    queues_.count(queue, record.state, -1);
    queues_.count(queue, JobState::running, 1);
    record.state = JobState::running;
    ++record.tally.runs;
    record.token = request.token;
    record.worker = request.worker;
    record.lease_until = from_ms(until);
    records[i] = std::move(record);
  }
  return records;
}

void PostgresJobs::renew(std::span<const LeaseRequest> leases) {
  for (const LeaseRequest& request : leases) {
    const PostgresLeases::Lease* const lease = leases_.find(request.id);
    if (lease == nullptr || lease->token != request.token) continue;
    PostgresLeases::Lease renewed = *lease;
    renewed.until = to_ms(request.until);
    renewed.worker = request.worker;
    renewed.remote = request.remote;
    renewed.old = false;
    leases_.set(request.id, std::move(renewed));
  }
}

// --- histories -------------------------------------------------------------------------------------------------------

void PostgresJobs::write_attempt(JobId id, const Attempt& attempt, const std::string* result) {
  Job& job = known(id);
  job.attempts.push_back(attempt);
  job.error = attempt.error;
  job.has_changed = true;
  if (result != nullptr) job.result = *result;
}

void PostgresJobs::write_end(JobId id, const std::string& error, const std::string* result) {
  Job& job = known(id);
  job.error = error;
  job.row.schedule = 0;
  job.row.run = 0;
  job.has_changed = true;
  if (result != nullptr) job.result = *result;
}

void PostgresJobs::write_result(JobId id, const std::string& result) { known(id).result = result; }

void PostgresJobs::write_error(JobId id, const std::string& error) {
  Job& job = known(id);
  job.error = error;
  job.has_changed = true;
}

std::string PostgresJobs::error_of(JobId id) { return known(id).error; }

std::vector<Attempt> PostgresJobs::attempts(JobId id) {
  std::vector<Attempt> attempts;
  if (id > kMostJobId) return attempts;
  const PostgresRows rows = work_.look(
      "SELECT number, ended_at, outcome, error, worker FROM attempts WHERE partition = 0 AND job_id = $1 ORDER BY n",
      PostgresValues(id));
  for (int i = 0; i < rows.size(); ++i) {
    attempts.push_back({static_cast<std::uint32_t>(rows.number(i, 0)), from_ms(rows.number(i, 1)),
                        std::string(rows.text(i, 2)), std::string(rows.text(i, 3)), std::string(rows.text(i, 4))});
  }
  return attempts;
}

std::string_view PostgresJobs::failure_of(JobId id) {
  const std::uint64_t slot = id % kFailuresRemembered;
  if (failures_.find(slot) == nullptr) bring({.ids = {id}});
  const Failure& failure = *failures_.find(slot);
  return failure.id != id || failure.how.empty() ? std::string_view{} : how_failed(failure.how);
}

void PostgresJobs::set_failure(JobId id, std::string_view how) {
  if (how.empty() && failure_of(id).empty()) return;
  failures_[id % kFailuresRemembered] = {id, std::string(how), true};
}

}  // namespace argiope
