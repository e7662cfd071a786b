#include "store/redis/redis_jobs.hpp"

#include <algorithm>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/job_tally.hpp"
#include "jobs/internal/job_transitions.hpp"
#include "store/redis/redis_keys.hpp"
#include "store/redis/row_text.hpp"

namespace argiope {

using namespace job_rules;

namespace {

struct OrderPlace {
  std::string order, member;
};

std::string unique_field(QueueId queue, std::string_view unique) { return fmt::format("{}:{}", queue, unique); }
std::string failure_slot(JobId id) { return std::to_string(id % kFailuresRemembered); }

// Where a job is found that does not run. Empty: it waits for others.
OrderPlace place_of(const JobRow& row) {
  const auto order = [&](std::string_view shelf) { return fmt::format("{}:{}", shelf, row.queue); };
  switch (row.state) {
    case RowState::ready: return {order("ready"), redis_keys::of({row.rank, row.id})};
    case RowState::set_aside: return {order("aside"), redis_keys::of_key(row.key) + redis_keys::of({row.rank, row.id})};
    case RowState::delayed: return {order("delayed"), redis_keys::pair(static_cast<std::uint64_t>(row.due_ms), row.id)};
    case RowState::waiting: return {};
    case RowState::done:
    case RowState::cancelled:
    case RowState::buried: break;
  }
  return {order(to_string(state_of(row.state))), redis_keys::pair(static_cast<std::uint64_t>(row.ended_ms), row.id)};
}

}  // namespace

// --- rows ------------------------------------------------------------------------------------------------------------

void RedisJobs::want(JobId id) {
  const std::string field = std::to_string(id);
  rows_.want(RedisTable::jobs, field);
  rows_.want(RedisTable::leases, field);
}

void RedisJobs::bring(const NeededRows& needed) {
  const auto want_needed = [&](JobId id) {
    want(id);
    rows_.want(RedisTable::failures, failure_slot(id));
  };
  for (const JobId id : needed.ids) want_needed(id);
  for (const JobId id : needed.ends) want(id);
  for (const std::string& name : needed.names) rows_.want(RedisTable::names, name);
  for (const auto& [queue, unique] : needed.uniques) {
    if (const QueueId id = queues_.find(queue); id != 0) rows_.want(RedisTable::uniques, unique_field(id, unique));
  }
  for (const std::string& key : needed.requests) rows_.want(RedisTable::requests, key);
  for (const ScheduleId id : needed.schedules) {
    rows_.want(RedisTable::schedules, std::to_string(id));
    rows_.want(RedisTable::places, std::to_string(id));
  }
  rows_.fetch();
  for (const std::string& name : needed.names) {
    if (const JobId id = find_name(name); id != 0) want_needed(id);
  }
  for (const auto& [queue, unique] : needed.uniques) {
    const QueueId of = queues_.find(queue);
    if (const JobId id = of == 0 ? 0 : find_unique(of, unique); id != 0) want_needed(id);
  }
  rows_.fetch();
}

std::optional<RedisJobs::Lease> RedisJobs::lease_of(JobId id) {
  const std::string* const text = rows_.get(RedisTable::leases, std::to_string(id));
  if (text == nullptr) return std::nullopt;
  Lease lease;
  RowText<false> io(*text);
  io(lease);
  return lease;
}

std::optional<RedisJobs::Job> RedisJobs::read(JobId id) {
  want(id);
  rows_.fetch();
  const std::string* const text = rows_.get(RedisTable::jobs, std::to_string(id));
  if (text == nullptr) return std::nullopt;
  Job job;
  RowText<false> io(*text);
  io(job);
  job.row.id = id;
  if (const auto lease = lease_of(id)) job.row.token = lease->token;
  return job;
}

RedisJobs::Job RedisJobs::must_read(JobId id) {
  auto job = read(id);
  if (!job) throw DatabaseFailed{{Errc::corrupt, fmt::format("redis: the row of job {} is missing", id)}};
  return std::move(*job);
}

void RedisJobs::write(Job& job) {
  RowText<true> io;
  io(job);
  rows_.set(RedisTable::jobs, std::to_string(job.row.id), io.take());
}

// In the order that it belongs to, and among the counted.
void RedisJobs::place(const JobRow& row, bool is_there) {
  queues_.count(row.queue, row.shown_state(), is_there ? 1 : -1);
  if (row.runs()) return;
  OrderPlace at = place_of(row);
  if (at.order.empty()) return;
  is_there ? rows_.add(at.order, std::move(at.member)) : rows_.remove(at.order, std::move(at.member));
}

std::optional<JobRow> RedisJobs::load(JobId id) {
  auto job = read(id);
  return job ? std::optional(std::move(job->row)) : std::nullopt;
}

void RedisJobs::insert(const JobRow& row, const NewJob& wanted, WallTime now) {
  Job job{.row = row,
          .name = wanted.name,
          .function = wanted.function,
          .max_attempts = wanted.max_attempts,
          .lease_ms = lease_ms(wanted.lease_time),
          .created_at = now};
  const std::string field = std::to_string(row.id);
  write_text(job, RedisTable::payloads, wanted.payload);
  write(job);
  rows_.add("ids", redis_keys::digits(row.id));
  if (!job.name.empty()) rows_.set(RedisTable::names, job.name, field);
  if (row.holds_unique()) rows_.set(RedisTable::uniques, unique_field(row.queue, row.unique), field);
  place(row, true);
  rows_.tell(RedisTable::jobs, row.id);
}

void RedisJobs::save(const JobRow& before, const JobRow& after) {
  Job job = must_read(after.id);
  if (after.state == RowState::done && before.state != RowState::done) queues_.count_ended(after.queue);
  place(job.row, false);
  job.row = after;
  place(job.row, true);
  write(job);
  if (before.runs() && !after.runs()) rows_.erase(RedisTable::leases, std::to_string(after.id));
  const bool keeps_unique = before.holds_unique() && after.holds_unique() && before.unique == after.unique;
  if (before.holds_unique() && !keeps_unique)
    rows_.erase(RedisTable::uniques, unique_field(before.queue, before.unique));
  if (after.holds_unique() && !keeps_unique) {
    rows_.set(RedisTable::uniques, unique_field(after.queue, after.unique), std::to_string(after.id));
  }
  rows_.tell(RedisTable::jobs, after.id);
}

void RedisJobs::write_work(JobId id, const NewJob& wanted) {
  Job job = must_read(id);
  job.function = wanted.function;
  job.lease_ms = lease_ms(wanted.lease_time);
  write_text(job, RedisTable::payloads, wanted.payload);
  write(job);
}

void RedisJobs::erase(const JobRow& row) {
  const Job job = must_read(row.id);
  const std::string field = std::to_string(row.id);
  place(job.row, false);
  rows_.erase(RedisTable::jobs, field);
  rows_.remove("ids", redis_keys::digits(row.id));
  if (job.row.runs()) rows_.erase(RedisTable::leases, field);
  if (job.payload_bytes > 0) rows_.erase(RedisTable::payloads, field);
  if (job.result_bytes > 0) rows_.erase(RedisTable::results, field);
  if (job.has_error) rows_.erase(RedisTable::errors, field);
  if (job.has_attempts) rows_.erase(RedisTable::attempts, field);
  if (!job.name.empty()) rows_.erase(RedisTable::names, job.name);
  if (job.row.holds_unique()) rows_.erase(RedisTable::uniques, unique_field(job.row.queue, job.row.unique));
  rows_.tell(RedisTable::jobs, row.id);
}

std::optional<ErasedJob> RedisJobs::erase_done(JobId id, std::uint64_t token) {
  const auto row = load(id);
  if (!row || !row->runs() || row->token != token) return std::nullopt;
  queues_.count_ended(row->queue);
  erase(*row);
  return ErasedJob{(row->flags & JobRow::kHasDependants) != 0, row->schedule, row->run};
}

std::vector<JobId> RedisJobs::erase_ended(QueueId queue, JobState state, WallTime before, std::size_t limit) {
  const RedisRange range{.before = redis_keys::of(DueRank{before, 0}), .limit = limit};
  std::vector<JobId> erased;
  for (const std::string& member : rows_.range(fmt::format("{}:{}", to_string(state), queue), range)) {
    erased.push_back(redis_keys::last_of(member));
    want(erased.back());
  }
  rows_.fetch();
  for (const JobId id : erased) erase(must_read(id).row);
  return erased;
}

JobId RedisJobs::find_name(const std::string& name) {
  const std::string* const id = name.empty() ? nullptr : rows_.get(RedisTable::names, name);
  return id == nullptr ? 0 : redis_keys::number_in(*id);
}

JobId RedisJobs::find_unique(QueueId queue, const std::string& unique) {
  const std::string* const id = rows_.get(RedisTable::uniques, unique_field(queue, unique));
  return id == nullptr ? 0 : redis_keys::number_in(*id);
}

// --- links -----------------------------------------------------------------------------------------------------------

void RedisJobs::link(JobId waited_for, JobId job) {
  rows_.add("dependants", redis_keys::pair(waited_for, job));
  rows_.add("waits", redis_keys::pair(job, waited_for));
  Job other = must_read(waited_for);
  other.row.flags |= JobRow::kHasDependants;
  write(other);
}

void RedisJobs::unlink(JobId job) {
  for (const JobId other : waits_for(job, std::numeric_limits<std::size_t>::max())) {
    rows_.remove("dependants", redis_keys::pair(other, job));
    rows_.remove("waits", redis_keys::pair(job, other));
  }
}

std::vector<JobId> RedisJobs::take_dependants(JobId waited_for) {
  std::vector<JobId> taken;
  const RedisRange range{.after = redis_keys::before_pairs(waited_for), .before = redis_keys::after_pairs(waited_for)};
  for (const std::string& member : rows_.range("dependants", range)) {
    const JobId job = redis_keys::last_of(member);
    rows_.remove("dependants", member);
    rows_.remove("waits", redis_keys::pair(job, waited_for));
    want(job);
    taken.push_back(job);
  }
  rows_.fetch();
  return taken;
}

std::vector<JobId> RedisJobs::waits_for(JobId job, std::size_t limit) {
  std::vector<JobId> found;
  if (job > kMostJobId) return found;
  const RedisRange range{
      .after = redis_keys::before_pairs(job), .before = redis_keys::after_pairs(job), .limit = limit};
  for (const std::string& member : rows_.range("waits", range)) found.push_back(redis_keys::last_of(member));
  return found;
}

// --- leases ----------------------------------------------------------------------------------------------------------

void RedisJobs::write_lease(JobId id, const LeaseRequest& request, WallTime until) {
  Lease lease{.token = request.token,
              .until = until,
              .worker = request.worker,
              .remote = request.remote,
              .epoch = rows_.epoch()};
  RowText<true> io;
  io(lease);
  rows_.set(RedisTable::leases, std::to_string(id), io.take());
}

std::vector<std::optional<JobRecord>> RedisJobs::lease(std::span<const LeaseRequest> requests) {
  std::vector<std::optional<JobRecord>> records(requests.size());
  for (const LeaseRequest& request : requests) want(request.id);
  rows_.fetch();
  LeasedBytes bytes;
  std::vector<std::size_t> leased;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const LeaseRequest& request = requests[i];
    counters_.last_token = request.token;
    if (bytes.is_full()) {
      records[i] = left_as_it_is(request.id);
      continue;
    }
    const auto job = read(request.id);
    if (!job || job->row.runs() || !is_leasable(job->row.state)) continue;
    if (!bytes.take(job->payload_bytes + job->result_bytes)) {
      records[i] = left_as_it_is(request.id);
      continue;
    }
    place(job->row, false);
    write_lease(request.id, request, from_ms(lease_end(request, job->lease_ms)));
    queues_.count(job->row.queue, JobState::running, 1);
    want_texts(*job);
    leased.push_back(i);
  }
  rows_.fetch();
  for (const std::size_t i : leased) records[i] = record_of(must_read(requests[i].id), true);
  return records;
}

