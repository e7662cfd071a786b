#include "store/jobs/memory_driver.hpp"

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

void MemoryDriver::mark() {
  marked_ = true;
  jobs_before_.clear();
  undo_.clear();
  schedules_.start();
  counters_before_ = counters_;
  queues_.mark();
}

void MemoryDriver::keep() {
  marked_ = false;
  jobs_before_.clear();
  undo_.clear();
  queues_.mark();
  schedules_.stop();
}

void MemoryDriver::take_back() {
  marked_ = false;
  // All out before any goes in: two of them may have had the same name at different times.
  for (const auto& [id, before] : jobs_before_) {
    if (jobs_.contains(id)) erase(JobRow{.id = id});
  }
  for (auto& [id, before] : jobs_before_) {
    if (!before) continue;
    const Job& again = jobs_.emplace(id, std::move(*before)).first->second;
    if (!again.name.empty()) names_[again.name] = id;
    index(again);
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
      of_queues_[ended.queue - 1].ended = ended.ended;
    }
  }
  queues_.take_back();
  of_queues_.resize(queues_.all().size());
  counters_ = counters_before_;
  schedules_.take_back();
}

// --- queues ----------------------------------------------------------------------------------------------------------

QueueId MemoryDriver::find_queue(std::string_view name) { return queues_.find(name); }

QueueId MemoryDriver::add_queue(const std::string& name, const QueueConfig& config) {
  const QueueId id = queues_.add(name, config);
  if (of_queues_.size() < id) of_queues_.emplace_back();
  return id;
}

void MemoryDriver::configure_queue(QueueId queue, const QueueConfig& config) { queues_.configure(queue, config); }

// --- rows ------------------------------------------------------------------------------------------------------------

void MemoryDriver::index(const Job& job) {
  const JobRow& row = job.row;
  Queue& queue = of_queues_[row.queue - 1];
  ++queue.counts.of(row.shown_state());
  if (row.has_ended()) {
    queue.ended_jobs[row.state].emplace(row.ended_ms, row.id);
    return;
  }
  if (!row.unique.empty()) uniques_[{row.queue, row.unique}] = row.id;
  if (row.runs()) return;
  if (row.state == RowState::ready) queue.ready.insert({row.rank, row.id});
  if (row.state == RowState::set_aside) queue.set_aside[row.key].insert({row.rank, row.id});
  if (row.state == RowState::delayed) queue.delayed.emplace(row.due_ms, row.id);
}

void MemoryDriver::unindex(const Job& job) {
  const JobRow& row = job.row;
  Queue& queue = of_queues_[row.queue - 1];
  --queue.counts.of(row.shown_state());
  if (row.has_ended()) {
    queue.ended_jobs[row.state].erase({row.ended_ms, row.id});
    return;
  }
  if (!row.unique.empty()) {
    const auto holder = uniques_.find({row.queue, row.unique});
    if (holder != uniques_.end() && holder->second == row.id) uniques_.erase(holder);
  }
  if (row.runs()) return;
  if (row.state == RowState::ready) queue.ready.erase({row.rank, row.id});
  if (row.state == RowState::set_aside) {
    const auto found = queue.set_aside.find(row.key);
    found->second.erase({row.rank, row.id});
    if (found->second.empty()) queue.set_aside.erase(found);
  }
  if (row.state == RowState::delayed) queue.delayed.erase({row.due_ms, row.id});
}

MemoryDriver::Job& MemoryDriver::changing(JobId id) {
  Job& job = jobs_.at(id);
  if (marked_) jobs_before_.try_emplace(id, job);
  return job;
}

std::optional<JobRow> MemoryDriver::load(JobId id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? std::nullopt : std::optional(found->second.row);
}

void MemoryDriver::insert(const JobRow& row, const NewJob& wanted, WallTime now) {
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
  index(added);
}

void MemoryDriver::save(const JobRow& before, const JobRow& after) {
  Job& job = changing(after.id);
  if (after.state == RowState::done && before.state != RowState::done) {
    std::uint64_t& ended = of_queues_[after.queue - 1].ended;
    remember_before([&] { return EndedBefore{after.queue, ended}; });
    ++ended;
  }
  unindex(job);
  job.row = after;
  if (before.runs() && !after.runs()) {
    job.worker.clear();
    job.lease_until = {};
  }
  index(job);
}

