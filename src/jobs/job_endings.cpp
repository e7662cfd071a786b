// How jobs are leased, end, come back and are changed, and what that means for those that wait for them.
#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/job_tally.hpp"
#include "jobs/internal/job_transitions.hpp"
#include "jobs/internal/schedule_rules.hpp"
#include "jobs/undone_if_refused.hpp"

namespace argiope {

using namespace job_rules;

namespace {

const std::string kNothing;

WallTime calendar_time(WallTime calendar_at, std::int64_t at_ms) {
  return calendar_at == WallTime{} ? from_ms(at_ms) : calendar_at;
}

// A lease that it has is over.
JobRow without_lease(JobRow row) {
  if (row.runs()) row.fence = std::exchange(row.token, 0);
  return row;
}

// A run that did not end well replaces the result that is there, unless it has left nothing.
const std::string* unless_empty(const std::string& result) { return result.empty() ? nullptr : &result; }

// It is less or more important from now on. Its age stays.
void set_priority(JobRow& row, std::optional<std::int32_t> priority) {
  if (!priority) return;
  row.rank = shifted(row.rank, row.priority, *priority);
  row.priority = *priority;
}

}  // namespace

// --- leases and their ends -------------------------------------------------------------------------------------------

std::vector<std::optional<JobRecord>> JobTransitions::lease(const std::vector<LeaseRequest>& leases) {
  if (auto good = check(leases, rows_.transaction.counters().last_token); !good)
    throw RequestRefused{std::move(good.error())};
  if (std::ranges::none_of(leases, &LeaseRequest::by_id)) return rows_.leases.lease(leases);
  bring_for(leases);
  std::vector<std::optional<JobRecord>> records;
  std::span<const LeaseRequest> left(leases);
  while (!left.empty()) {
    if (left.front().by_id) kick_for_lease(left.front());
    // Up to the next one that is asked for by its id.
    const auto next = std::ranges::find_if(left.subspan(1), &LeaseRequest::by_id);
    const auto count = static_cast<std::size_t>(next - left.begin());
    std::ranges::move(rows_.leases.lease(left.first(count)), std::back_inserter(records));
    left = left.subspan(count);
  }
  return records;
}

PutAndLeaseReply JobTransitions::put_and_lease(const std::vector<PutRequest>& requests, WallTime now,
                                               const std::vector<PutLease>& leases) {
  std::vector<LeaseRequest> wanted;
  wanted.reserve(leases.size());
  for (const PutLease& one : leases) {
    if (one.place >= requests.size()) throw RequestRefused{job_rules::no_such_put(one.place)};
    wanted.push_back(one.lease);
    wanted.back().id = 0;  // which no job has
    wanted.back().by_id = false;
  }
  if (auto good = check(wanted, rows_.transaction.counters().last_token); !good)
    throw RequestRefused{std::move(good.error())};
  PutAndLeaseReply reply{.puts = put(requests, now, Refusal::alone), .leased = {}};
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const Result<PutReply>& done = reply.puts[leases[i].place];
    const bool is_new = done && done->outcome == PutOutcome::added && requests[leases[i].place].job.unique.empty();
    if (is_new && (done->job.shelf == Shelf::ready || done->job.shelf == Shelf::set_aside)) wanted[i].id = done->id;
  }
  reply.leased = lease(wanted);
  return reply;
}

// So that nothing but another lease keeps it from being leased.
void JobTransitions::kick_for_lease(const LeaseRequest& request) {
  const auto before = load_any(request.id);
  if (!before || before->runs()) return;
  if (before->state != RowState::buried && before->state != RowState::delayed) return;
  JobRow row = *before;
  if (row.has_ended()) {
    if (lost_unique(row)) return;
    give_attempts_anew(row);
  }
  row.due_ms = 0;
  place_now(row, to_ms(request.at));
  rows_.jobs.save(*before, row);
}

// Another has taken its unique name since it ended.
bool JobTransitions::lost_unique(const JobRow& row) {
  return !row.unique.empty() && rows_.jobs.find_unique(row.queue, row.unique) != 0;
}

void JobTransitions::give_attempts_anew(JobRow& row) {
  job_tally::kKicks.add(row.tally, 1);
  job_tally::kOtherRuns.add(row.tally, std::exchange(row.attempts, 0));
  job_tally::kOtherExpiries.add(row.tally, std::exchange(row.expiries, 0));
  row.ended_ms = 0;
}

