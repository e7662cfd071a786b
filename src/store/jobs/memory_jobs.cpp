#include "store/jobs/memory_jobs.hpp"

#include <algorithm>
#include <ranges>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/job_tally.hpp"
#include "jobs/internal/job_transitions.hpp"
#include "store/jobs/internal/job_range.hpp"

namespace argiope {

using namespace job_rules;

namespace {

// Those of `rows` that belong to `first`, in order.
template <class Visit>
void each_second(const std::set<std::pair<JobId, JobId>>& pairs, JobId first, Visit visit) {
  for (auto it = pairs.lower_bound({first, 0}); it != pairs.end() && it->first == first; ++it) {
    if (!visit(it->second)) return;
  }
}

}  // namespace

// --- what can be taken back ------------------------------------------------------------------------------------------

void MemoryJobs::mark() {
  marked_ = true;
  jobs_before_.clear();
  undo_.clear();
}

void MemoryJobs::keep() {
  marked_ = false;
  jobs_before_.clear();
  undo_.clear();
}

void MemoryJobs::take_back() {
  marked_ = false;
  // All out before any goes in: two of them may have had the same name at different times.
  for (const auto& [id, before] : jobs_before_) {
    if (jobs_.contains(id)) erase(JobRow{.id = id});
  }
  for (auto& [id, before] : jobs_before_) {
    if (!before) continue;
    const Job& again = jobs_.emplace(id, std::move(*before)).first->second;
    if (!again.name.empty()) names_[again.name] = id;
    queues_.index(again.row);
  }
  jobs_before_.clear();
  for (; !undo_.empty(); undo_.pop_back()) {
    Before& before = undo_.back();
    if (const auto* link = std::get_if<LinkBefore>(&before)) {
      set_link(link->waited_for, link->job, link->was_there);
    } else if (const auto* failure = std::get_if<FailureBefore>(&before)) {
      failures_[failure->slot] = failure->failure;
    } else {
      const auto& ended = std::get<EndedBefore>(before);
      queues_.of(ended.queue).ended = ended.ended;
    }
  }
}

// --- rows ------------------------------------------------------------------------------------------------------------

MemoryJobs::Job& MemoryJobs::changing(JobId id) {
  Job& job = jobs_.at(id);
  if (marked_) jobs_before_.try_emplace(id, job);
  return job;
}

std::optional<JobRow> MemoryJobs::load(JobId id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? std::nullopt : std::optional(found->second.row);
}

void MemoryJobs::insert(const JobRow& row, const NewJob& wanted, WallTime now) {
  if (marked_) jobs_before_.try_emplace(row.id, std::nullopt);
  Job job{.row = row,
          .name = wanted.name,
          .function = wanted.function,
          .payload = wanted.payload,
          .max_attempts = wanted.max_attempts,
          .lease_ms = lease_ms(wanted.lease_time),
          .created_at = now};
  const Job& added = jobs_.emplace(row.id, std::move(job)).first->second;
  if (!added.name.empty()) names_[added.name] = row.id;
  queues_.index(added.row);
}

void MemoryJobs::save(const JobRow& before, const JobRow& after) {
  Job& job = changing(after.id);
  if (after.state == RowState::done && before.state != RowState::done) {
    std::uint64_t& ended = queues_.of(after.queue).ended;
    remember_before([&] { return EndedBefore{after.queue, ended}; });
    ++ended;
  }
  queues_.unindex(job.row);
  job.row = after;
  if (before.runs() && !after.runs()) {
    job.worker.clear();
    job.lease_until = {};
  }
  queues_.index(job.row);
}

void MemoryJobs::erase(const JobRow& row) {
  Job& job = changing(row.id);
  queues_.unindex(job.row);
  if (!job.name.empty()) names_.erase(job.name);
  jobs_.erase(row.id);
}

std::optional<ErasedJob> MemoryJobs::erase_done(JobId id, std::uint64_t token) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || !found->second.row.runs() || found->second.row.token != token) return std::nullopt;
  const JobRow& row = found->second.row;
  const ErasedJob erased{(row.flags & JobRow::kHasDependants) != 0, row.schedule, row.run};
  std::uint64_t& ended = queues_.of(row.queue).ended;
  remember_before([&] { return EndedBefore{row.queue, ended}; });
  ++ended;
  erase(row);
  return erased;
}

std::vector<JobId> MemoryJobs::erase_ended(QueueId queue, JobState state, WallTime before, std::size_t limit) {
  std::vector<JobId> old;
  for (const auto& [ended_ms, id] : queues_.of(queue).ended_jobs[row_state(state)]) {
    if (ended_ms >= to_ms(before) || old.size() == limit) break;
    old.push_back(id);
  }
  for (const JobId id : old) erase(jobs_.at(id).row);
  return old;
}

// --- what rows do not say --------------------------------------------------------------------------------------------

void MemoryJobs::write_work(JobId id, const NewJob& wanted) {
  Job& job = changing(id);
  job.function = wanted.function;
  job.payload = wanted.payload;
  job.lease_ms = lease_ms(wanted.lease_time);
}