void MemoryDriver::erase(const JobRow& row) {
  Job& job = changing(row.id);
  unindex(job);
  if (!job.name.empty()) names_.erase(job.name);
  jobs_.erase(row.id);
}

std::optional<ErasedJob> MemoryDriver::erase_done(JobId id, std::uint64_t token) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || !found->second.row.runs() || found->second.row.token != token) return std::nullopt;
  const JobRow& row = found->second.row;
  const ErasedJob erased{(row.flags & JobRow::kHasDependants) != 0, row.schedule, row.run};
  std::uint64_t& ended = of_queues_[row.queue - 1].ended;
  remember_before([&] { return EndedBefore{row.queue, ended}; });
  ++ended;
  erase(row);
  return erased;
}

std::vector<JobId> MemoryDriver::erase_ended(QueueId queue, JobState state, WallTime before, std::size_t limit) {
  std::vector<JobId> old;
  for (const auto& [ended_ms, id] : of_queues_[queue - 1].ended_jobs[row_state(state)]) {
    if (ended_ms >= to_ms(before) || old.size() == limit) break;
    old.push_back(id);
  }
  for (const JobId id : old) erase(jobs_.at(id).row);
  return old;
}

// --- what rows do not say --------------------------------------------------------------------------------------------

void MemoryDriver::write_work(JobId id, const NewJob& wanted) {
  Job& job = changing(id);
  job.function = wanted.function;
  job.payload = wanted.payload;
  job.lease_ms = lease_ms(wanted.lease_time);
}

void MemoryDriver::write_attempt(JobId id, const Attempt& attempt, const std::string* result) {
  Job& job = changing(id);
  job.attempts.push_back(attempt);
  if (job.attempts.size() > kMostAttemptsKept) job.attempts.erase(job.attempts.begin());
  job.error = attempt.error;
  if (result != nullptr) job.result = *result;
}

void MemoryDriver::write_end(JobId id, const std::string& error, const std::string* result) {
  Job& job = changing(id);
  job.error = error;
  if (result != nullptr) job.result = *result;
  job.row.schedule = 0;
  job.row.run = 0;
}

void MemoryDriver::write_result(JobId id, const std::string& result) { changing(id).result = result; }
void MemoryDriver::write_error(JobId id, const std::string& error) { changing(id).error = error; }
std::string MemoryDriver::error_of(JobId id) { return jobs_.at(id).error; }

JobId MemoryDriver::find_name(const std::string& name) {
  const auto found = names_.find(name);
  return found == names_.end() ? 0 : found->second;
}

JobId MemoryDriver::find_unique(QueueId queue, const std::string& unique) {
  const auto found = uniques_.find({queue, unique});
  return found == uniques_.end() ? 0 : found->second;
}

// --- links -----------------------------------------------------------------------------------------------------------

void MemoryDriver::set_link(JobId waited_for, JobId job, bool there) {
  if (there) {
    dependants_.emplace(waited_for, job);
    waits_for_.emplace(job, waited_for);
  } else {
    dependants_.erase({waited_for, job});
    waits_for_.erase({job, waited_for});
  }
}

void MemoryDriver::link(JobId waited_for, JobId job) {
  remember_before([&] { return LinkBefore{waited_for, job, false}; });
  set_link(waited_for, job, true);
  changing(waited_for).row.flags |= JobRow::kHasDependants;
}

void MemoryDriver::unlink(JobId job) {
  for (const JobId other : waits_for(job, jobs_.max_size())) {
    remember_before([&] { return LinkBefore{other, job, true}; });
    set_link(other, job, false);
  }
}