std::vector<SettleReply> JobTransitions::settle(const std::vector<Settlement>& settlements) {
  bring_for(settlements);
  std::vector<SettleReply> replies;
  replies.reserve(settlements.size());
  for (const Settlement& settlement : settlements) {
    const bool may_be_refused =
        std::ranges::any_of(settlement.follow_ups, [&](const PutRequest& put) { return depends_on_others(put); });
    try {
      replies.push_back(undone_if_refused(may_be_refused, [&] { return settle_one(settlement); }));
    } catch (RequestRefused& refused) {
      replies.push_back({.refused = std::move(refused.error)});
    }
  }
  return replies;
}

SettleReply JobTransitions::settle_one(const Settlement& asked) {
  SettleReply reply;
  const bool well_formed = asked.follow_ups.empty() || check_plain(asked.follow_ups);
  const std::int64_t at_ms = to_ms(asked.at);
  const Ending ending{at_ms, calendar_time(asked.calendar_at, at_ms), reply.ended_runs};
  News news;
  // 1. The job itself. 2. Its follow-ups, which may take its unique name. 3. Those that waited for it, unless
  // the follow-ups gave them more to wait for.
  if (asked.outcome == Outcome::done && !asked.keep && well_formed && asked.id <= kMostJobId) {
    const auto erased = rows_.jobs.erase_done(asked.id, asked.token);
    if (!erased) return reply;
    news = settle_done(*erased, asked, ending);
  } else {
    const bool plain =
        asked.outcome == Outcome::done && asked.result.empty() && asked.error.empty() && asked.follow_ups.empty();
    if (plain && asked.id <= kMostJobId && rows_.jobs.keep_done(asked.id, asked.token, at_ms)) {
      reply.settled = true;
      return reply;
    }
    const auto row = load_any(asked.id);
    if (!row || !row->runs() || row->token != asked.token) return reply;
    if (!well_formed) throw RequestRefused{std::move(check_plain(asked.follow_ups).error())};
    reply.outcome = asked.outcome;
    news = settle_row(*row, asked, ending, reply);
  }
  reply.settled = true;
  for (const PutRequest& request : asked.follow_ups) reply.follow_ups.push_back(put_in_reach(request, from_ms(at_ms)));
  tell_dependants(asked.id, std::move(news.dependants), !news.how.empty(), news.how, ending,
                  {reply.released, reply.cancelled});
  return reply;
}

JobTransitions::News JobTransitions::settle_done(const ErasedJob& job, const Settlement& settlement,
                                                 const Ending& ending) {
  if (job.schedule != 0) {
    end_run({job.schedule, job.run, settlement.id, RunOutcome::done}, ending, settlement.error, settlement.result);
  }
  return {job.has_dependants ? rows_.jobs.take_dependants(settlement.id) : std::vector<JobId>{}, {}};
}

JobTransitions::News JobTransitions::settle_row(const JobRow& row, const Settlement& asked, const Ending& ending,
                                                SettleReply& reply) {
  const std::optional<Settlement> instead = cancellation_of(asked, row);
  const Settlement& settlement = instead ? *instead : asked;
  reply.outcome = settlement.outcome;
  switch (settlement.outcome) {
    case Outcome::done: return {end(row, ending, {JobState::done, true, {}, settlement.result, settlement.error}), {}};
    case Outcome::cancel:
      return {end(row, ending, {JobState::cancelled, settlement.keep, kCancelled, kNothing, settlement.error}),
              kCancelled};
    case Outcome::bury: {
      JobRow failed = row;
      failed_attempt(failed, settlement, "buried", ending.at_ms);
      set_priority(failed, settlement.priority);
      job_tally::kBuries.add(failed.tally, 1);
      if (settlement.expired) ++failed.expiries;
      return {end(failed, ending, {JobState::buried, true, kBuried, settlement.result, settlement.error}), kBuried};
    }
    case Outcome::retry:
    case Outcome::release:
    case Outcome::expire: give_back(row, settlement, ending.at_ms, reply); break;
  }
  return {};
}

// The settlement that takes its place where the job is to be cancelled with its run.
std::optional<Settlement> JobTransitions::cancellation_of(const Settlement& asked, const JobRow& row) {
  if ((row.flags & JobRow::kCancelAsked) == 0 || asked.outcome == Outcome::done) return std::nullopt;
  Settlement settlement = asked;
  settlement.outcome = Outcome::cancel;
  settlement.keep = keeps_cancelled(row.queue);
  if (std::string why = rows_.history.error_of(row.id); !why.empty()) settlement.error = std::move(why);
  return settlement;
}