void RedisJobs::renew(std::span<const LeaseRequest> requests) {
  for (const LeaseRequest& request : requests) rows_.want(RedisTable::leases, std::to_string(request.id));
  rows_.fetch();
  for (const LeaseRequest& request : requests) {
    const auto lease = lease_of(request.id);
    if (lease && lease->token == request.token) write_lease(request.id, request, stored(request.until));
  }
}

std::vector<OldLease> RedisJobs::old_leases() {
  std::vector<OldLease> old;
  for (const auto& [id, text] : rows_.all(RedisTable::leases)) {
    Lease lease;
    RowText<false> io(text);
    io(lease);
    if (lease.epoch == rows_.epoch()) continue;
    old.push_back({redis_keys::number_in(id), lease.token, lease.until, lease.worker, lease.remote});
  }
  std::ranges::sort(old, {}, &OldLease::id);
  return old;
}

// --- history ---------------------------------------------------------------------------------------------------------

// Payload, result or error; an empty one has no field.
void RedisJobs::write_text(Job& job, RedisTable table, const std::string& text) {
  const std::string field = std::to_string(job.row.id);
  const bool was_there = table == RedisTable::payloads  ? job.payload_bytes > 0
                         : table == RedisTable::results ? job.result_bytes > 0
                                                        : job.has_error;
  if (!text.empty()) {
    rows_.set(table, field, text);
  } else if (was_there) {
    rows_.erase(table, field);
  }
  if (table == RedisTable::payloads) job.payload_bytes = text.size();
  if (table == RedisTable::results) job.result_bytes = text.size();
  if (table == RedisTable::errors) job.has_error = !text.empty();
}