std::vector<JobId> MemoryDriver::take_dependants(JobId waited_for) {
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

std::vector<JobId> MemoryDriver::waits_for(JobId job, std::size_t limit) {
  std::vector<JobId> found;
  each_second(waits_for_, job, [&](JobId other) {
    if (found.size() == limit) return false;
    found.push_back(other);
    return true;
  });
  return found;
}

std::string_view MemoryDriver::failure_of(JobId id) {
  const auto found = failures_.find(id % kFailuresRemembered);
  return found == failures_.end() || found->second.id != id ? std::string_view{} : found->second.how;
}

void MemoryDriver::set_failure(JobId id, std::string_view how) {
  if (how.empty() && failure_of(id).empty()) return;
  const JobId slot = id % kFailuresRemembered;
  Failure& failure = failures_[slot];
  remember_before([&] { return FailureBefore{slot, failure}; });
  failure = how.empty() ? Failure{} : Failure{id, how_failed(how)};
}

// --- requests --------------------------------------------------------------------------------------------------------

std::optional<KeptRequest> MemoryDriver::find_request(const std::string& key) {
  const auto found = requests_.find(key);
  return found == requests_.end() ? std::nullopt : std::optional(found->second);
}

void MemoryDriver::write_request(const RequestKey& key, WallTime at, const std::string& reply) {
  requests_.emplace(key.key, KeptRequest{key.digest, reply});
  request_keys_.emplace_back(at, key.key);
}

std::size_t MemoryDriver::prune_requests(WallTime before, std::size_t most, std::size_t limit) {
  std::size_t count = 0;
  for (; !request_keys_.empty() && count < limit; ++count) {
    const auto& [at, key] = request_keys_.front();
    if (at >= stored(before) && request_keys_.size() <= most) break;
    requests_.erase(key);
    request_keys_.pop_front();
  }
  return count;
}

// --- leases ----------------------------------------------------------------------------------------------------------

std::vector<std::optional<JobRecord>> MemoryDriver::lease(std::span<const LeaseRequest> leases) {
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
    unindex(job);
    job.row.token = lease.token;
    job.worker = lease.worker;
    job.is_remote = lease.remote;
    job.lease_until = from_ms(lease_end(lease, job.lease_ms));
    job.lease_is_old = false;
    index(job);
    records[i] = record_of(job);
  }
  return records;
}