void MemoryJobs::write_attempt(JobId id, const Attempt& attempt, const std::string* result) {
  Job& job = changing(id);
  job.attempts.push_back(attempt);
  if (job.attempts.size() > kMostAttemptsKept) job.attempts.erase(job.attempts.begin());
  job.error = attempt.error;
  if (result != nullptr) job.result = *result;
}

void MemoryJobs::write_end(JobId id, const std::string& error, const std::string* result) {
  Job& job = changing(id);
  job.error = error;
  if (result != nullptr) job.result = *result;
  job.row.schedule = 0;
  job.row.run = 0;
}

void MemoryJobs::write_result(JobId id, const std::string& result) { changing(id).result = result; }
void MemoryJobs::write_error(JobId id, const std::string& error) { changing(id).error = error; }
std::string MemoryJobs::error_of(JobId id) { return jobs_.at(id).error; }

JobId MemoryJobs::find_name(const std::string& name) {
  const auto found = names_.find(name);
  return found == names_.end() ? 0 : found->second;
}

// --- links -----------------------------------------------------------------------------------------------------------

void MemoryJobs::set_link(JobId waited_for, JobId job, bool there) {
  if (there) {
    dependants_.emplace(waited_for, job);
    waits_for_.emplace(job, waited_for);
  } else {
    dependants_.erase({waited_for, job});
    waits_for_.erase({job, waited_for});
  }
}

void MemoryJobs::link(JobId waited_for, JobId job) {
  remember_before([&] { return LinkBefore{waited_for, job, false}; });
  set_link(waited_for, job, true);
  changing(waited_for).row.flags |= JobRow::kHasDependants;
}

void MemoryJobs::unlink(JobId job) {
  for (const JobId other : waits_for(job, jobs_.max_size())) {
    remember_before([&] { return LinkBefore{other, job, true}; });
    set_link(other, job, false);
  }
}

std::vector<JobId> MemoryJobs::take_dependants(JobId waited_for) {
  std::vector<JobId> taken;
  each_second(dependants_, waited_for, [&](JobId job) {
    taken.push_back(job);
    return true;
  });
  for (const JobId job : taken) {
    remember_before([&] { return LinkBefore{waited_for, job, true}; });
    set_link(waited_for, job, false);
  }
  return taken;
}

std::vector<JobId> MemoryJobs::waits_for(JobId job, std::size_t limit) {
  std::vector<JobId> found;
  each_second(waits_for_, job, [&](JobId other) {
    if (found.size() == limit) return false;
    found.push_back(other);
    return true;
  });
  return found;
}

std::string_view MemoryJobs::failure_of(JobId id) {
  const auto found = failures_.find(id % kFailuresRemembered);
  return found == failures_.end() || found->second.id != id ? std::string_view{} : found->second.how;
}

void MemoryJobs::set_failure(JobId id, std::string_view how) {
  if (how.empty() && failure_of(id).empty()) return;
  const JobId slot = id % kFailuresRemembered;
  Failure& failure = failures_[slot];
  remember_before([&] { return FailureBefore{slot, failure}; });
  failure = how.empty() ? Failure{} : Failure{id, how_failed(how)};
}

// --- leases ----------------------------------------------------------------------------------------------------------

std::vector<std::optional<JobRecord>> MemoryJobs::lease(std::span<const LeaseRequest> leases) {
  std::vector<std::optional<JobRecord>> records(leases.size());
  LeasedBytes bytes;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const LeaseRequest& lease = leases[i];
    counters_.last_token = lease.token;
    if (bytes.is_full()) {
      records[i] = left_as_it_is(lease.id);
      continue;
    }
    const auto found = jobs_.find(lease.id);
    if (found == jobs_.end() || found->second.row.runs() || !is_leasable(found->second.row.state)) continue;
    if (!bytes.take(found->second.payload.size() + found->second.result.size())) {
      records[i] = left_as_it_is(lease.id);
      continue;
    }
    Job& job = changing(lease.id);
    queues_.unindex(job.row);
    job.row.token = lease.token;
    job.worker = lease.worker;
    job.is_remote = lease.remote;
    job.lease_until = from_ms(lease_end(lease, job.lease_ms));
    job.lease_is_old = false;
    queues_.index(job.row);
    records[i] = record_of(job);
  }
  return records;
}

void MemoryJobs::renew(std::span<const LeaseRequest> leases) {
  for (const LeaseRequest& lease : leases) {
    const auto found = jobs_.find(lease.id);
    if (found == jobs_.end() || !found->second.row.runs() || found->second.row.token != lease.token) continue;
    Job& job = changing(lease.id);
    job.worker = lease.worker;
    job.is_remote = lease.remote;
    job.lease_until = stored(lease.until);
    job.lease_is_old = false;
  }
}

void MemoryJobs::reopen() {
  for (auto& [id, job] : jobs_) job.lease_is_old = job.row.runs();
}

std::vector<OldLease> MemoryJobs::old_leases() const {
  std::vector<OldLease> old;
  for (const auto& [id, job] : jobs_) {
    if (job.row.runs() && job.lease_is_old) {
      old.push_back({id, job.row.token, job.lease_until, job.worker, job.is_remote});
    }
  }
  return old;
}