std::string RedisJobs::text_of(RedisTable table, JobId id) {
  const std::string* const text = rows_.get(table, std::to_string(id));
  return text == nullptr ? std::string() : *text;
}

void RedisJobs::write_attempt(JobId id, const Attempt& attempt, const std::string* result) {
  Job job = must_read(id);
  std::vector<Attempt> kept = job.has_attempts ? attempts(id) : std::vector<Attempt>{};
  kept.push_back(attempt);
  if (kept.size() > kMostAttemptsKept) kept.erase(kept.begin());
  RowText<true> io;
  for (Attempt& one : kept) fields_of(io, one);
  rows_.set(RedisTable::attempts, std::to_string(id), io.take());
  job.has_attempts = true;
  write_text(job, RedisTable::errors, attempt.error);
  if (result != nullptr) write_text(job, RedisTable::results, *result);
  write(job);
}

void RedisJobs::write_end(JobId id, const std::string& error, const std::string* result) {
  Job job = must_read(id);
  write_text(job, RedisTable::errors, error);
  if (result != nullptr) write_text(job, RedisTable::results, *result);
  job.row.schedule = job.row.run = 0;
  write(job);
}

void RedisJobs::write_result(JobId id, const std::string& result) {
  Job job = must_read(id);
  write_text(job, RedisTable::results, result);
  write(job);
}

