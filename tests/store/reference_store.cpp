#include "store/reference_store.hpp"

#include <algorithm>
#include <deque>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/schedule_rules.hpp"

namespace argiope {

using namespace job_rules;

namespace {

JobState state_on(Shelf shelf) {
  return shelf == Shelf::ready || shelf == Shelf::set_aside ? JobState::ready : JobState::delayed;
}

}  // namespace

// --- jobs and what follows from them ---------------------------------------------------------------------------------

ReferenceStore::Job* ReferenceStore::find(JobId id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

bool ReferenceStore::leasable(const Job& job) {
  return (job.record.state == JobState::ready || job.record.state == JobState::delayed) && job.shelf != Shelf::waiting;
}

void ReferenceStore::index(const Job& job) {
  Queue& queue = queues_[job.queue - 1];
  const JobRecord& record = job.record;
  ++queue.counts.of(record.state);
  if (!record.name.empty()) names_[record.name] = record.id;
  if (has_ended(record.state)) {
    queue.ended_jobs[record.state].insert({record.ended_at, record.id});
    return;
  }
  if (!record.unique.empty()) uniques_[{job.queue, record.unique}] = record.id;
  if (record.state == JobState::running) return;
  if (job.shelf == Shelf::ready) queue.ready.insert({job.rank, record.id});
  if (job.shelf == Shelf::set_aside) queue.set_aside[record.key].insert({job.rank, record.id});
  if (job.shelf == Shelf::delayed) queue.delayed.insert({record.due_at, record.id});
}

void ReferenceStore::unindex(const Job& job) {
  Queue& queue = queues_[job.queue - 1];
  const JobRecord& record = job.record;
  --queue.counts.of(record.state);
  if (!record.name.empty()) names_.erase(record.name);
  if (has_ended(record.state)) {
    queue.ended_jobs[record.state].erase({record.ended_at, record.id});
    return;
  }
  if (!record.unique.empty()) uniques_.erase({job.queue, record.unique});
  if (record.state == JobState::running) return;
  if (job.shelf == Shelf::ready) queue.ready.erase({job.rank, record.id});
  if (job.shelf == Shelf::set_aside) {
    const auto found = queue.set_aside.find(record.key);
    found->second.erase({job.rank, record.id});
    if (found->second.empty()) queue.set_aside.erase(found);
  }
  if (job.shelf == Shelf::delayed) queue.delayed.erase({record.due_at, record.id});
}

void ReferenceStore::remember_for_undo(JobId id) {
  if (undo_.jobs.contains(id)) return;
  const Job* job = find(id);
  undo_.jobs.emplace(id, job == nullptr ? std::nullopt : std::optional(*job));
}

template <class How>
void ReferenceStore::alter(JobId id, How how) {
  remember_for_undo(id);
  Job& job = jobs_.at(id);
  unindex(job);
  how(job);
  index(job);
}

void ReferenceStore::add(Job job) {
  const JobId id = job.record.id;
  remember_for_undo(id);
  index(jobs_.emplace(id, std::move(job)).first->second);
}

void ReferenceStore::erase(JobId id) {
  remember_for_undo(id);
  unindex(jobs_.at(id));
  jobs_.erase(id);
}

template <class Act>
auto ReferenceStore::atomically(Act act) -> decltype(act()) {
  std::lock_guard lock(mutex_);
  return all_or_nothing(std::move(act));
}

template <class Act>
auto ReferenceStore::all_or_nothing(Act act) -> decltype(act()) {
  undo_ = {.queues = queues_.size(), .last_id = last_id_, .last_chosen_id = last_chosen_id_};
  schedules_.start();
  auto result = act();
  if (!result) take_back();
  return result;
}

void ReferenceStore::take_back() {
  // All out before any goes in: two of them may have had the same name at different times.
  for (const auto& [id, before] : undo_.jobs) {
    if (const Job* job = find(id)) {
      unindex(*job);
      jobs_.erase(id);
    }
  }
  for (auto& [id, before] : undo_.jobs) {
    if (before) index(jobs_.emplace(id, std::move(*before)).first->second);
  }
  for (const auto& [id, ended] : undo_.ended) queues_[id - 1].ended = ended;
  for (const auto& [id, config] : undo_.made_again) {
    queues_[id - 1].is_erased = true;
    queues_[id - 1].config = config;
  }
  while (queues_.size() > undo_.queues) {
    queue_ids_.erase(queues_.back().name);
    queues_.pop_back();
  }
  last_id_ = undo_.last_id;
  last_chosen_id_ = undo_.last_chosen_id;
  for (; !undo_.failed.empty(); undo_.failed.pop_back()) {
    failed_[undo_.failed.back().first] = undo_.failed.back().second;
  }
  orphans_.clear();
  schedules_.take_back();
}

WaitingJob ReferenceStore::waiting(const Job& job) const {
  const JobRecord& record = job.record;
  return {record.id, job.queue, record.key, job.rank, record.due_at, record.attempts, record.expiries, job.shelf};
}

// --- queues ----------------------------------------------------------------------------------------------------------

QueueId ReferenceStore::queue_of(const std::string& name, const QueueConfig& config) {
  const auto [found, added] = queue_ids_.try_emplace(name, static_cast<QueueId>(queues_.size() + 1));
  if (added) queues_.push_back({.name = name, .config = config});
  Queue& queue = queues_[found->second - 1];
  if (queue.is_erased) {
    undo_.made_again.emplace_back(found->second, queue.config);
    queue.is_erased = false;
    queue.config = config;
  }
  return found->second;
}

Coro<Result<StoredQueue>> ReferenceStore::open_queue(std::string name, QueueConfig config) {
  return call([this, name = std::move(name), config = std::move(config)] {
    return atomically([&]() -> Result<StoredQueue> {
      if (name.empty()) return fail(Errc::invalid_input, "a queue needs a name");
      if (auto fits = check_name("queue", name); !fits) return std::unexpected(fits.error());
      auto kept = stored(config);
      if (!kept) return std::unexpected(kept.error());
      const QueueId id = queue_of(name, *kept);
      return StoredQueue{id, name, queues_[id - 1].config};
    });
  });
}

Coro<Result<void>> ReferenceStore::configure(QueueId id, QueueConfig config) {
  return call([this, id, config = std::move(config)] {
    return atomically([&]() -> Result<void> {
      if (queue(id) == nullptr) return std::unexpected(unknown_queue(id));
      auto kept = stored(config);
      if (!kept) return std::unexpected(kept.error());
      queue(id)->config = std::move(*kept);
      return {};
    });
  });
}

Coro<Result<std::vector<StoredQueue>>> ReferenceStore::queues() {
  return call([this]() -> Result<std::vector<StoredQueue>> {
    std::lock_guard lock(mutex_);
    std::vector<StoredQueue> all;
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      if (!queues_[i].is_erased) all.push_back({static_cast<QueueId>(i + 1), queues_[i].name, queues_[i].config});
    }
    return all;
  });
}

Coro<Result<void>> ReferenceStore::erase_queue(QueueId id) {
  return call([this, id] {
    return atomically([&]() -> Result<void> {
      if (queue(id) == nullptr) return std::unexpected(unknown_queue(id));
      if (queue(id)->counts != StateCounts{}) return std::unexpected(not_empty(queue(id)->name));
      queue(id)->is_erased = true;
      return {};
    });
  });
}

// --- put -------------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<Result<PutReply>>>> ReferenceStore::put(std::vector<PutRequest> requests, WallTime now,
                                                                Refusal refusal) {
  return call([this, requests = std::move(requests), now, refusal]() -> Result<std::vector<Result<PutReply>>> {
    std::lock_guard lock(mutex_);
    return put_all(requests, now, refusal);
  });
}