void JobTransitions::give_back(const JobRow& before, const Settlement& settlement, std::int64_t at_ms,
                               SettleReply& reply) {
  JobRow row = without_lease(before);
  if (settlement.outcome != Outcome::expire) set_priority(row, settlement.priority);
  if (settlement.outcome == Outcome::retry) {
    failed_attempt(row, settlement, "retry", at_ms);
    row.due_ms = to_ms(settlement.due_at);
    place_now(row, at_ms);
  } else if (settlement.outcome == Outcome::expire) {
    failed_attempt(row, settlement, "lease expired", at_ms);
    ++row.expiries;
    if (row.state == RowState::delayed) row.state = RowState::ready;
  } else {
    job_tally::kReleases.add(row.tally, 1);
    if (to_ms(settlement.due_at) > at_ms) {
      row.due_ms = to_ms(settlement.due_at);
      place_now(row, at_ms);
    }
  }
  rows_.jobs.save(before, row);
  reply.again = waiting(row);
}

void JobTransitions::failed_attempt(JobRow& row, const Settlement& settlement, const char* outcome,
                                    std::int64_t at_ms) {
  ++row.attempts;
  row.flags |= JobRow::kHasHistory;
  rows_.history.write_attempt(row.id, {row.attempts, from_ms(at_ms), outcome, settlement.error, settlement.worker},
                              unless_empty(settlement.result));
}

std::vector<JobId> JobTransitions::end(const JobRow& row, const Ending& ending, const End& how) {
  if (row.schedule != 0) {
    end_run({row.schedule, row.run, row.id, schedule_rules::run_outcome(how.state)}, ending, how.error, how.result);
  }
  if (row.pending > 0) rows_.jobs.unlink(row.id);
  if (how.keep) {
    JobRow ended = without_lease(row);
    if (row.runs() && how.state != JobState::buried) job_tally::kOtherRuns.add(ended.tally, 1);
    ended.state = row_state(how.state);
    ended.ended_ms = ending.at_ms;
    ended.pending = 0;
    ended.flags &= ~JobRow::kCancelAsked;
    rows_.jobs.save(row, ended);
    rows_.history.write_end(row.id, how.error, how.state == JobState::done ? &how.result : unless_empty(how.result));
  } else {
    rows_.jobs.erase(row);
    if (!how.how.empty()) rows_.history.set_failure(row.id, how.how);
  }
  return (row.flags & JobRow::kHasDependants) != 0 ? rows_.jobs.take_dependants(row.id) : std::vector<JobId>{};
}

void JobTransitions::end_run(EndedRun run, const Ending& ending, std::string_view error, std::string_view result) {
  rows_.schedules.end_run(run, ending.calendar_at, error, result);
  ending.runs.push_back(run);
}

void JobTransitions::tell_dependants(JobId ended, std::vector<JobId> dependants, bool badly, std::string_view how,
                                     const Ending& ending, Effects into) {
  if (dependants.empty()) return;
  struct Told {
    JobId of;
    std::vector<JobId> dependants;
    std::string_view how;
  };
  std::deque<Told> ends;
  ends.push_back({ended, std::move(dependants), how});
  for (; !ends.empty(); ends.pop_front()) {
    const Told now = std::move(ends.front());
    for (const JobId id : now.dependants) {
      const auto before = rows_.jobs.load(id);
      if (!before || before->state != RowState::waiting) continue;
      JobRow row = *before;
      --row.pending;
      if (badly && row.cancelled_with_others) {
        const std::string why = cancelled_with(now.of, now.how);
        auto next = end(*before, ending, {JobState::cancelled, keeps_cancelled(row.queue), kCancelled, kNothing, why});
        into.cancelled.push_back({id, row.queue});
        ends.push_back({id, std::move(next), kCancelled});
        continue;
      }
      if (row.pending == 0) place_now(row, ending.at_ms);
      rows_.jobs.save(*before, row);
      if (row.pending == 0) into.released.push_back(waiting(row));
    }
  }
}

void JobTransitions::write_output(JobId id, std::uint64_t token, const std::string& output) {
  if (rows_.transaction.is_far()) rows_.transaction.bring({.ids = {id}});
  const auto row = load_any(id);
  if (row && row->runs() && row->token == token) rows_.history.write_result(id, output);
}