// --- shelves ---------------------------------------------------------------------------------------------------------

std::vector<WaitingJob> MemoryJobs::load_ranked(QueueId queue, const std::string* key, Rank after, std::size_t limit) {
  std::vector<WaitingJob> found;
  const MemoryQueues::Ranked& shelf = queues_.ranked(queue, key);
  for (auto it = shelf.upper_bound(after); it != shelf.end() && found.size() < limit; ++it) {
    found.push_back(waiting(jobs_.at(it->id).row));
  }
  return found;
}

std::uint64_t MemoryJobs::count_ranked(QueueId queue, const std::string* key, Rank before, std::uint64_t most) {
  std::uint64_t count = 0;
  const MemoryQueues::Ranked& shelf = queues_.ranked(queue, key);
  for (auto it = shelf.begin(); it != shelf.end() && count < most && more_important(*it, before); ++it) ++count;
  return count;
}

std::vector<std::string> MemoryJobs::keys_set_aside(QueueId queue, const std::optional<std::string>& after,
                                                    std::size_t limit) {
  std::vector<std::string> keys;
  const auto& all = queues_.of(queue).set_aside;
  for (auto it = after ? all.upper_bound(*after) : all.begin(); it != all.end() && keys.size() < limit; ++it) {
    keys.push_back(it->first);
  }
  return keys;
}

std::vector<WaitingJob> MemoryJobs::load_delayed(QueueId queue, DueRank after, std::size_t limit) {
  std::vector<WaitingJob> found;
  const auto& delayed = queues_.of(queue).delayed;
  for (auto it = delayed.upper_bound({to_ms(after.due_at), after.id}); it != delayed.end() && found.size() < limit;
       ++it) {
    found.push_back(waiting(jobs_.at(it->second).row));
  }
  return found;
}

// --- to look at ------------------------------------------------------------------------------------------------------

JobRecord MemoryJobs::record_of(const Job& job) const {
  JobRecord record = brief_of(job);
  record.payload = job.payload;
  record.result = job.result;
  return record;
}

// Without payload and result.
JobRecord MemoryJobs::brief_of(const Job& job) const {
  const JobRow& row = job.row;
  return {.id = row.id,
          .name = job.name,
          .queue = queues_.name_of(row.queue),
          .key = row.key,
          .unique = row.unique,
          .state = row.shown_state(),
          .priority = row.priority,
          .due_at = from_ms(row.due_ms),
          .function = job.function,
          .payload = {},
          .attempts = row.attempts,
          .max_attempts = job.max_attempts,
          .expiries = row.expiries,
          .tally = job_tally::tally_of(row.tally, row.attempts, row.expiries, row.runs()),
          .lease_time = std::chrono::milliseconds{job.lease_ms},
          .pending = row.pending,
          .if_failed = row.cancelled_with_others ? DependencyPolicy::cancel : DependencyPolicy::run,
          .created_at = job.created_at,
          .ended_at = from_ms(row.ended_ms),
          .result = {},
          .error = job.error,
          .token = row.token,
          .worker = job.worker,
          .lease_until = job.lease_until,
          .cancel_asked = row.runs() && (row.flags & JobRow::kCancelAsked) != 0,
          .schedule = row.schedule,
          .run = row.run};
}

std::optional<JobRecord> MemoryJobs::record(JobId id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? std::nullopt : std::optional(record_of(found->second));
}

std::vector<Attempt> MemoryJobs::attempts(JobId id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? std::vector<Attempt>{} : found->second.attempts;
}

JobSlice MemoryJobs::list(const JobFilter& filter) {
  JobSlice slice{.jobs = {}, .after = filter.after, .is_last = true};
  const QueueId queue = queues_.find(filter.queue);
  if (!filter.queue.empty() && queue == 0) return slice;
  if (!jobs_.empty()) slice.newest = jobs_.rbegin()->first;
  std::size_t bytes = 0;
  const JobRange range = range_of(filter);
  // False: the slice ends before that job.
  const auto look_at = [&](const auto& at) {
    slice.is_last = slice.jobs.size() < filter.limit && slice.looked < filter.most_looked && bytes < filter.most_bytes;
    if (!slice.is_last) return false;
    ++slice.looked;
    slice.after = at.first;
    const JobRow& row = at.second.row;
    if ((queue != 0 && row.queue != queue) || (filter.key && row.key != *filter.key)) return true;
    const bool is_wanted = !filter.state || is_listed_as(*filter.state, row.shown_state(), row.pending,
                                                         from_ms(row.due_ms), filter.due_by);
    if (!is_wanted) return true;
    slice.jobs.push_back(filter.payloads ? record_of(at.second) : brief_of(at.second));
    bytes += slice.jobs.back().payload.size() + slice.jobs.back().result.size();
    return true;
  };
  if (range.is_empty()) return slice;
  const std::ranges::subrange all(jobs_.lower_bound(range.first), jobs_.upper_bound(range.last));
  (void)(filter.newest_first ? std::ranges::all_of(all | std::views::reverse, look_at)
                             : std::ranges::all_of(all, look_at));
  return slice;
}

}  // namespace argiope