Result<std::vector<Result<PutReply>>> ReferenceStore::put_all(const std::vector<PutRequest>& requests, WallTime now,
                                                              Refusal refusal) {
  std::vector<Result<PutReply>> replies;
  std::vector<JobId> before;
  const auto put = [&](const PutRequest& request) -> Result<PutReply> {
    auto reply =
        refusal == Refusal::whole ? put_in_reach(request, stored(now), before) : put_one(request, stored(now), before);
    if (reply) before.push_back(reply->id);
    return reply;
  };
  if (refusal == Refusal::alone) {
    for (const PutRequest& request : requests) {
      auto good = check_plain(request);
      replies.push_back(good ? all_or_nothing([&] { return put(request); }) : std::unexpected(std::move(good.error())));
    }
    return replies;
  }
  if (auto good = check_plain(requests); !good) return std::unexpected(std::move(good.error()));
  const auto all = all_or_nothing([&]() -> Result<void> {
    for (const PutRequest& request : requests) {
      replies.push_back(put(request));
      if (!replies.back()) return std::unexpected(replies.back().error());
    }
    return {};
  });
  if (!all) return std::unexpected(all.error());
  return replies;
}

// --- requests with a key ---------------------------------------------------------------------------------------------

Coro<Result<OnceReply>> ReferenceStore::once(OnceRequest request) {
  return call([this, request = std::move(request)]() -> Result<OnceReply> {
    std::lock_guard lock(mutex_);
    return do_once(request);
  });
}

Result<OnceReply> ReferenceStore::do_once(const OnceRequest& request) {
  if (auto good = check(request.key); !good) return std::unexpected(good.error());
  for (const Request& known : requests_) {
    if (known.key.key != request.key.key) continue;
    if (known.key.digest != request.key.digest) return OnceReply{.how = Repetition::mismatch};
    return known.reply;
  }
  OnceReply reply;
  if (request.only_look) return reply;
  std::vector<PutRequest> good;
  for (const auto& put : request.puts) {
    if (put) good.push_back(*put);
  }
  if (!request.puts.empty()) {
    auto put = put_all(good, request.now, request.refusal);
    if (!put) return std::unexpected(put.error());
    std::size_t next = 0;
    for (const auto& wanted : request.puts) {
      reply.puts.push_back(wanted ? std::move((*put)[next++]) : std::unexpected(wanted.error()));
    }
  }
  reply.settlements = settle_all(request.settlements);
  for (std::size_t i = 0; i < std::min(request.refused.size(), reply.settlements.size()); ++i) {
    if (request.refused[i] && reply.settlements[i].settled) reply.settlements[i].refused = request.refused[i];
  }
  for (const Change& change : request.changes) reply.changes.push_back(change_one(change));
  // What is told again is less.
  OnceReply again{.how = Repetition::repeated};
  const auto brief = [](const PutReply& put) { return PutReply{put.outcome, put.id, {}}; };
  for (const auto& put : reply.puts) {
    again.puts.push_back(put ? Result<PutReply>(brief(*put)) : std::unexpected(put.error()));
  }
  for (const SettleReply& settled : reply.settlements) {
    SettleReply& told = again.settlements.emplace_back();
    told.refused = settled.refused;
    if (told.refused) continue;
    told.settled = settled.settled;
    told.outcome = settled.outcome;
    for (const PutReply& put : settled.follow_ups) told.follow_ups.push_back(brief(put));
  }
  for (const ChangeReply& change : reply.changes) again.changes.push_back({.outcome = change.outcome});
  requests_.push_back({request.key, stored(request.now), std::move(again)});
  return reply;
}

Coro<Result<std::size_t>> ReferenceStore::prune_requests(WallTime before, std::size_t most, std::size_t limit) {
  return call([this, before, most, limit]() -> Result<std::size_t> {
    std::lock_guard lock(mutex_);
    std::size_t count = 0;
    while (count < limit && !requests_.empty()) {
      if (requests_.front().at >= stored(before) && requests_.size() <= most) break;
      requests_.erase(requests_.begin());
      ++count;
    }
    return count;
  });
}

