// Queues, puts and steps of schedules.
#include "jobs/internal/job_transitions.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <type_traits>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/schedule_rules.hpp"
#include "jobs/undone_if_refused.hpp"

namespace argiope {

using namespace job_rules;

WaitingJob waiting(const JobRow& row) {
  return {row.id,
          row.queue,
          row.key,
          row.rank,
          from_ms(row.due_ms),
          row.attempts,
          row.expiries,
          static_cast<Shelf>(row.state)};
}

// --- queues ----------------------------------------------------------------------------------------------------------

const StoredQueue& JobTransitions::queue(QueueId id) {
  const auto& queues = rows_.queues.all();
  if (id == 0 || id > queues.size() || queues[id - 1].name.empty()) throw RequestRefused{unknown_queue(id)};
  return queues[id - 1];
}

StoredQueue JobTransitions::open_queue(const std::string& name, const QueueConfig& config) {
  if (name.empty()) throw RequestRefused{{Errc::invalid_input, "a queue needs a name"}};
  if (auto fits = check_name("queue", name); !fits) throw RequestRefused{std::move(fits.error())};
  auto kept = stored(config);
  if (!kept) throw RequestRefused{std::move(kept.error())};
  const QueueId found = rows_.queues.find(name);
  return queue(found != 0 ? found : rows_.queues.add(name, *kept));
}

void JobTransitions::configure(QueueId id, const QueueConfig& config) {
  (void)queue(id);
  auto kept = stored(config);
  if (!kept) throw RequestRefused{std::move(kept.error())};
  rows_.queues.configure(id, *kept);
}

void JobTransitions::erase_queue(QueueId id) {
  const std::string& name = queue(id).name;
  if (!rows_.queues.is_empty(id)) throw RequestRefused{not_empty(name)};
  rows_.queues.erase(id);
}

// --- puts ------------------------------------------------------------------------------------------------------------

// Whether what is stored may refuse it.
bool JobTransitions::depends(const PutRequest& request) {
  constexpr JobId kFew = 100'000'000;
  return request.job.batch != 0 || !request.job.waits_for.empty() ||
         rows_.transaction.counters().last_id >= kMostJobId - kFew;
}

// The same where that others have its id or name refuses it, too.
bool JobTransitions::depends_on_others(const PutRequest& request) {
  const NewJob& job = request.job;
  return (job.within != nullptr && (job.id != 0 || !job.name.empty())) || depends(request);
}

std::vector<Result<PutReply>> JobTransitions::put(const std::vector<PutRequest>& requests, WallTime now,
                                                  Refusal refusal) {
  bring_for(requests);
  const WallTime at = stored(now);
  std::vector<Result<PutReply>> replies;
  std::vector<JobId> before;
  replies.reserve(requests.size());
  before.reserve(requests.size());
  const auto put = [&](const PutRequest& request) {
    replies.emplace_back(refusal == Refusal::whole ? put_in_reach(request, at, before) : put_one(request, at, before));
    before.push_back(replies.back()->id);
  };
  if (refusal == Refusal::whole) {
    if (auto good = check_plain(requests); !good) throw RequestRefused{std::move(good.error())};
    const auto may_be_refused = [&](const PutRequest& request) { return depends_on_others(request); };
    undone_if_refused(std::ranges::any_of(requests, may_be_refused), [&] { std::ranges::for_each(requests, put); });
    return replies;
  }
  for (const PutRequest& request : requests) {
    if (auto good = check_plain(request); !good) {
      replies.emplace_back(std::unexpected(std::move(good.error())));
      continue;
    }
    try {
      undone_if_refused(depends(request), [&] { put(request); });
    } catch (RequestRefused& refused) {
      replies.emplace_back(std::unexpected(std::move(refused.error)));
    }
  }
  return replies;
}

PutReply JobTransitions::put_one(const PutRequest& request, WallTime now, std::span<const JobId> before,
                                 ScheduleId schedule) {
  const NewJob& wanted = request.job;
  if (const auto there = same_job(wanted)) {
    if (!reaches(wanted, there->queue)) return {PutOutcome::taken, 0, {}};
    return {PutOutcome::kept, there->id, {}};
  }
  JobRow row;
  row.queue = rows_.queues.find(wanted.queue);
  if (row.queue == 0) row.queue = rows_.queues.add(wanted.queue, {});
  std::optional<JobRow> runs_now;
  if (!wanted.unique.empty()) {
    if (const JobId holder = rows_.jobs.find_unique(row.queue, wanted.unique); holder != 0) {
      runs_now = rows_.jobs.load(holder);
      if (!runs_now->runs()) return put_on(*runs_now, request, now);
      if (!wanted.run_again) return {PutOutcome::kept, holder, {}};
    }
  }
  row.id = wanted.id != 0 ? wanted.id : next_id();
  if (wanted.batch == row.id) throw RequestRefused{no_batch(wanted.batch)};
  std::vector<JobId> waits_for;
  Failed failed;
  if (!wanted.waits_for.empty()) waits_for = not_ended(wanted, wanted.waits_for, failed);
  if (request.waits_for_those_before) {
    for (const JobId part : not_ended(wanted, before, failed)) waits_for.push_back(part);
  }
  const bool cancels = !runs_now && wanted.if_failed == DependencyPolicy::cancel;
  const bool is_cancelled = cancels && failed.id != 0;
  if (runs_now) {
    waits_for.push_back(runs_now->id);
    JobRow without = *runs_now;
    without.unique.clear();
    rows_.jobs.save(*runs_now, without);
  }
  std::ranges::sort(waits_for);
  waits_for.erase(std::ranges::unique(waits_for).begin(), waits_for.end());
  JobCounters& counters = rows_.transaction.counters();
  if (was_given(row.id)) {
    row.fence = counters.last_token;  // one of that id may have run
    rows_.history.set_failure(row.id, {});
  }
  JobId& last = wanted.id > kMostCountedId ? counters.last_chosen_id : counters.last_id;
  last = std::max(last, row.id);
  row.key = wanted.key;
  row.unique = wanted.unique;
  if (!is_cancelled) {
    row.schedule = schedule;
    row.run = request.run;
  }
  if (!wanted.name.empty() || !wanted.unique.empty()) row.flags |= JobRow::kHasNames;
  if (row.schedule != 0) row.flags |= JobRow::kIsRun;
  row.priority = wanted.priority;
  row.due_ms = to_ms(wanted.due_at);
  row.pending = static_cast<std::uint32_t>(waits_for.size());
  row.cancelled_with_others = cancels;
  place_now(row, to_ms(now), request.set_aside);
  if (!waits_for.empty()) row.state = RowState::waiting;
  rows_.jobs.insert(row, wanted, now);
  for (const JobId other : waits_for) rows_.jobs.link(other, row.id);
  if (wanted.batch != 0) join_batch(wanted, row, waits_for);
  if (is_cancelled) return {PutOutcome::cancelled, row.id, {}, cancel_at_put(row, failed, now)};
  return {runs_now ? PutOutcome::run_again : PutOutcome::added, row.id, waiting(row)};
}

PutReply JobTransitions::put_in_reach(const PutRequest& request, WallTime now, std::span<const JobId> before) {
  PutReply reply = put_one(request, now, before);
  if (reply.outcome == PutOutcome::taken) throw RequestRefused{taken(request.job)};
  return reply;
}

// The one that has the id or the name of `wanted`.
std::optional<JobRow> JobTransitions::same_job(const NewJob& wanted) {
  if (wanted.id != 0) {
    if (auto there = rows_.jobs.load(wanted.id)) return there;
  }
  if (wanted.name.empty()) return std::nullopt;
  const JobId named = rows_.jobs.find_name(wanted.name);
  return named == 0 ? std::nullopt : rows_.jobs.load(named);
}

bool JobTransitions::reaches(const NewJob& job, QueueId id) {
  return job.within == nullptr || (*job.within)(queue(id).name);
}

JobId JobTransitions::next_id() {
  JobId id = rows_.transaction.counters().last_id + 1;
  // Only from there on may a caller have chosen it.
  while (id > kMostCountedId && id <= kMostJobId && rows_.jobs.load(id)) ++id;
  if (id > kMostJobId) throw RequestRefused{no_ids_left()};
  return id;
}

bool JobTransitions::was_given(JobId id) {
  const JobCounters& counters = rows_.transaction.counters();
  return id <= counters.last_id || (id > kMostCountedId && id <= counters.last_chosen_id);
}

// Those of `ids` that are known and have not ended; and the first that has failed, where there was none.
std::vector<JobId> JobTransitions::not_ended(const NewJob& job, std::span<const JobId> ids, Failed& failed) {
  std::vector<JobId> found;
  for (const JobId id : ids) {
    // A caller that may not see it is not told whether there was ever one.
    if (!was_given(id)) {
      throw RequestRefused{job.within == nullptr ? not_yet_there(id) : out_of_reach("waits_for", id)};
    }
    const auto row = rows_.jobs.load(id);
    if (row && !reaches(job, row->queue)) throw RequestRefused{out_of_reach("waits_for", id)};
    if (row && !row->has_ended()) {
      found.push_back(id);
    } else if (failed.id == 0) {
      const std::string_view how = row ? how_failed(state_of(row->state)) : rows_.history.failure_of(id);
      if (!how.empty()) failed = {id, how};
    }
  }
  return found;
}

// It is of no schedule: the step that puts it writes down what has become of it.
std::shared_ptr<const CancelledAtPut> JobTransitions::cancel_at_put(const JobRow& row, Failed because_of,
                                                                    WallTime now) {
  auto effects = std::make_shared<CancelledAtPut>();
  effects->why = cancelled_with(because_of.id, because_of.how);
  const Ending ending{to_ms(now), now, effects->ended_runs};
  // Where it was put into a batch, that waits for it now.
  auto dependants = end(row, ending, {JobState::cancelled, keeps_cancelled(row.queue), kCancelled, {}, effects->why});
  tell_dependants(row.id, std::move(dependants), true, kCancelled, ending, {effects->released, effects->cancelled});
  return effects;
}

void JobTransitions::join_batch(const NewJob& job, JobRow& part, const std::vector<JobId>& waits_for) {
  const JobId batch = job.batch;
  const auto whole = rows_.jobs.load(batch);
  // A caller that may not see it is not told whether there is one.
  const bool is_hidden = job.within != nullptr && (!whole || !reaches(job, whole->queue));
  if (is_hidden) throw RequestRefused{out_of_reach("batch", batch)};
  if (!whole || whole->has_ended() || whole->runs()) throw RequestRefused{no_batch(batch)};
  // Whatever waits for the whole batch cannot be a part of it.
  std::deque<JobId> above(waits_for.begin(), waits_for.end());
  std::set<JobId> seen;
  for (; !above.empty() && (whole->flags & JobRow::kHasDependants) != 0; above.pop_front()) {
    if (above.front() == batch) throw RequestRefused{cycle(batch)};
    if (!seen.insert(above.front()).second) continue;
    const auto others = rows_.jobs.waits_for(above.front(), kAll);
    above.insert(above.end(), others.begin(), others.end());
  }
  JobRow completion = *whole;
  ++completion.pending;
  completion.state = RowState::waiting;
  rows_.jobs.save(*whole, completion);
  rows_.jobs.link(part.id, batch);
  part.flags |= JobRow::kHasDependants;
}

// A put that meets a job of the same unique name that waits.
PutReply JobTransitions::put_on(const JobRow& holder, const PutRequest& request, WallTime now) {
  const NewJob& wanted = request.job;
  const std::int64_t due_ms = to_ms(wanted.due_at);
  const bool raises = wanted.priority > holder.priority;
  const bool hastens = due_ms < holder.due_ms;
  const bool replaces = wanted.unique_policy == UniquePolicy::replace;
  if (wanted.unique_policy == UniquePolicy::keep || (!replaces && !raises && !hastens)) {
    return {PutOutcome::kept, holder.id, {}};
  }
  JobRow row = holder;
  if (replaces) {
    row.key = wanted.key;
    row.priority = wanted.priority;
    row.due_ms = due_ms;
    rows_.jobs.write_work(row.id, wanted);
  } else {
    if (raises) row.rank = shifted(row.rank, row.priority, wanted.priority);
    if (raises) row.priority = wanted.priority;
    if (hastens) row.due_ms = due_ms;
  }
  // A merged job keeps its place unless it was delayed until later.
  if (replaces || (hastens && row.state == RowState::delayed)) {
    place_now(row, to_ms(now), request.set_aside);
    if (holder.state == RowState::waiting) row.state = RowState::waiting;
  }
  rows_.jobs.save(holder, row);
  return {PutOutcome::changed, row.id, waiting(row)};
}

void JobTransitions::place_now(JobRow& row, std::int64_t at_ms, bool set_aside) {
  const Place now = place(row.priority, from_ms(row.due_ms), from_ms(at_ms), set_aside, queue(row.queue).config.ageing);
  row.state = row_state(now.shelf);
  row.rank = now.rank;
}

// --- steps of schedules ----------------------------------------------------------------------------------------------

std::vector<Result<FireReply>> JobTransitions::fire(const std::vector<FireRequest>& requests, WallTime now) {
  bring_for(requests);
  std::vector<Result<FireReply>> replies;
  replies.reserve(requests.size());
  for (const FireRequest& request : requests) {
    if (auto good = argiope::check(request); !good) {
      replies.emplace_back(std::unexpected(std::move(good.error())));
      continue;
    }
    const bool may_be_refused = std::ranges::any_of(request.jobs, [&](const PutRequest& job) { return depends(job); });
    try {
      replies.emplace_back(undone_if_refused(may_be_refused, [&] { return fire_one(request, stored(now)); }));
    } catch (RequestRefused& refused) {
      replies.emplace_back(std::unexpected(std::move(refused.error)));
    }
  }
  return replies;
}

// A put that is cancelled at once may end runs of the same step, whose entries are still to be written.
static void note_ended(const FireRequest& step, const PutReply& put, WallTime now, std::vector<ScheduleRun>& runs) {
  if (put.cancelled == nullptr) return;
  const std::uint64_t entries = step.place.entries - step.runs.size();
  for (const EndedRun& ended : put.cancelled->ended_runs) {
    if (ended.schedule != step.id || ended.number <= entries) continue;
    ScheduleRun& run = runs[ended.number - entries - 1];
    run.outcome = ended.outcome;
    run.ended_at = now;
    run.error = cancelled_with(put.id, kCancelled);
  }
}

FireReply JobTransitions::fire_one(const FireRequest& request, WallTime now) {
  FireReply reply;
  const std::uint64_t entries = request.place.entries - request.runs.size();
  const auto wanted = std::ranges::count_if(request.jobs, [](const PutRequest& job) { return job.run != 0; });
  // The place first, as if all jobs were added: it says whether the step is stale.
  if (!rows_.schedules.advance(request, entries, static_cast<std::uint32_t>(wanted))) return reply;
  reply.fired = true;
  reply.version = request.version + 1;
  reply.jobs.reserve(request.jobs.size());
  std::vector<ScheduleRun> runs = request.runs;
  std::uint32_t not_added = 0;
  for (const PutRequest& put : request.jobs) {
    const ScheduleId schedule = put.run == 0 ? 0 : request.id;
    JobId before = 0;
    if (put.after_run > entries) before = runs[put.after_run - entries - 1].job;
    if (put.after_run != 0 && put.after_run <= entries) {
      if (const auto run = rows_.schedules.run(request.id, put.after_run)) before = run->job;
    }
    if (before != 0) {
      PutRequest waits = put;
      waits.job.waits_for.push_back(before);
      reply.jobs.push_back(put_one(waits, now, {}, schedule));
    } else {
      reply.jobs.push_back(put_one(put, now, {}, schedule));
    }
    if (put.run != 0 && !schedule_rules::take_put(runs[put.run - entries - 1], reply.jobs.back())) ++not_added;
    note_ended(request, reply.jobs.back(), now, runs);
  }
  if (not_added > 0) rows_.schedules.take_off_started(request.id, not_added);
  rows_.schedules.write_runs(request, runs);
  return reply;
}

}  // namespace argiope
