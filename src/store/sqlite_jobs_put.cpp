// Queues and puts.
#include <deque>
#include <set>
#include <type_traits>

#include "store/job_rules.hpp"
#include "store/schedule_rules.hpp"
#include "store/sqlite_jobs.hpp"
#include "store/sqlite_jobs_use.hpp"

namespace argiope {

using namespace job_rules;

QueueId SqliteJobs::queue_of(const std::string& name, const QueueConfig& config) {
  if (const auto found = queue_ids_.find(name); found != queue_ids_.end()) return found->second;
  const auto id = static_cast<QueueId>(queues_.size() + 1);
  const std::string json = to_json(config);
  use(Query::queue_add).with(id, name, json).run();
  use(Query::counts_add).with(id).run();
  queues_.push_back({id, name, config});
  queue_ids_[name] = id;
  touch(0);
  return id;
}

const StoredQueue& SqliteJobs::queue(QueueId id) {
  if (id == 0 || id > queues_.size()) throw RequestRefused{unknown_queue(id)};
  return queues_[id - 1];
}

StoredQueue SqliteJobs::open_queue(const std::string& name, const QueueConfig& config) {
  if (name.empty()) throw RequestRefused{{Errc::invalid_input, "a queue needs a name"}};
  if (auto fits = check_name("queue", name); !fits) throw RequestRefused{fits.error()};
  if (!queue_ids_.contains(name) && access() == StoreAccess::read) {
    throw RequestRefused{{Errc::refused, "database " + path_ + ": opened for reading only"}};
  }
  auto kept = stored(config);
  if (!kept) throw RequestRefused{kept.error()};
  return queues_[queue_of(name, *kept) - 1];
}

void SqliteJobs::configure(QueueId id, const QueueConfig& config) {
  (void)queue(id);
  auto kept = stored(config);
  if (!kept) throw RequestRefused{kept.error()};
  const std::string json = to_json(*kept);
  use(Query::queue_configure).with(id, json).run();
  queues_[id - 1].config = std::move(*kept);
  touch(0);
}

std::vector<StoredQueue> SqliteJobs::queues() { return queues_; }

template <class Act>
auto SqliteJobs::undone_if_refused(bool may_be, Act act) -> decltype(act()) {
  if (!may_be) return act();
  const Mark before = mark();
  try {
    if constexpr (std::is_void_v<decltype(act())>) {
      act();
      use(Query::savepoint_release).run();
    } else {
      auto result = act();
      use(Query::savepoint_release).run();
      return result;
    }
  } catch (const RequestRefused&) {
    take_back(before);
    use(Query::savepoint_release).run();
    throw;
  }
}

// Whether what is stored may refuse it.
static bool depends(const PutRequest& request, JobId last) {
  return request.job.batch != 0 || !request.job.waits_for.empty() || last >= kMostJobId - 100'000'000;
}

std::vector<Result<PutReply>> SqliteJobs::put(const std::vector<PutRequest>& requests, WallTime now, Refusal refusal) {
  const std::int64_t now_ms = to_ms(now);
  std::vector<Result<PutReply>> replies;
  std::vector<JobId> before;
  replies.reserve(requests.size());
  before.reserve(requests.size());
  const auto put = [&](const PutRequest& request) {
    replies.emplace_back(put_one(request, now_ms, before));
    before.push_back(replies.back()->id);
  };
  const auto may_be_refused = [&](const PutRequest& request) { return depends(request, last_id_); };
  if (refusal == Refusal::whole) {
    if (auto good = check_plain(requests); !good) throw RequestRefused{std::move(good.error())};
    undone_if_refused(std::ranges::any_of(requests, may_be_refused), [&] { std::ranges::for_each(requests, put); });
    return replies;
  }
  for (const PutRequest& request : requests) {
    if (auto good = check_plain(request); !good) {
      replies.emplace_back(std::unexpected(std::move(good.error())));
      continue;
    }
    try {
      undone_if_refused(may_be_refused(request), [&] { put(request); });
    } catch (RequestRefused& refused) {
      replies.emplace_back(std::unexpected(std::move(refused.error)));
    }
  }
  return replies;
}

std::vector<SettleReply> SqliteJobs::settle(const std::vector<Settlement>& settlements) {
  std::vector<SettleReply> replies;
  replies.reserve(settlements.size());
  for (const Settlement& settlement : settlements) {
    const bool may_be_refused = std::ranges::any_of(
        settlement.follow_ups, [&](const PutRequest& request) { return depends(request, last_id_); });
    try {
      replies.push_back(undone_if_refused(may_be_refused, [&] { return settle_one(settlement); }));
    } catch (RequestRefused& refused) {
      replies.push_back({.refused = std::move(refused.error)});
    }
  }
  return replies;
}

std::vector<Result<FireReply>> SqliteJobs::fire(const std::vector<FireRequest>& requests, WallTime now) {
  const std::int64_t now_ms = to_ms(now);
  std::vector<Result<FireReply>> replies;
  replies.reserve(requests.size());
  for (const FireRequest& request : requests) {
    if (auto good = argiope::check(request); !good) {
      replies.emplace_back(std::unexpected(std::move(good.error())));
      continue;
    }
    const bool may_be_refused =
        std::ranges::any_of(request.jobs, [&](const PutRequest& job) { return depends(job, last_id_); });
    try {
      replies.emplace_back(undone_if_refused(may_be_refused, [&] { return fire_one(request, now_ms); }));
    } catch (RequestRefused& refused) {
      replies.emplace_back(std::unexpected(std::move(refused.error)));
    }
  }
  return replies;
}

PutReply SqliteJobs::put_one(const PutRequest& request, std::int64_t now, std::span<const JobId> before,
                             ScheduleId schedule) {
  const NewJob& wanted = request.job;
  if (wanted.id != 0 && load(wanted.id)) return {PutOutcome::kept, wanted.id, {}};
  if (!wanted.name.empty()) {
    if (const auto named = find_name(wanted.name)) return {PutOutcome::kept, *named, {}};
  }
  Row row;
  row.queue = queue_of(wanted.queue, {});
  JobId runs_now = 0;
  if (!wanted.unique.empty()) {
    JobId holder_id = 0;
    {
      Use found = use(Query::unique_find);
      if (found.with(row.queue, wanted.unique).next()) holder_id = static_cast<JobId>(found.number(0));
    }
    if (holder_id != 0) {
      Row holder = *load(holder_id);
      if (!runs(holder_id, holder.fence)) return put_on(holder, request, now);
      if (!wanted.run_again) return {PutOutcome::kept, holder_id, {}};
      runs_now = holder_id;
    }
  }
  row.id = wanted.id != 0 ? wanted.id : next_id();
  if (wanted.batch == row.id) throw RequestRefused{no_batch(wanted.batch)};
  std::vector<JobId> waits_for;
  Failed failed;
  if (!wanted.waits_for.empty()) waits_for = not_ended(wanted.waits_for, failed);
  if (request.waits_for_those_before) {
    for (const JobId part : not_ended({before.begin(), before.end()}, failed)) waits_for.push_back(part);
  }
  const bool cancels = runs_now == 0 && wanted.if_failed == DependencyPolicy::cancel;
  const bool is_cancelled = cancels && failed.id != 0;
  if (runs_now != 0) {
    waits_for.push_back(runs_now);
    const Row holder = *load(runs_now);
    Row without = holder;
    without.unique.clear();
    store(holder, without);
  }
  std::ranges::sort(waits_for);
  waits_for.erase(std::ranges::unique(waits_for).begin(), waits_for.end());
  if (was_given(row.id)) {
    // It may still stand in a row of leases.
    row.fence = last_token_;
    use(Query::failed_delete).with(row.id % kFailuresRemembered, row.id).run();
  }
  JobId& last = wanted.id > kMostCountedId ? last_chosen_id_ : last_id_;
  last = std::max(last, row.id);
  row.key = wanted.key;
  if (!is_cancelled) {
    row.schedule = schedule;
    row.run = request.run;
  }
  if (!wanted.name.empty() || !wanted.unique.empty()) row.flags |= kHasNames;
  if (row.schedule != 0) row.flags |= kIsRun;
  row.priority = wanted.priority;
  row.due_at = to_ms(wanted.due_at);
  row.pending = static_cast<std::uint32_t>(waits_for.size());
  row.cancelled_with_others = cancels;
  const Place at =
      place(row.priority, from_ms(row.due_at), from_ms(now), request.set_aside, queues_[row.queue - 1].config.ageing);
  row.rank = at.rank;
  row.state = static_cast<Stored>(waits_for.empty() ? at.shelf : Shelf::waiting);
  insert(request, row, now);
  for (const JobId other : waits_for) {
    use(Query::dependency_add).with(other, row.id).run();
    add_flags(other, kHasDependants);
  }
  if (wanted.batch != 0) join_batch(wanted.batch, row, waits_for);
  if (is_cancelled) {
    row.unique = wanted.unique;
    return {PutOutcome::cancelled, row.id, {}, cancel_at_put(row, failed, now)};
  }
  return {runs_now != 0 ? PutOutcome::run_again : PutOutcome::added, row.id, waiting(row)};
}

JobId SqliteJobs::next_id() {
  JobId id = last_id_ + 1;
  // Only from there on may a caller have chosen it.
  while (id > kMostCountedId && id <= kMostJobId && load(id)) ++id;
  if (id > kMostJobId) throw RequestRefused{no_ids_left()};
  return id;
}

bool SqliteJobs::was_given(JobId id) const noexcept {
  return id <= last_id_ || (id > kMostCountedId && id <= last_chosen_id_);
}

void SqliteJobs::insert(const PutRequest& request, const Row& row, std::int64_t now) {
  const NewJob& wanted = request.job;
  use(Query::job_insert)
      .with(row.id, row.queue, row.state, row.rank, row.priority)
      .with_or_null(row.due_at, wanted.max_attempts, row.pending, row.cancelled_with_others ? 0 : 1, row.flags,
                    row.fence)
      .with(now, wanted.key)
      .with_or_null(wanted.unique, wanted.name, wanted.function, wanted.payload, row.schedule, row.run)
      .run();
  if (!wanted.name.empty()) use(Query::name_add).with(wanted.name, row.id).run();
  if (!wanted.unique.empty()) use(Query::unique_add).with(row.queue, wanted.unique, row.id).run();
  count(row.queue, state_of(row.state), 1);
  touch(row.id);
}

// Those of `ids` that are known and have not ended; and the first that has failed, where there was none.
std::vector<JobId> SqliteJobs::not_ended(const std::vector<JobId>& ids, Failed& failed) {
  std::vector<JobId> found;
  for (const JobId id : ids) {
    if (!was_given(id)) throw RequestRefused{not_yet_there(id)};
    const auto row = load(id);
    if (row && waits(row->state)) {
      found.push_back(id);
    } else if (failed.id == 0) {
      failed = row ? Failed{how_failed(state_of(row->state)).empty() ? 0 : id, how_failed(state_of(row->state))}
                   : failure_of(id);
    }
  }
  return found;
}

SqliteJobs::Failed SqliteJobs::failure_of(JobId id) {
  Use found = use(Query::failed_find);
  if (!found.with(id % kFailuresRemembered, id).next()) return {};
  return {id, job_rules::how_failed(found.text(0))};
}

void SqliteJobs::remember_failed(JobId id, std::string_view how) {
  use(Query::failed_add).with(id % kFailuresRemembered, id, how).run();
}

// It is of no schedule: the step that puts it writes down what has become of it.
std::shared_ptr<const CancelledAtPut> SqliteJobs::cancel_at_put(const Row& row, Failed because_of, std::int64_t now) {
  auto effects = std::make_shared<CancelledAtPut>();
  effects->why = cancelled_with(because_of.id, because_of.how);
  const Ending ending{now, now, effects->ended_runs};
  const bool keep = queues_[row.queue - 1].config.keep_cancelled > Duration{};
  end(row, Stored::cancelled, ending, keep, kCancelled, {}, effects->why);
  // Where it was put into a batch, that waits for it now.
  if (auto dependants = take_dependants(row.id); !dependants.empty()) {
    tell_dependants(row.id, std::move(dependants), true, kCancelled, ending, effects->released, effects->cancelled);
  }
  return effects;
}

void SqliteJobs::join_batch(JobId batch, const Row& job, const std::vector<JobId>& waits_for_jobs) {
  const auto whole = load(batch);
  if (!whole || !waits(whole->state) || runs(batch, whole->fence)) throw RequestRefused{no_batch(batch)};
  // Whatever waits for the whole batch cannot be a part of it.
  std::deque<JobId> above(waits_for_jobs.begin(), waits_for_jobs.end());
  std::set<JobId> seen;
  for (; !above.empty() && whole->flags & kHasDependants; above.pop_front()) {
    if (above.front() == batch) throw RequestRefused{cycle(batch)};
    if (!seen.insert(above.front()).second) continue;
    Use others = use(Query::waits_for);
    others.with(above.front(), -1);
    while (others.next()) above.push_back(static_cast<JobId>(others.number(0)));
  }
  Row completion = *whole;
  ++completion.pending;
  completion.state = Stored::waiting;
  store(*whole, completion);
  use(Query::dependency_add).with(job.id, batch).run();
  add_flags(job.id, kHasDependants);
}

// A put that meets a job of the same unique name that waits.
PutReply SqliteJobs::put_on(const Row& holder, const PutRequest& request, std::int64_t now) {
  const NewJob& wanted = request.job;
  const std::int64_t due_at = to_ms(wanted.due_at);
  const bool raises = wanted.priority > holder.priority;
  const bool hastens = due_at < holder.due_at;
  const bool replaces = wanted.unique_policy == UniquePolicy::replace;
  if (wanted.unique_policy == UniquePolicy::keep || (!replaces && !raises && !hastens)) {
    return {PutOutcome::kept, holder.id, {}};
  }
  Row row = holder;
  if (replaces) {
    row.key = wanted.key;
    row.priority = wanted.priority;
    row.due_at = due_at;
    use(Query::job_set_work).with(row.id).with_or_null(wanted.function, wanted.payload).run();
  } else {
    if (raises) row.rank = shifted(row.rank, row.priority, wanted.priority);
    if (raises) row.priority = wanted.priority;
    if (hastens) row.due_at = due_at;
  }
  // A merged job keeps its place unless it was delayed until later.
  if (replaces || (hastens && row.state == Stored::delayed)) {
    const Place at =
        place(row.priority, from_ms(row.due_at), from_ms(now), request.set_aside, queues_[row.queue - 1].config.ageing);
    row.rank = at.rank;
    if (row.state != Stored::waiting) row.state = static_cast<Stored>(at.shelf);
  }
  store(holder, row);
  return {PutOutcome::changed, row.id, waiting(row)};
}

}  // namespace argiope