Result<PutReply> ReferenceStore::put_one(const PutRequest& request, WallTime now, std::span<const JobId> before,
                                         ScheduleId schedule) {
  const NewJob& wanted = request.job;
  const auto reaches = [&](const Job& job) { return wanted.within == nullptr || (*wanted.within)(job.record.queue); };
  const auto same = [&](JobId id) {
    return reaches(jobs_.at(id)) ? PutReply{PutOutcome::kept, id, {}} : PutReply{PutOutcome::taken, 0, {}};
  };
  if (wanted.id != 0 && find(wanted.id) != nullptr) return same(wanted.id);
  if (!wanted.name.empty()) {
    if (const auto named = names_.find(wanted.name); named != names_.end()) return same(named->second);
  }
  const QueueId queue_id = queue_of(wanted.queue, {});
  JobId runs_now = 0;
  if (!wanted.unique.empty()) {
    if (const auto holder = uniques_.find({queue_id, wanted.unique}); holder != uniques_.end()) {
      Job& job = jobs_.at(holder->second);
      if (job.record.state != JobState::running) return put_on(job, request, now);
      if (!wanted.run_again) return PutReply{PutOutcome::kept, job.record.id, {}};
      runs_now = job.record.id;
    }
  }
  Job job;
  JobRecord& record = job.record;
  record.id = wanted.id != 0 ? wanted.id : next_id();
  if (record.id > kMostJobId) return std::unexpected(no_ids_left());
  if (wanted.batch == record.id) return std::unexpected(no_batch(wanted.batch));
  Failed failed;
  const auto wait_for = [&](JobId other) {
    const Job* waited_for = find(other);
    if (waited_for != nullptr && !has_ended(waited_for->record.state)) {
      job.waits_for.insert(other);
    } else if (failed.id == 0) {
      failed = failure_of(other);
    }
  };
  for (const JobId other : wanted.waits_for) {
    if (!was_given(other)) {
      return std::unexpected(wanted.within == nullptr ? not_yet_there(other) : out_of_reach("waits_for", other));
    }
    if (const Job* there = find(other); there != nullptr && !reaches(*there))
      return std::unexpected(out_of_reach("waits_for", other));
    wait_for(other);
  }
  if (request.waits_for_those_before) {
    for (const JobId id : before) wait_for(id);
  }
  const bool is_cancelled = failed.id != 0 && runs_now == 0 && wanted.if_failed == DependencyPolicy::cancel;
  if (runs_now != 0) {
    job.waits_for.insert(runs_now);
    alter(runs_now, [](Job& running) { running.record.unique.clear(); });
  }
  if (was_given(record.id)) remember_failed(record.id, {});
  JobId& last = wanted.id > kMostCountedId ? last_chosen_id_ : last_id_;
  last = std::max(last, record.id);
  record.name = wanted.name;
  record.queue = wanted.queue;
  record.key = wanted.key;
  record.unique = wanted.unique;
  record.priority = wanted.priority;
  record.due_at = stored(wanted.due_at);
  record.function = wanted.function;
  record.payload = wanted.payload;
  record.max_attempts = wanted.max_attempts;
  record.lease_time = std::chrono::ceil<std::chrono::milliseconds>(wanted.lease_time);
  record.if_failed = runs_now != 0 ? DependencyPolicy::run : wanted.if_failed;
  record.pending = static_cast<std::uint32_t>(job.waits_for.size());
  record.created_at = now;
  if (!is_cancelled) {
    record.schedule = schedule;
    record.run = request.run;
  }
  job.queue = queue_id;
  const Place at = place(record.priority, record.due_at, now, request.set_aside, queue(queue_id)->config.ageing);
  job.rank = at.rank;
  job.shelf = job.waits_for.empty() ? at.shelf : Shelf::waiting;
  record.state = state_on(job.shelf);
  for (const JobId other : job.waits_for) {
    alter(other, [&](Job& waited_for) { waited_for.dependants.insert(record.id); });
  }
  add(job);
  if (wanted.batch != 0) {
    const Job* whole = find(wanted.batch);
    if (wanted.within != nullptr && (whole == nullptr || !reaches(*whole)))
      return std::unexpected(out_of_reach("batch", wanted.batch));
    if (auto joined = join_batch(wanted.batch, job); !joined) return std::unexpected(joined.error());
  }
  if (is_cancelled) return PutReply{PutOutcome::cancelled, record.id, {}, cancel_at_put(record.id, failed, now)};
  const PutOutcome outcome = runs_now != 0 ? PutOutcome::run_again : PutOutcome::added;
  return PutReply{outcome, record.id, waiting(jobs_.at(record.id))};
}

// As part of a call that is done as a whole.
Result<PutReply> ReferenceStore::put_in_reach(const PutRequest& request, WallTime now, std::span<const JobId> before) {
  auto reply = put_one(request, now, before);
  if (reply && reply->outcome == PutOutcome::taken) return std::unexpected(taken(request.job));
  return reply;
}

JobId ReferenceStore::next_id() {
  JobId id = last_id_ + 1;
  while (id > kMostCountedId && id <= kMostJobId && find(id) != nullptr) ++id;
  return id;
}

bool ReferenceStore::was_given(JobId id) const noexcept {
  return id <= last_id_ || (id > kMostCountedId && id <= last_chosen_id_);
}

ReferenceStore::Failed ReferenceStore::failure_of(JobId id) {
  if (const Job* job = find(id)) {
    const std::string_view how = how_failed(job->record.state);
    return how.empty() ? Failed{} : Failed{id, how};
  }
  const auto found = failed_.find(id % kFailuresRemembered);
  return found == failed_.end() || found->second.id != id ? Failed{} : found->second;
}

// Of a job whose record goes; an empty `how` forgets it.
void ReferenceStore::remember_failed(JobId id, std::string_view how) {
  const JobId slot = id % kFailuresRemembered;
  if (how.empty() && failure_of(id).id != id) return;
  Failed& kept = failed_[slot];
  undo_.failed.emplace_back(slot, kept);
  kept = how.empty() ? Failed{} : Failed{id, how};
}

std::shared_ptr<const CancelledAtPut> ReferenceStore::cancel_at_put(JobId id, Failed because_of, WallTime now) {
  auto effects = std::make_shared<CancelledAtPut>();
  effects->why = cancelled_with(because_of.id, because_of.how);
  const bool keep = queue(jobs_.at(id).queue)->config.keep_cancelled > Duration{};
  const std::string none;
  end(id, {JobState::cancelled, now, now, keep, kCancelled, none, effects->why}, effects->ended_runs);
  tell_dependants(id, true, kCancelled, now, now, {effects->released, effects->cancelled, effects->ended_runs});
  return effects;
}

Result<void> ReferenceStore::join_batch(JobId batch, const Job& job) {
  const Job* whole = find(batch);
  if (whole == nullptr || whole->record.state == JobState::running || has_ended(whole->record.state)) {
    return std::unexpected(no_batch(batch));
  }
  // Whatever waits for the whole batch cannot be a part of it.
  std::deque<JobId> above(job.waits_for.begin(), job.waits_for.end());
  std::set<JobId> seen;
  while (!above.empty()) {
    const JobId next = above.front();
    above.pop_front();
    if (next == batch) return std::unexpected(cycle(batch));
    if (!seen.insert(next).second) continue;
    const Job* other = find(next);  // null: has just been deleted, and its dependants are still to be told
    if (other != nullptr) above.insert(above.end(), other->waits_for.begin(), other->waits_for.end());
  }
  alter(batch, [&](Job& completion) {
    completion.waits_for.insert(job.record.id);
    ++completion.record.pending;
    completion.shelf = Shelf::waiting;
    completion.record.state = JobState::delayed;
  });
  alter(job.record.id, [&](Job& part) { part.dependants.insert(batch); });
  return {};
}