void MemoryDriver::renew(std::span<const LeaseRequest> leases) {
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

void MemoryDriver::reopen() {
  for (auto& [id, job] : jobs_) job.lease_is_old = job.row.runs();
}

std::vector<OldLease> MemoryDriver::old_leases() {
  std::vector<OldLease> old;
  for (const auto& [id, job] : jobs_) {
    if (job.row.runs() && job.lease_is_old) {
      old.push_back({id, job.row.token, job.lease_until, job.worker, job.is_remote});
    }
  }
  return old;
}

std::optional<std::int64_t> MemoryDriver::recall(const std::string& name) {
  const auto found = remembered_.find(name);
  return found == remembered_.end() ? std::nullopt : std::optional(found->second);
}

// --- shelves ---------------------------------------------------------------------------------------------------------

const MemoryDriver::Ranked& MemoryDriver::ranked(QueueId queue, const std::string* key) const {
  static const Ranked kNone;
  const Queue& of = of_queues_[queue - 1];
  if (key == nullptr) return of.ready;
  const auto found = of.set_aside.find(*key);
  return found == of.set_aside.end() ? kNone : found->second;
}

std::vector<WaitingJob> MemoryDriver::load_ranked(QueueId queue, const std::string* key, Rank after,
                                                  std::size_t limit) {
  std::vector<WaitingJob> found;
  const Ranked& shelf = ranked(queue, key);
  for (auto it = shelf.upper_bound(after); it != shelf.end() && found.size() < limit; ++it) {
    found.push_back(waiting(jobs_.at(it->id).row));
  }
  return found;
}

std::uint64_t MemoryDriver::count_ranked(QueueId queue, const std::string* key, Rank before, std::uint64_t most) {
  std::uint64_t count = 0;
  const Ranked& shelf = ranked(queue, key);
  for (auto it = shelf.begin(); it != shelf.end() && count < most && more_important(*it, before); ++it) ++count;
  return count;
}

std::vector<std::string> MemoryDriver::keys_set_aside(QueueId queue, const std::optional<std::string>& after,
                                                      std::size_t limit) {
  std::vector<std::string> keys;
  const auto& all = of_queues_[queue - 1].set_aside;
  for (auto it = after ? all.upper_bound(*after) : all.begin(); it != all.end() && keys.size() < limit; ++it) {
    keys.push_back(it->first);
  }
  return keys;
}

std::vector<WaitingJob> MemoryDriver::load_delayed(QueueId queue, DueRank after, std::size_t limit) {
  std::vector<WaitingJob> found;
  const auto& delayed = of_queues_[queue - 1].delayed;
  for (auto it = delayed.upper_bound({to_ms(after.due_at), after.id}); it != delayed.end() && found.size() < limit; ++it) {
    found.push_back(waiting(jobs_.at(it->second).row));
  }
  return found;
}

// --- to look at ------------------------------------------------------------------------------------------------------

JobRecord MemoryDriver::record_of(const Job& job) const {
  JobRecord record = brief_of(job);
  record.payload = job.payload;
  record.result = job.result;
  return record;
}

// Without payload and result.
JobRecord MemoryDriver::brief_of(const Job& job) const {
  const JobRow& row = job.row;
  return {.id = row.id,
          .name = job.name,
          .queue = queues_.all()[row.queue - 1].name,
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

std::optional<JobRecord> MemoryDriver::record(JobId id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? std::nullopt : std::optional(record_of(found->second));
}

std::vector<Attempt> MemoryDriver::attempts(JobId id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? std::vector<Attempt>{} : found->second.attempts;
}

JobSlice MemoryDriver::list(const JobFilter& filter) {
  JobSlice slice{.jobs = {}, .after = filter.after, .is_last = true};
  const QueueId queue = find_queue(filter.queue);
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

std::vector<QueueCounts> MemoryDriver::counts() {
  std::vector<QueueCounts> all;
  for (std::size_t i = 0; i < of_queues_.size(); ++i) {
    all.push_back({static_cast<QueueId>(i + 1), of_queues_[i].counts, of_queues_[i].ended});
  }
  return all;
}

// --- schedules -------------------------------------------------------------------------------------------------------

bool MemoryDriver::advance(const FireRequest& step, std::uint64_t entries, std::uint32_t started) {
  return schedules_.advance(step.id, step.version, entries, step.place, started);
}
void MemoryDriver::write_runs(const FireRequest& step, const std::vector<ScheduleRun>& runs) {
  if (step.amended) schedules_.write(step.id, *step.amended);
  for (const ScheduleRun& run : runs) schedules_.write(step.id, run);
}
void MemoryDriver::take_off_started(ScheduleId id, std::uint32_t count) { schedules_.take_off_started(id, count); }
void MemoryDriver::end_run(const EndedRun& run, WallTime at, std::string_view error, std::string_view result) {
  schedules_.end_run(run, at, error, result);
}

std::vector<PutScheduleReply> MemoryDriver::put_schedules(const std::vector<PutSchedule>& schedules) {
  return schedules_.put(schedules);
}
bool MemoryDriver::erase_schedule(ScheduleId id) { return schedules_.erase(id); }
std::vector<StoredSchedule> MemoryDriver::schedules(const ScheduleFilter& filter) { return schedules_.list(filter); }
std::optional<StoredSchedule> MemoryDriver::schedule(ScheduleId id) { return schedules_.get(id); }
std::optional<StoredSchedule> MemoryDriver::find_schedule(const std::string& name) { return schedules_.find(name); }
std::optional<ScheduleView> MemoryDriver::look_at_schedule(const ScheduleLook& look) { return schedules_.look(look); }
std::optional<ScheduleRun> MemoryDriver::schedule_run(ScheduleId id, std::uint64_t number) {
  return schedules_.run(id, number);
}
std::vector<ScheduleRun> MemoryDriver::schedule_runs(ScheduleId id, std::size_t limit) {
  return schedules_.runs(id, limit);
}
std::optional<ScheduleOutput> MemoryDriver::schedule_output(ScheduleId id) { return schedules_.output(id); }

}  // namespace argiope