// --- changes ---------------------------------------------------------------------------------------------------------

std::vector<ChangeReply> JobTransitions::change(const std::vector<Change>& changes) {
  bring_for(changes);
  std::vector<ChangeReply> replies;
  replies.reserve(changes.size());
  for (const Change& change : changes) replies.push_back(change_one(change));
  return replies;
}

ChangeReply JobTransitions::change_one(const Change& change) {
  ChangeReply reply;
  const auto refuse = [&](ChangeOutcome outcome) {
    reply.outcome = outcome;
    return reply;
  };
  const auto before = load_any(change.id);
  if (!before) return refuse(ChangeOutcome::not_found);
  JobRow row = *before;
  if (row.runs()) {
    if (change.kind != ChangeKind::cancel) return refuse(ChangeOutcome::running);
    row.flags |= JobRow::kCancelAsked;
    rows_.jobs.save(*before, row);
    rows_.history.write_error(row.id, change.error);
    return refuse(ChangeOutcome::asked);
  }
  const bool has_ended = row.has_ended();
  const std::int64_t at_ms = to_ms(change.at);
  switch (change.kind) {
    case ChangeKind::cancel:
    case ChangeKind::erase: {
      const bool erases = change.kind == ChangeKind::erase;
      if (!erases && has_ended && row.state != RowState::buried) return refuse(ChangeOutcome::wrong_state);
      const Ending ending{at_ms, calendar_time(change.calendar_at, at_ms), reply.ended_runs};
      // A job that has ended goes on to have ended so when its record is deleted.
      const std::string_view how = !erases ? kCancelled : has_ended ? how_failed(state_of(row.state)) : kDeleted;
      const std::string& error = erases ? kNothing : change.error;
      const bool keeps = !erases && (change.keep ? *change.keep : keeps_cancelled(row.queue));
      auto dependants = end(row, ending, {JobState::cancelled, keeps, how, kNothing, error});
      tell_dependants(row.id, std::move(dependants), true, erases ? kDeleted : kCancelled, ending,
                      {reply.released, reply.cancelled});
      return reply;
    }
    case ChangeKind::kick:
      if (row.state != RowState::buried && row.state != RowState::delayed) return refuse(ChangeOutcome::wrong_state);
      if (has_ended) {
        if (lost_unique(row)) return refuse(ChangeOutcome::wrong_state);
        give_attempts_anew(row);
      } else {
        job_tally::kKicks.add(row.tally, 1);
      }
      row.due_ms = 0;
      place_now(row, at_ms);
      break;
    case ChangeKind::set_priority:
      if (has_ended) return refuse(ChangeOutcome::wrong_state);
      set_priority(row, change.priority);
      break;
    case ChangeKind::set_due:
      if (!is_leasable(row.state)) return refuse(ChangeOutcome::wrong_state);
      row.due_ms = to_ms(change.due_at);
      place_now(row, at_ms);
      break;
  }
  rows_.jobs.save(*before, row);
  reply.job = waiting(row);
  return reply;
}

void JobTransitions::shelve(const std::vector<JobId>& jobs, Shelf shelf) {
  if (shelf != Shelf::ready && shelf != Shelf::set_aside) throw RequestRefused{no_such_shelf()};
  bring_for(jobs);
  for (const JobId id : jobs) {
    const auto before = load_any(id);
    if (!before || !is_leasable(before->state) || before->runs() || before->state == row_state(shelf)) continue;
    JobRow row = *before;
    row.state = row_state(shelf);
    rows_.jobs.save(*before, row);
  }
}

std::size_t JobTransitions::prune(QueueId queue_id, JobState state, WallTime before, std::size_t limit) {
  (void)queue(queue_id);
  if (!has_ended(state)) throw RequestRefused{job_rules::not_ended()};
  const auto old = rows_.jobs.erase_ended(queue_id, state, before, limit);
  for (const JobId id : old) {
    if (!how_failed(state).empty()) rows_.history.set_failure(id, how_failed(state));
  }
  return old.size();
}

std::vector<std::optional<WaitingJob>> JobTransitions::find_waiting(const std::vector<JobId>& ids) {
  std::vector<std::optional<WaitingJob>> found;
  found.reserve(ids.size());
  bring_for(ids);
  for (const JobId id : ids) {
    const auto row = load_any(id);
    found.push_back(row && !row->has_ended() && !row->runs() ? std::optional(waiting(*row)) : std::nullopt);
  }
  return found;
}

}  // namespace argiope