PutReply ReferenceStore::put_on(Job& holder, const PutRequest& request, WallTime now) {
  const NewJob& wanted = request.job;
  const JobId id = holder.record.id;
  const WallTime due_at = stored(wanted.due_at);
  const Duration ageing = queue(holder.queue)->config.ageing;
  const bool raises = wanted.priority > holder.record.priority;
  const bool hastens = due_at < holder.record.due_at;
  if (wanted.unique_policy == UniquePolicy::keep ||
      (wanted.unique_policy == UniquePolicy::merge && !raises && !hastens)) {
    return {PutOutcome::kept, id, {}};
  }
  alter(id, [&](Job& job) {
    JobRecord& record = job.record;
    if (wanted.unique_policy == UniquePolicy::replace) {
      record.payload = wanted.payload;
      record.function = wanted.function;
      record.lease_time = std::chrono::ceil<std::chrono::milliseconds>(wanted.lease_time);
      record.key = wanted.key;
      record.priority = wanted.priority;
      record.due_at = due_at;
    } else {
      if (raises) job.rank = shifted(job.rank, record.priority, wanted.priority);
      if (raises) record.priority = wanted.priority;
      if (hastens) record.due_at = due_at;
    }
    // A merged job keeps its place unless it was delayed until later.
    const bool moves = wanted.unique_policy == UniquePolicy::replace || (hastens && job.shelf == Shelf::delayed);
    if (!moves) return;
    const Place at = place(record.priority, record.due_at, now, request.set_aside, ageing);
    job.rank = at.rank;
    if (job.shelf != Shelf::waiting) job.shelf = at.shelf;
    record.state = state_on(job.shelf);
  });
  return {PutOutcome::changed, id, waiting(jobs_.at(id))};
}

// --- leases ----------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<std::optional<JobRecord>>>> ReferenceStore::lease(std::vector<LeaseRequest> leases) {
  return call([this, leases = std::move(leases)] { return atomically([&] { return lease_all(leases); }); });
}

Result<std::vector<std::optional<JobRecord>>> ReferenceStore::lease_all(const std::vector<LeaseRequest>& leases) {
  if (auto good = check(leases, last_token_); !good) return std::unexpected(good.error());
  std::vector<std::optional<JobRecord>> records;
  LeasedBytes bytes;
  for (const LeaseRequest& lease : leases) {
    last_token_ = lease.token;
    records.emplace_back();
    if (bytes.is_full()) records.back() = left_as_it_is(lease.id);
    const Job* job = bytes.is_full() ? nullptr : find(lease.id);
    if (job != nullptr && lease.by_id) kick_for_lease(*job, stored(lease.at));
    if (job == nullptr || !leasable(*job)) continue;
    if (!bytes.take(job->record.payload.size() + job->record.result.size())) {
      records.back() = left_as_it_is(lease.id);
      continue;
    }
    alter(lease.id, [&](Job& leased) {
      leased.record.state = JobState::running;
      leased.record.token = lease.token;
      leased.record.worker = lease.worker;
      leased.remote = lease.remote;
      leased.record.lease_until = stored(lease.until);
      if (lease.at != WallTime{} && leased.record.lease_time > Duration{}) {
        leased.record.lease_until = stored(lease.at) + leased.record.lease_time;
      }
      ++leased.record.tally.runs;
    });
    records.back() = jobs_.at(lease.id).record;
  }
  return records;
}

// One lease after the other, once all that is put is there.
Coro<Result<PutAndLeaseReply>> ReferenceStore::put_and_lease(std::vector<PutRequest> requests, WallTime now,
                                                             std::vector<PutLease> leases) {
  return call([this, requests = std::move(requests), now, leases = std::move(leases)]() -> Result<PutAndLeaseReply> {
    std::lock_guard lock(mutex_);
    std::vector<LeaseRequest> wanted;
    for (const PutLease& one : leases) {
      if (one.place >= requests.size()) return std::unexpected(no_such_put(one.place));
      wanted.push_back(one.lease);
      wanted.back().by_id = false;
      wanted.back().id = 0;
    }
    if (auto good = check(wanted, last_token_); !good) return std::unexpected(good.error());
    auto puts = put_all(requests, now, Refusal::alone);
    if (!puts) return std::unexpected(puts.error());
    PutAndLeaseReply reply{std::move(*puts), {}};
    for (std::size_t i = 0; i < leases.size(); ++i) {
      const auto& done = reply.puts[leases[i].place];
      const Job* added = done && done->outcome == PutOutcome::added ? find(done->id) : nullptr;
      const bool may_be = requests[leases[i].place].job.unique.empty();
      wanted[i].id = may_be && added != nullptr && added->record.state == JobState::ready ? done->id : 0;
    }
    auto leased = lease_all(wanted);
    if (!leased) return std::unexpected(leased.error());
    reply.leased = std::move(*leased);
    return reply;
  });
}

void ReferenceStore::kick_for_lease(const Job& found, WallTime at) {
  const bool is_buried = found.record.state == JobState::buried;
  const bool is_delayed = found.record.state == JobState::delayed && found.shelf != Shelf::waiting;
  if (!is_buried && !is_delayed) return;
  if (is_buried && !found.record.unique.empty() && uniques_.contains({found.queue, found.record.unique})) return;
  alter(found.record.id, [&](Job& job) {
    if (is_buried) job.record.attempts = job.record.expiries = 0;
    if (is_buried) ++job.record.tally.kicks;
    job.record.ended_at = {};
    job.record.due_at = {};
    place_now(job, at);
  });
}

Coro<Result<void>> ReferenceStore::renew(std::vector<LeaseRequest> leases) {
  return call([this, leases = std::move(leases)] {
    return atomically([&]() -> Result<void> {
      for (const LeaseRequest& lease : leases) {
        Job* job = find(lease.id);
        if (job == nullptr || job->record.state != JobState::running || job->record.token != lease.token) continue;
        job->record.lease_until = stored(lease.until);
        job->record.worker = lease.worker;
        job->remote = lease.remote;
      }
      return {};
    });
  });
}

Coro<Result<void>> ReferenceStore::write_output(JobId id, std::uint64_t token, std::string output) {
  return call([this, id, token, output = std::move(output)] {
    return atomically([&]() -> Result<void> {
      Job* job = find(id);
      if (job != nullptr && job->record.state == JobState::running && job->record.token == token) {
        job->record.result = output;
      }
      return {};
    });
  });
}

Coro<Result<std::vector<SettleReply>>> ReferenceStore::settle(std::vector<Settlement> settlements) {
  return call([this, settlements = std::move(settlements)]() -> Result<std::vector<SettleReply>> {
    std::lock_guard lock(mutex_);
    return settle_all(settlements);
  });
}

std::vector<SettleReply> ReferenceStore::settle_all(const std::vector<Settlement>& settlements) {
  std::vector<SettleReply> replies;
  for (const Settlement& settlement : settlements) {
    auto reply = all_or_nothing([&] { return settle_one(settlement); });
    replies.push_back(reply ? std::move(*reply) : SettleReply{.refused = std::move(reply.error())});
  }
  return replies;
}

