// How jobs end, come back and are changed, and what that means for those that wait for them.
#include <deque>

#include "store/job_rules.hpp"
#include "store/schedule_rules.hpp"
#include "store/sqlite_jobs.hpp"
#include "store/sqlite_jobs_use.hpp"

namespace argiope {

using namespace job_rules;

namespace {

std::int64_t calendar_ms(WallTime calendar_at, std::int64_t at) {
  return calendar_at == WallTime{} ? at : schedule_rules::to_ms(calendar_at);
}

}  // namespace

SettleReply SqliteJobs::settle_one(const Settlement& asked) {
  SettleReply reply;
  const JobId id = asked.id;
  const Lease* lease = find_lease(id);
  if (lease == nullptr || static_cast<std::uint64_t>(lease->token) != asked.token) return reply;
  if (auto good = check_plain(asked.follow_ups); !good) throw RequestRefused{std::move(good.error())};
  reply.settled = true;
  reply.outcome = asked.outcome;
  const std::int64_t at = to_ms(asked.at);
  const Ending ending{at, calendar_ms(asked.calendar_at, at), reply.ended_runs};
  std::vector<JobId> dependants;
  std::string_view how;
  // 1. The job itself. 2. What follows it, which may take its unique name. 3. Those that waited for it, unless what
  // follows gave them more to wait for.
  if (asked.outcome == Outcome::done && !asked.keep) {
    dependants = settle_done(asked, ending);
  } else {
    Row row = *load(id);
    const std::optional<Settlement> instead = cancellation_of(asked, row);
    const Settlement& settlement = instead ? *instead : asked;
    reply.outcome = settlement.outcome;
    // Counted as running until here; from here on as its shelf says.
    count(row.queue, JobState::running, -1);
    count(row.queue, state_of(row.state), 1);
    row.fence = lease->token;
    switch (settlement.outcome) {
      case Outcome::done:
        ++changed_counts_[row.queue - 1].ended;
        dependants = end(row, Stored::done, ending, true, {}, settlement.result, {});
        break;
      case Outcome::cancel:
        how = kCancelled;
        dependants = end(row, Stored::cancelled, ending, settlement.keep, how, {}, settlement.error);
        break;
      case Outcome::bury: {
        how = kBuried;
        Row failed = row;
        failed_attempt(failed, settlement, "buried", at);
        dependants = end(failed, Stored::buried, ending, true, how, settlement.result, settlement.error);
        break;
      }
      case Outcome::retry:
      case Outcome::release:
      case Outcome::expire: give_back(row, settlement, at, reply); break;
    }
    set_lease(id, std::nullopt);
  }
  for (const PutRequest& request : asked.follow_ups) {
    reply.follow_ups.push_back(put_one(request, at));
  }
  if (!dependants.empty()) {
    tell_dependants(id, std::move(dependants), !how.empty(), how, ending, reply.released, reply.cancelled);
  }
  return reply;
}

// What takes its place where the job is to be cancelled with its run.
std::optional<Settlement> SqliteJobs::cancellation_of(const Settlement& asked, const Row& row) {
  if ((row.flags & kCancelAsked) == 0 || asked.outcome == Outcome::done) return std::nullopt;
  Settlement settlement = asked;
  settlement.outcome = Outcome::cancel;
  settlement.keep = queues_[row.queue - 1].config.keep_cancelled > Duration{};
  if (std::string why = get(row.id)->error; !why.empty()) settlement.error = std::move(why);
  return settlement;
}

// The common end, which is the one that has to be fast.
std::vector<JobId> SqliteJobs::settle_done(const Settlement& settlement, const Ending& ending) {
  const JobId id = settlement.id;
  const Lease* lease = find_lease(id);
  QueueId queue_id = lease->queue;
  std::int64_t flags = lease->flags;
  EndedRun run{.job = id};
  if (queue_id == 0 || flags & kIsRun) {
    Use found = use(Query::job_brief);
    if (!found.with(id).next()) failed(SQLITE_CORRUPT);
    queue_id = static_cast<QueueId>(found.number(0));
    flags = found.number(1);
    run.schedule = static_cast<ScheduleId>(found.number(2));
    run.number = static_cast<std::uint64_t>(found.number(3));
  }
  erase_row(id, flags);
  count(queue_id, JobState::running, -1);
  ++changed_counts_[queue_id - 1].ended;
  set_lease(id, std::nullopt);
  if (run.schedule != 0) end_run(run, ending, {}, settlement.result);
  return flags & kHasDependants ? take_dependants(id) : std::vector<JobId>{};
}

void SqliteJobs::give_back(const Row& before, const Settlement& settlement, std::int64_t at, SettleReply& reply) {
  Row row = before;
  if (settlement.outcome == Outcome::retry) {
    failed_attempt(row, settlement, "retry", at);
    if (settlement.priority) row.priority = *settlement.priority;
    row.due_at = to_ms(settlement.due_at);
    place_now(row, at);
  } else if (settlement.outcome == Outcome::expire) {
    failed_attempt(row, settlement, "lease expired", at);
    ++row.expiries;
    if (row.state == Stored::delayed) row.state = Stored::ready;
  } else if (to_ms(settlement.due_at) > at) {
    row.due_at = to_ms(settlement.due_at);
    place_now(row, at);
  }
  store(before, row);
  reply.again = waiting(row);
}

void SqliteJobs::failed_attempt(Row& row, const Settlement& settlement, const char* outcome, std::int64_t at) {
  ++row.attempts;
  row.flags |= kHasHistory;
  std::int64_t last = 0;
  {
    Use found = use(Query::history_last);
    if (found.with(row.id).next()) last = found.number(0);
  }
  use(Query::history_add)
      .with(row.id, last + 1, row.attempts, at, outcome)
      .with_or_null(settlement.error, settlement.worker)
      .run();
  if (last >= static_cast<std::int64_t>(kMostAttemptsKept)) {
    use(Query::history_trim).with(row.id, last + 1 - static_cast<std::int64_t>(kMostAttemptsKept)).run();
  }
  use(Query::job_set_failure).with(row.id).with_or_null(settlement.error, settlement.result).run();
}

// Gives those that waited for it, who are to be told.
std::vector<JobId> SqliteJobs::end(const Row& row, Stored state, const Ending& ending, bool keep, std::string_view how,
                                   const std::string& result, const std::string& error) {
  if (row.schedule != 0) {
    end_run({row.schedule, row.run, row.id, schedule_rules::run_outcome(state_of(state))}, ending, error, result);
  }
  if (row.pending > 0) use(Query::waits_for_delete).with(row.id).run();
  if (keep) {
    Row ended = row;
    ended.state = state;
    ended.ended_at = ending.at;
    ended.pending = 0;
    ended.flags &= ~kCancelAsked;
    store(row, ended);
    use(Query::job_set_result).with(row.id).with_or_null(error, result).run();
  } else {
    erase_row(row.id, row.flags);
    if (!how.empty()) remember_failed(row.id, how);
    if (!waits(row.state)) use(Query::ended_delete).with(row.queue, row.state, row.ended_at, row.id).run();
    count(row.queue, state_of(row.state), -1);
    touch(row.id);
  }
  return row.flags & kHasDependants ? take_dependants(row.id) : std::vector<JobId>{};
}

std::vector<JobId> SqliteJobs::take_dependants(JobId id) {
  std::vector<JobId> found;
  {
    Use rows = use(Query::dependants);
    rows.with(id);
    while (rows.next()) found.push_back(static_cast<JobId>(rows.number(0)));
  }
  if (!found.empty()) use(Query::dependants_delete).with(id).run();
  return found;
}

void SqliteJobs::tell_dependants(JobId ended, std::vector<JobId> dependants, bool badly, std::string_view how,
                                 const Ending& ending, std::vector<WaitingJob>& released,
                                 std::vector<JobId>& cancelled) {
  struct End {
    JobId id;
    std::vector<JobId> dependants;
    std::string_view how;
  };
  std::deque<End> ends;
  ends.push_back({ended, std::move(dependants), how});
  for (; !ends.empty(); ends.pop_front()) {
    const End now = std::move(ends.front());
    for (const JobId id : now.dependants) {
      const auto before = load(id);
      if (!before || before->state != Stored::waiting) continue;
      Row row = *before;
      --row.pending;
      if (badly && row.cancelled_with_others) {
        const bool keep = queues_[row.queue - 1].config.keep_cancelled > Duration{};
        auto next = end(*before, Stored::cancelled, ending, keep, kCancelled, {}, cancelled_with(now.id, now.how));
        cancelled.push_back(id);
        ends.push_back({id, std::move(next), kCancelled});
        continue;
      }
      if (row.pending == 0) place_now(row, ending.at);
      store(*before, row);
      if (row.pending == 0) released.push_back(waiting(row));
    }
  }
}

void SqliteJobs::place_now(Row& row, std::int64_t at) {
  const Place now = place(row.priority, from_ms(row.due_at), from_ms(at), false, queues_[row.queue - 1].config.ageing);
  row.state = static_cast<Stored>(now.shelf);
  row.rank = now.rank;
}

// --- changes ---------------------------------------------------------------------------------------------------------

std::vector<ChangeReply> SqliteJobs::change(const std::vector<Change>& changes) {
  std::vector<ChangeReply> replies;
  replies.reserve(changes.size());
  for (const Change& change : changes) replies.push_back(change_one(change));
  return replies;
}

ChangeReply SqliteJobs::change_one(const Change& change) {
  using Verdict = ChangeReply::Verdict;
  ChangeReply reply;
  const auto refuse = [&](Verdict verdict) {
    reply.verdict = verdict;
    return reply;
  };
  const auto before = load(change.id);
  if (!before) return refuse(Verdict::not_found);
  const bool waiting_now = waits(before->state);
  if (waiting_now && runs(change.id, before->fence)) {
    if (change.kind != ChangeKind::cancel) return refuse(Verdict::running);
    ask_to_cancel(change);
    return refuse(Verdict::asked);
  }
  const std::int64_t at = to_ms(change.at);
  Row row = *before;
  switch (change.kind) {
    case ChangeKind::cancel:
    case ChangeKind::erase: {
      const bool erases = change.kind == ChangeKind::erase;
      if (!erases && !waiting_now && row.state != Stored::buried) return refuse(Verdict::wrong_state);
      const Ending ending{at, calendar_ms(change.calendar_at, at), reply.ended_runs};
      // What has ended goes on to have ended so when its record is deleted.
      const std::string_view how = !erases ? kCancelled : waiting_now ? kDeleted : how_failed(state_of(row.state));
      auto dependants =
          end(row, Stored::cancelled, ending, !erases && change.keep, how, {}, erases ? std::string{} : change.error);
      tell_dependants(row.id, std::move(dependants), true, erases ? kDeleted : kCancelled, ending, reply.released,
                      reply.cancelled);
      return reply;
    }
    case ChangeKind::kick:
      if (row.state != Stored::buried && row.state != Stored::delayed) return refuse(Verdict::wrong_state);
      if (!waiting_now) {
        // Another may have taken its unique name since.
        if (!row.unique.empty()) {
          Use holder = use(Query::unique_find);
          if (holder.with(row.queue, row.unique).next()) return refuse(Verdict::wrong_state);
        }
        row.attempts = row.expiries = 0;
      }
      row.ended_at = 0;
      row.due_at = 0;
      place_now(row, at);
      break;
    case ChangeKind::set_priority:
      if (!waiting_now) return refuse(Verdict::wrong_state);
      row.rank = shifted(row.rank, row.priority, change.priority);
      row.priority = change.priority;
      break;
    case ChangeKind::set_due:
      if (!leasable(row.state)) return refuse(Verdict::wrong_state);
      row.due_at = to_ms(change.due_at);
      place_now(row, at);
      break;
  }
  store(*before, row);
  reply.job = waiting(row);
  return reply;
}

void SqliteJobs::ask_to_cancel(const Change& change) {
  add_flags(change.id, kCancelAsked);
  use(Query::job_set_error).with(change.id).with_or_null(change.error).run();
  touch(change.id);
}

void SqliteJobs::shelve(const std::vector<JobId>& jobs, Shelf shelf) {
  if (shelf != Shelf::ready && shelf != Shelf::set_aside) throw RequestRefused{no_such_shelf()};
  for (const JobId id : jobs) {
    const auto before = load(id);
    if (!before || !leasable(before->state) || runs(id, before->fence)) continue;
    Row row = *before;
    row.state = static_cast<Stored>(shelf);
    if (row.state != before->state) store(*before, row);
  }
}

std::size_t SqliteJobs::prune(QueueId queue_id, JobState state, WallTime before, std::size_t limit) {
  (void)queue(queue_id);
  if (!has_ended(state)) throw RequestRefused{job_rules::not_ended()};
  const Stored stored = state == JobState::done        ? Stored::done
                        : state == JobState::cancelled ? Stored::cancelled
                                                       : Stored::buried;
  struct Old {
    JobId id;
    std::int64_t ended_at;
    std::int64_t flags;
  };
  std::vector<Old> old;
  {
    Use rows = use(Query::jobs_ended);
    rows.with(queue_id, stored, to_ms(before),
              static_cast<std::int64_t>(std::min<std::size_t>(limit, std::numeric_limits<std::int64_t>::max())));
    while (rows.next()) old.push_back({static_cast<JobId>(rows.number(0)), rows.number(1), rows.number(2)});
  }
  for (const Old& job : old) {
    erase_row(job.id, job.flags);
    if (!how_failed(state).empty()) remember_failed(job.id, how_failed(state));
    use(Query::ended_delete).with(queue_id, stored, job.ended_at, job.id).run();
    count(queue_id, state, -1);
  }
  return old.size();
}

}  // namespace argiope