void RedisJobs::write_error(JobId id, const std::string& error) {
  Job job = must_read(id);
  write_text(job, RedisTable::errors, error);
  write(job);
}

std::string RedisJobs::error_of(JobId id) {
  return must_read(id).has_error ? text_of(RedisTable::errors, id) : std::string();
}

std::vector<Attempt> RedisJobs::attempts(JobId id) {
  std::vector<Attempt> found;
  if (id > kMostJobId) return found;
  const std::string text = text_of(RedisTable::attempts, id);
  RowText<false> io(text);
  while (!io.at_end()) fields_of(io, found.emplace_back());
  return found;
}

std::string_view RedisJobs::failure_of(JobId id) {
  const std::string* const text = rows_.get(RedisTable::failures, failure_slot(id));
  if (text == nullptr) return {};
  JobId whose = 0;
  std::string how;
  RowText<false> io(*text);
  io(whose, how);
  return whose == id ? how_failed(how) : std::string_view{};
}

void RedisJobs::set_failure(JobId id, std::string_view how) {
  if (!how.empty()) {
    rows_.set(RedisTable::failures, failure_slot(id), row_text(id, std::string(how)));
  } else if (!failure_of(id).empty()) {
    rows_.erase(RedisTable::failures, failure_slot(id));
  }
}

// --- shelves ---------------------------------------------------------------------------------------------------------

// A row that went meanwhile by another process is left out.
std::vector<WaitingJob> RedisJobs::waiting_in(const std::vector<std::string>& members) {
  for (const std::string& member : members) want(redis_keys::last_of(member));
  rows_.fetch();
  std::vector<WaitingJob> found;
  for (const std::string& member : members) {
    const auto row = load(redis_keys::last_of(member));
    if (row && !row->runs()) found.push_back(waiting(*row));
  }
  return found;
}

std::vector<WaitingJob> RedisJobs::load_ranked(QueueId queue, const std::string* key, Rank after, std::size_t limit) {
  const std::string of = key == nullptr ? std::string() : redis_keys::of_key(*key);
  const RedisRange range{.after = of + redis_keys::of(after),
                         .before = key == nullptr ? std::string() : redis_keys::after_key(*key),
                         .limit = limit};
  return waiting_in(rows_.range(fmt::format("{}:{}", key == nullptr ? "ready" : "aside", queue), range));
}

std::uint64_t RedisJobs::count_ranked(QueueId queue, const std::string* key, Rank before, std::uint64_t most) {
  const std::string of = key == nullptr ? std::string() : redis_keys::of_key(*key);
  const RedisRange range{.after = of, .before = of + redis_keys::of(before)};
  return std::min(most, rows_.count(fmt::format("{}:{}", key == nullptr ? "ready" : "aside", queue), range));
}

// From key to key, some members at a time.
std::vector<std::string> RedisJobs::keys_set_aside(QueueId queue, const std::optional<std::string>& after,
                                                   std::size_t limit) {
  constexpr std::size_t kAtOnce = 32;
  std::vector<std::string> found;
  RedisRange range{.after = after ? redis_keys::after_key(*after) : std::string(), .limit = kAtOnce};
  while (found.size() < limit) {
    const std::vector<std::string> members = rows_.range(fmt::format("aside:{}", queue), range);
    for (const std::string& member : members) {
      std::string key = redis_keys::key_in(member);
      if (found.size() < limit && (found.empty() || found.back() != key)) found.push_back(std::move(key));
    }
    if (members.size() < kAtOnce) break;
    range.after = redis_keys::after_key(redis_keys::key_in(members.back()));
  }
  return found;
}

std::vector<WaitingJob> RedisJobs::load_delayed(QueueId queue, DueRank after, std::size_t limit) {
  return waiting_in(rows_.range(fmt::format("delayed:{}", queue), {.after = redis_keys::of(after), .limit = limit}));
}

}  // namespace argiope