Result<SettleReply> ReferenceStore::settle_one(const Settlement& asked) {
  SettleReply reply;
  const JobId id = asked.id;
  const Job* found = find(id);
  if (found == nullptr || found->record.state != JobState::running || found->record.token != asked.token) {
    return reply;
  }
  if (auto good = check_plain(asked.follow_ups); !good) return std::unexpected(std::move(good.error()));
  Settlement settlement = asked;
  if (found->record.cancel_asked && asked.outcome != Outcome::done) {
    settlement.outcome = Outcome::cancel;
    settlement.keep = queue(found->queue)->config.keep_cancelled > Duration{};
    if (!found->record.error.empty()) settlement.error = found->record.error;
  }
  reply.settled = true;
  reply.outcome = settlement.outcome;
  const WallTime at = stored(settlement.at);
  const WallTime calendar_at = settlement.calendar_at == WallTime{} ? at : settlement.calendar_at;
  const std::string none;
  const auto failed_attempt = [&](Job& job, const char* outcome) {
    ++job.record.attempts;
    job.record.error = settlement.error;
    if (!settlement.result.empty()) job.record.result = settlement.result;
    job.history.push_back({job.record.attempts, at, outcome, settlement.error, settlement.worker});
    if (job.history.size() > kMostAttemptsKept) job.history.erase(job.history.begin());
  };
  // 1. The job itself. 2. What follows it, which may take its unique name. 3. Those that waited for it, unless what
  // follows gave them more to wait for.
  switch (settlement.outcome) {
    case Outcome::done:
      undo_.ended.try_emplace(found->queue, queue(found->queue)->ended);
      ++queue(found->queue)->ended;
      end(id, {JobState::done, at, calendar_at, settlement.keep, {}, settlement.result, settlement.error},
          reply.ended_runs);
      break;
    case Outcome::cancel:
      end(id, {JobState::cancelled, at, calendar_at, settlement.keep, kCancelled, none, settlement.error},
          reply.ended_runs);
      break;
    case Outcome::bury:
      remember_for_undo(id);
      failed_attempt(jobs_.at(id), "buried");
      ++jobs_.at(id).record.tally.buries;
      if (settlement.expired) ++jobs_.at(id).record.expiries, ++jobs_.at(id).record.tally.timeouts;
      if (settlement.priority) jobs_.at(id).record.priority = *settlement.priority;
      end(id, {JobState::buried, at, calendar_at, true, kBuried, settlement.result, settlement.error},
          reply.ended_runs);
      break;
    case Outcome::retry:
    case Outcome::release:
    case Outcome::expire:
      alter(id, [&](Job& job) {
        JobRecord& record = job.record;
        record.token = 0;
        record.worker.clear();
        record.lease_until = {};
        if (settlement.outcome == Outcome::retry) {
          failed_attempt(job, "retry");
          if (settlement.priority) record.priority = *settlement.priority;
          record.due_at = stored(settlement.due_at);
          const Place now = place(record.priority, record.due_at, at, false, queue(job.queue)->config.ageing);
          job.shelf = now.shelf;
          job.rank = now.rank;
        } else if (settlement.outcome == Outcome::expire) {
          failed_attempt(job, "lease expired");
          ++record.expiries;
          ++record.tally.timeouts;
          if (job.shelf == Shelf::delayed) job.shelf = Shelf::ready;
        } else {
          ++record.tally.releases;
          if (settlement.priority) {
            job.rank = shifted(job.rank, record.priority, *settlement.priority);
            record.priority = *settlement.priority;
          }
          if (stored(settlement.due_at) > at) {
            record.due_at = stored(settlement.due_at);
            place_now(job, at);
          }
        }
        record.state = state_on(job.shelf);
      });
      reply.again = waiting(jobs_.at(id));
      break;
  }
  for (const PutRequest& request : settlement.follow_ups) {
    auto put = put_in_reach(request, at);
    if (!put) return std::unexpected(put.error());
    reply.follow_ups.push_back(std::move(*put));
  }
  const Effects effects{reply.released, reply.cancelled, reply.ended_runs};
  if (settlement.outcome == Outcome::done) tell_dependants(id, false, "done", at, calendar_at, effects);
  if (settlement.outcome == Outcome::bury) tell_dependants(id, true, kBuried, at, calendar_at, effects);
  if (settlement.outcome == Outcome::cancel) tell_dependants(id, true, kCancelled, at, calendar_at, effects);
  return reply;
}

// Its dependants are to be told afterwards: see tell_dependants().
void ReferenceStore::end(JobId id, const End& how, std::vector<EndedRun>& ended_runs) {
  const std::set<JobId> waited_for = jobs_.at(id).waits_for;
  for (const JobId other : waited_for) {
    if (find(other) != nullptr) alter(other, [&](Job& job) { job.dependants.erase(id); });
    if (const auto gone = orphans_.find(other); gone != orphans_.end()) gone->second.erase(id);
  }
  alter(id, [&](Job& job) {
    if (const ScheduleId schedule = std::exchange(job.record.schedule, 0); schedule != 0) {
      ended_runs.push_back({schedule, std::exchange(job.record.run, 0), id, schedule_rules::run_outcome(how.state)});
      schedules_.end_run(ended_runs.back(), how.calendar_at, how.error, how.result);
    }
    job.record.state = how.state;
    job.record.ended_at = how.at;
    if (how.state == JobState::done || !how.result.empty()) job.record.result = how.result;
    job.record.error = how.error;
    job.record.token = 0;
    job.record.worker.clear();
    job.record.lease_until = {};
    job.record.pending = 0;
    job.record.cancel_asked = false;
    job.waits_for.clear();
  });
  if (how.keep) return;
  orphans_[id] = jobs_.at(id).dependants;
  erase(id);
  if (!how.how.empty()) remember_failed(id, how.how);
}

void ReferenceStore::tell_dependants(JobId ended, bool ended_badly, std::string_view what_befell_it, WallTime at,
                                     WallTime calendar_at, Effects into) {
  struct Ended {
    JobId id;
    bool badly;
    std::string_view how;
  };
  std::deque<Ended> ends{{ended, ended_badly, what_befell_it}};
  for (; !ends.empty(); ends.pop_front()) {
    const Ended end_of = ends.front();
    std::set<JobId> dependants;
    if (const auto gone = orphans_.find(end_of.id); gone != orphans_.end()) {
      dependants = std::move(gone->second);
      orphans_.erase(gone);
    } else {
      remember_for_undo(end_of.id);
      dependants = std::exchange(jobs_.at(end_of.id).dependants, {});
    }
    for (const JobId id : dependants) {
      alter(id, [&](Job& job) {
        job.waits_for.erase(end_of.id);
        --job.record.pending;
      });
      Job& job = jobs_.at(id);
      if (end_of.badly && job.record.if_failed == DependencyPolicy::cancel) {
        const bool keep = queue(job.queue)->config.keep_cancelled > Duration{};
        const std::string none;
        const std::string why = cancelled_with(end_of.id, end_of.how);
        into.cancelled.push_back({id, job.queue});
        end(id, {JobState::cancelled, at, calendar_at, keep, kCancelled, none, why}, into.ended_runs);
        ends.push_back({id, true, kCancelled});
      } else if (job.record.pending == 0) {
        alter(id, [&](Job& released) { place_now(released, at); });
        into.released.push_back(waiting(jobs_.at(id)));
      }
    }
  }
}

void ReferenceStore::place_now(Job& job, WallTime at) {
  const Place now = place(job.record.priority, job.record.due_at, at, false, queue(job.queue)->config.ageing);
  job.shelf = now.shelf;
  job.rank = now.rank;
  job.record.state = state_on(job.shelf);
}

// --- changes ---------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<ChangeReply>>> ReferenceStore::change(std::vector<Change> changes) {
  return call([this, changes = std::move(changes)] {
    return atomically([&]() -> Result<std::vector<ChangeReply>> {
      std::vector<ChangeReply> replies;
      for (const Change& change : changes) replies.push_back(change_one(change));
      return replies;
    });
  });
}

ChangeReply ReferenceStore::change_one(const Change& change) {
  ChangeReply reply;
  const auto refuse = [&](ChangeOutcome outcome) {
    reply.outcome = outcome;
    return reply;
  };
  const Job* found = find(change.id);
  if (found == nullptr) return refuse(ChangeOutcome::not_found);
  const JobState state = found->record.state;
  if (state == JobState::running && change.kind != ChangeKind::cancel) return refuse(ChangeOutcome::running);
  if (state == JobState::running) {
    alter(change.id, [&](Job& job) {
      job.record.cancel_asked = true;
      job.record.error = change.error;
    });
    return refuse(ChangeOutcome::asked);
  }
  const bool waits = !has_ended(state);
  const bool waits_for_others = waits && found->shelf == Shelf::waiting;
  const WallTime at = stored(change.at);
  const WallTime calendar_at = change.calendar_at == WallTime{} ? at : change.calendar_at;
  const JobId id = change.id;
  const std::string none;
  const Effects effects{reply.released, reply.cancelled, reply.ended_runs};
  switch (change.kind) {
    case ChangeKind::cancel:
      if (!waits && state != JobState::buried) return refuse(ChangeOutcome::wrong_state);
      end(id,
          {JobState::cancelled, at, calendar_at,
           change.keep.value_or(queue(found->queue)->config.keep_cancelled > Duration{}), kCancelled, none,
           change.error},
          reply.ended_runs);
      tell_dependants(id, true, kCancelled, at, calendar_at, effects);
      return reply;
    case ChangeKind::erase:
      // What has ended goes on to have ended so when its record is deleted.
      end(id, {JobState::cancelled, at, calendar_at, false, waits ? kDeleted : how_failed(state), none, none},
          reply.ended_runs);
      tell_dependants(id, true, kDeleted, at, calendar_at, effects);
      return reply;
    case ChangeKind::kick:
      if (state != JobState::buried && (state != JobState::delayed || waits_for_others)) {
        return refuse(ChangeOutcome::wrong_state);
      }
      // Another has taken its unique name since.
      if (!waits && !found->record.unique.empty() && uniques_.contains({found->queue, found->record.unique})) {
        return refuse(ChangeOutcome::wrong_state);
      }
      alter(id, [&](Job& job) {
        if (!waits) job.record.attempts = job.record.expiries = 0;
        ++job.record.tally.kicks;
        job.record.ended_at = {};
        job.record.due_at = {};
        place_now(job, at);
      });
      break;
    case ChangeKind::set_priority:
      if (!waits) return refuse(ChangeOutcome::wrong_state);
      alter(id, [&](Job& job) {
        job.rank = shifted(job.rank, job.record.priority, change.priority);
        job.record.priority = change.priority;
      });
      break;
    case ChangeKind::set_due:
      if (!waits || waits_for_others) return refuse(ChangeOutcome::wrong_state);
      alter(id, [&](Job& job) {
        job.record.due_at = stored(change.due_at);
        place_now(job, at);
      });
      break;
  }
  reply.job = waiting(jobs_.at(id));
  return reply;
}

Coro<Result<void>> ReferenceStore::shelve(std::vector<JobId> jobs, Shelf shelf) {
  return call([this, jobs = std::move(jobs), shelf] {
    return atomically([&]() -> Result<void> {
      if (shelf != Shelf::ready && shelf != Shelf::set_aside) return std::unexpected(no_such_shelf());
      for (const JobId id : jobs) {
        const Job* job = find(id);
        if (job == nullptr || !leasable(*job)) continue;
        alter(id, [&](Job& moved) {
          moved.shelf = shelf;
          moved.record.state = JobState::ready;
        });
      }
      return {};
    });
  });
}

Coro<Result<std::size_t>> ReferenceStore::prune(QueueId queue_id, JobState state, WallTime before, std::size_t limit) {
  return call([this, queue_id, state, before, limit] {
    return atomically([&]() -> Result<std::size_t> {
      if (queue(queue_id) == nullptr) return std::unexpected(unknown_queue(queue_id));
      if (!has_ended(state)) return std::unexpected(not_ended());
      std::vector<JobId> old;
      for (const auto& [ended_at, id] : queue(queue_id)->ended_jobs[state]) {
        if (ended_at >= stored(before) || old.size() == limit) break;
        old.push_back(id);
      }
      for (const JobId id : old) {
        erase(id);
        if (!how_failed(state).empty()) remember_failed(id, how_failed(state));
      }
      return old.size();
    });
  });
}

// --- schedules -------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<PutScheduleReply>>> ReferenceStore::put_schedules(std::vector<PutSchedule> wanted) {
  return call([this, wanted = std::move(wanted)] {
    return atomically([&]() -> Result<std::vector<PutScheduleReply>> {
      if (auto good = schedule_rules::check(wanted); !good) return std::unexpected(good.error());
      return schedules_.put(wanted);
    });
  });
}

Coro<Result<std::size_t>> ReferenceStore::erase_schedules(std::vector<ScheduleId> ids) {
  return call([this, ids = std::move(ids)] {
    return atomically([&]() -> Result<std::size_t> {
      std::size_t erased = 0;
      for (const ScheduleId id : ids) erased += schedules_.erase(id) ? 1 : 0;
      return erased;
    });
  });
}

Coro<Result<std::vector<StoredSchedule>>> ReferenceStore::schedules(ScheduleFilter filter) {
  filter.limit = std::min(filter.limit, kMostListed);
  return call([this, filter]() -> Result<std::vector<StoredSchedule>> {
    std::lock_guard lock(mutex_);
    return schedules_.list(filter);
  });
}

Coro<Result<std::vector<std::optional<StoredSchedule>>>> ReferenceStore::load_schedules(std::vector<ScheduleId> ids) {
  return call([this, ids = std::move(ids)]() -> Result<std::vector<std::optional<StoredSchedule>>> {
    std::lock_guard lock(mutex_);
    std::vector<std::optional<StoredSchedule>> found;
    found.reserve(ids.size());
    for (const ScheduleId id : ids) found.push_back(schedules_.get(id));
    return found;
  });
}

Coro<Result<std::optional<StoredSchedule>>> ReferenceStore::find_schedule(std::string name) {
  return call([this, name = std::move(name)]() -> Result<std::optional<StoredSchedule>> {
    std::lock_guard lock(mutex_);
    return schedules_.find(name);
  });
}

Coro<Result<std::vector<std::optional<ScheduleView>>>> ReferenceStore::look_at_schedules(
    std::vector<ScheduleLook> looks) {
  return call([this, looks = std::move(looks)]() -> Result<std::vector<std::optional<ScheduleView>>> {
    std::lock_guard lock(mutex_);
    std::vector<std::optional<ScheduleView>> found;
    found.reserve(looks.size());
    for (const ScheduleLook& look : looks) found.push_back(schedules_.look(look));
    return found;
  });
}

Coro<Result<std::optional<ScheduleRun>>> ReferenceStore::schedule_run(ScheduleId id, std::uint64_t number) {
  return call([this, id, number]() -> Result<std::optional<ScheduleRun>> {
    std::lock_guard lock(mutex_);
    return schedules_.run(id, number);
  });
}

Coro<Result<std::vector<ScheduleRun>>> ReferenceStore::schedule_runs(ScheduleId id, std::size_t limit) {
  return call([this, id, limit]() -> Result<std::vector<ScheduleRun>> {
    std::lock_guard lock(mutex_);
    return schedules_.runs(id, limit);
  });
}

Coro<Result<std::optional<ScheduleOutput>>> ReferenceStore::schedule_output(ScheduleId id) {
  return call([this, id]() -> Result<std::optional<ScheduleOutput>> {
    std::lock_guard lock(mutex_);
    return schedules_.output(id);
  });
}

Coro<Result<std::vector<Result<FireReply>>>> ReferenceStore::fire(std::vector<FireRequest> requests, WallTime now) {
  return call([this, requests = std::move(requests), now]() -> Result<std::vector<Result<FireReply>>> {
    std::lock_guard lock(mutex_);
    std::vector<Result<FireReply>> replies;
    replies.reserve(requests.size());
    for (const FireRequest& request : requests) {
      replies.push_back(all_or_nothing([&]() -> Result<FireReply> {
        if (auto good = argiope::check(request); !good) return std::unexpected(std::move(good.error()));
        return fire_one(request, stored(now));
      }));
    }
    return replies;
  });
}

Result<FireReply> ReferenceStore::fire_one(const FireRequest& request, WallTime now) {
  FireReply reply;
  const auto there = schedules_.get(request.id);
  if (!there || there->version != request.version ||
      there->place.entries + request.runs.size() != request.place.entries) {
    return reply;
  }
  const std::uint64_t before_them = there->place.entries;
  std::vector<ScheduleRun> entries = request.runs;
  const auto job_of = [&](std::uint64_t number) -> JobId {
    if (number > before_them) return entries[number - before_them - 1].job;
    const auto run = schedules_.run(request.id, number);
    return run ? run->job : 0;
  };
  const auto wanted = std::ranges::count_if(request.jobs, [](const PutRequest& put) { return put.run != 0; });
  reply.fired = schedules_.advance(request, before_them, static_cast<std::uint32_t>(wanted));
  std::uint32_t not_added = 0;
  for (PutRequest put : request.jobs) {
    if (const JobId before = put.after_run == 0 ? 0 : job_of(put.after_run); before != 0) {
      put.job.waits_for.push_back(before);
    }
    auto added = put_one(put, now, {}, put.run == 0 ? 0 : request.id);
    if (!added) return std::unexpected(added.error());
    if (put.run != 0 && !schedule_rules::take_put(entries[put.run - before_them - 1], *added)) ++not_added;
    // A job that is cancelled at its put may take others of this step with it.
    if (added->cancelled != nullptr) {
      for (const EndedRun& ended : added->cancelled->ended_runs) {
        if (ended.schedule != request.id || ended.number <= before_them) continue;
        ScheduleRun& run = entries[ended.number - before_them - 1];
        run.outcome = ended.outcome;
        run.ended_at = now;
        run.error = cancelled_with(added->id, kCancelled);
      }
    }
    reply.jobs.push_back(std::move(*added));
  }
  if (not_added > 0) schedules_.take_off_started(request.id, not_added);
  schedules_.write_runs(request, entries);
  reply.version = request.version + 1;
  return reply;
}

// --- windows ---------------------------------------------------------------------------------------------------------

Coro<Result<std::vector<WaitingJob>>> ReferenceStore::read_shelf(QueueId queue_id, ShelfRead read, std::string key) {
  return call([this, queue_id, read, key = std::move(key)]() -> Result<std::vector<WaitingJob>> {
    std::lock_guard lock(mutex_);
    if (queue(queue_id) == nullptr) return std::unexpected(unknown_queue(queue_id));
    if (read.shelf == Shelf::waiting) return fail(Errc::invalid_input, "no shelf");
    std::vector<WaitingJob> found;
    if (read.shelf == Shelf::delayed) {
      const auto& delayed = queue(queue_id)->delayed;
      auto it = delayed.upper_bound({stored(read.due_after.due_at), read.due_after.id});
      for (; it != delayed.end() && found.size() < read.limit; ++it) found.push_back(waiting(jobs_.at(it->second)));
      return found;
    }
    const Ranked& ranked = read.shelf == Shelf::ready ? queue(queue_id)->ready : queue(queue_id)->set_aside[key];
    for (auto it = ranked.upper_bound(read.after); it != ranked.end() && found.size() < read.limit; ++it) {
      found.push_back(waiting(jobs_.at(it->id)));
    }
    if (read.shelf == Shelf::set_aside && ranked.empty()) queue(queue_id)->set_aside.erase(key);
    return found;
  });
}

Coro<Result<std::vector<std::string>>> ReferenceStore::keys_set_aside(QueueId queue_id,
                                                                      std::optional<std::string> after,
                                                                      std::size_t limit) {
  return call([this, queue_id, after = std::move(after), limit]() -> Result<std::vector<std::string>> {
    std::lock_guard lock(mutex_);
    if (queue(queue_id) == nullptr) return std::unexpected(unknown_queue(queue_id));
    std::vector<std::string> keys;
    const auto& all = queue(queue_id)->set_aside;
    for (auto it = after ? all.upper_bound(*after) : all.begin(); it != all.end() && keys.size() < limit; ++it) {
      keys.push_back(it->first);
    }
    return keys;
  });
}

Coro<Result<std::vector<std::optional<WaitingJob>>>> ReferenceStore::find_waiting(std::vector<JobId> jobs) {
  return call([this, jobs = std::move(jobs)]() -> Result<std::vector<std::optional<WaitingJob>>> {
    std::lock_guard lock(mutex_);
    std::vector<std::optional<WaitingJob>> found;
    for (const JobId id : jobs) {
      const Job* job = find(id);
      const bool waits = job != nullptr && job->record.state != JobState::running && !has_ended(job->record.state);
      found.push_back(waits ? std::optional(waiting(*job)) : std::nullopt);
    }
    return found;
  });
}

// --- to look at ------------------------------------------------------------------------------------------------------

Coro<Result<std::optional<JobRecord>>> ReferenceStore::get(JobId id) {
  return call([this, id]() -> Result<std::optional<JobRecord>> {
    std::lock_guard lock(mutex_);
    const Job* job = find(id);
    return job == nullptr ? std::nullopt : std::optional(job->record);
  });
}

Coro<Result<std::optional<JobId>>> ReferenceStore::find_name(std::string name) {
  return call([this, name = std::move(name)]() -> Result<std::optional<JobId>> {
    std::lock_guard lock(mutex_);
    const auto found = names_.find(name);
    return found == names_.end() ? std::nullopt : std::optional(found->second);
  });
}

Coro<Result<std::vector<Attempt>>> ReferenceStore::history(JobId id) {
  return call([this, id]() -> Result<std::vector<Attempt>> {
    std::lock_guard lock(mutex_);
    const Job* job = find(id);
    return job == nullptr ? std::vector<Attempt>{} : job->history;
  });
}

Coro<Result<std::vector<JobRecord>>> ReferenceStore::list(JobFilter filter) {
  return call([this, filter = std::move(filter)]() -> Result<std::vector<JobRecord>> {
    std::lock_guard lock(mutex_);
    return slice_of(filter).jobs;
  });
}

Coro<Result<JobSlice>> ReferenceStore::look(JobFilter filter) {
  return call([this, filter = std::move(filter)]() -> Result<JobSlice> {
    std::lock_guard lock(mutex_);
    return slice_of(filter);
  });
}

JobSlice ReferenceStore::slice_of(const JobFilter& filter) const {
  JobSlice slice{.jobs = {}, .after = filter.after, .is_last = true};
  const std::size_t limit = std::min(filter.limit, kMostListed);
  if (!jobs_.empty()) slice.newest = jobs_.rbegin()->first;
  std::size_t bytes = 0;
  std::vector<JobId> ids;
  for (const auto& [id, job] : jobs_) {
    const bool is_behind = filter.newest_first ? filter.after == 0 || id < filter.after : id > filter.after;
    if (is_behind && id <= filter.up_to) ids.push_back(id);
  }
  if (filter.newest_first) std::ranges::reverse(ids);
  for (const JobId id : ids) {
    slice.is_last = slice.jobs.size() < limit && slice.looked < filter.most_looked && bytes < filter.most_bytes;
    if (!slice.is_last) break;
    ++slice.looked;
    slice.after = id;
    const JobRecord& record = jobs_.at(id).record;
    if ((!filter.queue.empty() && record.queue != filter.queue) || (filter.key && record.key != *filter.key) ||
        (filter.state && !is_listed_as(*filter.state, record.state, record.pending, record.due_at, filter.due_by))) {
      continue;
    }
    slice.jobs.push_back(record);
    if (!filter.payloads) slice.jobs.back().payload = slice.jobs.back().result = {};
    bytes += slice.jobs.back().payload.size() + slice.jobs.back().result.size();
  }
  return slice;
}

Coro<Result<std::vector<QueueCounts>>> ReferenceStore::counts() {
  return call([this]() -> Result<std::vector<QueueCounts>> {
    std::lock_guard lock(mutex_);
    std::vector<QueueCounts> all;
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      if (!queues_[i].is_erased) all.push_back({static_cast<QueueId>(i + 1), queues_[i].counts, queues_[i].ended});
    }
    return all;
  });
}

Coro<Result<std::uint64_t>> ReferenceStore::count_before(QueueId queue_id, Rank rank, std::uint64_t most,
                                                         std::optional<std::string> key) {
  return call([this, queue_id, rank, most, key = std::move(key)]() -> Result<std::uint64_t> {
    std::lock_guard lock(mutex_);
    if (queue(queue_id) == nullptr) return std::unexpected(unknown_queue(queue_id));
    const Queue& in = *queue(queue_id);
    const auto of_key = key ? in.set_aside.find(*key) : in.set_aside.end();
    if (key && of_key == in.set_aside.end()) return std::uint64_t{0};
    const Ranked& ranked = key ? of_key->second : in.ready;
    std::uint64_t before = 0;
    for (auto it = ranked.begin(); it != ranked.end() && before < most && more_important(*it, rank); ++it) ++before;
    return before;
  });
}

Coro<Result<std::vector<JobId>>> ReferenceStore::waits_for(JobId id, std::size_t limit) {
  return call([this, id, limit]() -> Result<std::vector<JobId>> {
    std::lock_guard lock(mutex_);
    std::vector<JobId> found;
    if (const Job* job = find(id)) {
      for (const JobId other : job->waits_for) {
        if (found.size() == limit) break;
        found.push_back(other);
      }
    }
    return found;
  });
}

// --- ownership -------------------------------------------------------------------------------------------------------

std::uint64_t ReferenceStore::last_token() const {
  std::lock_guard lock(mutex_);
  return last_token_;
}

Coro<Result<std::vector<OldLease>>> ReferenceStore::old_leases() {
  return call([this]() -> Result<std::vector<OldLease>> {
    std::lock_guard lock(mutex_);
    std::vector<OldLease> left;
    for (const auto& [id, lease] : old_leases_) {
      const Job* job = find(id);
      if (job != nullptr && job->record.state == JobState::running && job->record.token == lease.token) {
        left.push_back(lease);
      }
    }
    return left;
  });
}

Coro<Result<ChangedElsewhere>> ReferenceStore::changed_elsewhere() {
  return call([]() -> Result<ChangedElsewhere> { return {}; });
}

Coro<Result<void>> ReferenceStore::remember(std::string name, std::int64_t value) {
  return call([this, name = std::move(name), value]() -> Result<void> {
    std::lock_guard lock(mutex_);
    remembered_[name] = value;
    return Result<void>{};
  });
}

Coro<Result<std::optional<std::int64_t>>> ReferenceStore::recall(std::string name) {
  return call([this, name = std::move(name)]() -> Result<std::optional<std::int64_t>> {
    std::lock_guard lock(mutex_);
    const auto found = remembered_.find(name);
    return found == remembered_.end() ? std::nullopt : std::optional(found->second);
  });
}

}  // namespace argiope
