#include "engine/settle_desk.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "argiope/async/coro.hpp"
#include "engine/book_rules.hpp"

namespace argiope {
namespace {

JobEventKind event_of(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::done: return JobEventKind::done;
    case Outcome::retry: return JobEventKind::retrying;
    case Outcome::bury: return JobEventKind::buried;
    case Outcome::cancel: return JobEventKind::cancelled;
    case Outcome::release: return JobEventKind::released;
    case Outcome::expire: return JobEventKind::expired;
  }
  return JobEventKind::done;
}

bool ends_job(Outcome outcome) noexcept {
  return outcome == Outcome::done || outcome == Outcome::bury || outcome == Outcome::cancel;
}

}  // namespace

// --- runs ----------------------------------------------------------------------------------------------------------

// The settlement of the verdict under the queue's policy, and the same done to the queue in memory.
Settlement SettleDesk::settlement_of(const Run& running, std::uint64_t token, Verdict& verdict, TimePoint now) {
  Queue& queue = *running.queue;
  JobQueue& jobs = queue.window.jobs();
  const QueueConfig& config = queue.window.config();
  Settlement settlement{
      .id = running.id, .token = token, .outcome = verdict.outcome, .at = clock_.now(), .calendar_at = calendar_now()};
  settlement.worker = running.call->worker;
  settlement.error = std::move(verdict.error);
  settlement.priority = verdict.priority;
  std::optional<Duration> delay = verdict.delay;
  if (running.cancel_asked && verdict.outcome != Outcome::done) {
    settlement.outcome = Outcome::cancel;
    if (!running.cancel_why.empty()) settlement.error = running.cancel_why;
  } else if (verdict.outcome == Outcome::retry) {
    RetryPolicy policy = config.retry;
    if (running.max_attempts > 0) policy.max_attempts = running.max_attempts;
    const auto by_policy = policy.delay_after(running.attempt, random_);
    if (!by_policy) settlement.outcome = Outcome::bury;
    if (!delay) delay = by_policy;
  }
  const TimePoint due = saturating_add(now, std::max(delay.value_or(Duration::zero()), Duration::zero()));
  // Until the store has said exactly where it belongs.
  std::optional<std::int32_t> rank;
  if (verdict.priority) rank = ranked_priority(*verdict.priority, clock_.to_job_time(due), config.ageing);
  switch (settlement.outcome) {
    case Outcome::done:
      settlement.result = std::move(verdict.result);
      settlement.keep = config.keep_done > Duration::zero();
      jobs.done(running.queue_token, now);
      break;
    case Outcome::cancel:
      settlement.keep = config.keep_cancelled > Duration::zero();
      jobs.done(running.queue_token, now);
      break;
    case Outcome::bury:
      settlement.result = std::move(verdict.result);
      jobs.done(running.queue_token, now);
      break;
    case Outcome::retry:
      settlement.result = std::move(verdict.result);
      settlement.due_at = whole_ms(clock_.to_job_time(due));
      jobs.retry(running.queue_token, due, now, rank);
      break;
    case Outcome::release:
      if (due > now) settlement.due_at = whole_ms(clock_.to_job_time(due));
      jobs.release(running.queue_token, due, now, rank);
      break;
    case Outcome::expire: break;  // the queue has done it
  }
  queue_desk_.mark(queue);
  return settlement;
}

void SettleDesk::end_unasked(std::uint64_t token, Verdict verdict) {
  const Run& running = runs_.at(token);
  Queue& queue = *running.queue;
  const std::uint32_t attempt = running.attempt;
  Settlement settlement = settlement_of(running, token, verdict, loop_.time());
  run_desk_.end(token);
  submit({.settlement = std::move(settlement), .queue = &queue, .attempt = attempt});
}

void SettleDesk::submit(Pending pending) {
  switch (settlements_.add(std::move(pending))) {
    case Next::send_now: run_in_background(send(settlements_.take()), Start::eagerly); break;
    case Next::send_after_turn: run_in_background(flush()); break;
    case Next::wait: break;
  }
}

Coro<Result<bool>> SettleDesk::settle_run(std::shared_ptr<SettleDesk> self, std::uint64_t token, Verdict verdict) {
  if (auto failed = self->store_.failure()) co_return std::unexpected(std::move(*failed));
  if (self->needs_new_queue(verdict.follow_ups)) {
    co_return co_await self->to_its_end(self->settle_in_new_queues(token, std::move(verdict)));
  }
  if (self->runs_.find(token) == nullptr) co_return false;
  const auto reply = co_await self->submit_verdict(token, std::move(verdict));
  if (!reply) co_return std::unexpected(reply.error());
  co_return reply->settled;
}

Coro<Result<std::vector<SettleReply>>> SettleDesk::settle_several(std::vector<RunEnd> ends) {
  if (auto failed = store_.failure()) co_return std::unexpected(std::move(*failed));
  auto why_no_follow_ups = co_await or_return(make_queues_of_all(ends));
  std::vector<SettleReply> replies(ends.size());
  std::vector<std::pair<std::size_t, Future<Result<SettleReply>>>> answers;
  answers.reserve(ends.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (runs_.find(ends[i].token) == nullptr) continue;
    answers.emplace_back(i, submit_verdict(ends[i].token, std::move(ends[i].verdict), std::move(why_no_follow_ups[i])));
  }
  for (auto& [place, answer] : answers) {
    auto reply = co_await std::move(answer);
    if (reply) {
      replies[place] = std::move(*reply);
    } else {
      replies[place].refused = std::move(reply.error());
    }
  }
  if (auto failed = store_.failure()) co_return std::unexpected(std::move(*failed));
  co_return replies;
}

bool SettleDesk::needs_new_queue(const std::vector<NewJob>& follow_ups) const {
  return std::ranges::any_of(follow_ups, [&](const NewJob& job) { return queues_.find(job.queue) == nullptr; });
}

Coro<Result<bool>> SettleDesk::settle_in_new_queues(std::uint64_t token, Verdict verdict) {
  const Run* const run = runs_.find(token);
  if (run == nullptr) co_return false;
  auto why_not = co_await or_return(make_queues_of(token, verdict.follow_ups, {run->id}));
  if (runs_.find(token) == nullptr) co_return false;
  const auto reply = co_await submit_verdict(token, std::move(verdict), std::move(why_not));
  if (!reply) co_return std::unexpected(reply.error());
  co_return reply->settled;
}

// None is made where one of the follow-ups is refused: why, as far as that is known before it is put.
// Errors: of the store, when it has failed.
Coro<Result<std::optional<Error>>> SettleDesk::make_queues_of(std::uint64_t token,
                                                              const std::vector<NewJob>& follow_ups,
                                                              const std::vector<JobId>& of_call) {
  const Run* const run = runs_.find(token);
  if (run == nullptr || !needs_new_queue(follow_ups)) co_return std::optional<Error>();
  run->queue->window.jobs().renew(run->queue_token, kNever);  // it only waits for the store
  auto made = co_await queue_desk_.of_all(pointers_to(follow_ups), false, of_call);
  if (made) co_return std::optional<Error>();
  if (store_.failure()) co_return std::unexpected(std::move(made.error()));
  co_return std::optional<Error>(std::move(made.error()));
}

Coro<Result<std::vector<std::optional<Error>>>> SettleDesk::make_queues_of_all(const std::vector<RunEnd>& ends) {
  std::vector<std::optional<Error>> why_not(ends.size());
  const auto needs_some = [&](const RunEnd& end) { return needs_new_queue(end.verdict.follow_ups); };
  if (std::ranges::none_of(ends, needs_some)) co_return why_not;
  const std::vector<JobId> of_call = jobs_of(ends);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    why_not[i] = co_await or_return(make_queues_of(ends[i].token, ends[i].verdict.follow_ups, of_call));
  }
  co_return why_not;
}

std::vector<JobId> SettleDesk::jobs_of(std::span<const RunEnd> ends) const {
  std::vector<JobId> jobs;
  for (const RunEnd& end : ends) {
    if (const Run* const run = runs_.find(end.token)) jobs.push_back(run->id);
    for (const NewJob& job : end.verdict.follow_ups) {
      if (job.id != 0) jobs.push_back(job.id);
    }
  }
  return jobs;
}

// Of each follow-up, or why one of them cannot be put.
Result<std::vector<SettleDesk::Queue*>> SettleDesk::queues_of(const std::vector<NewJob>& follow_ups) const {
  std::vector<Queue*> queues;
  for (const NewJob& job : follow_ups) {
    Queue* queue = queues_.find(job.queue);
    if (auto good = check_queue_name(job.queue); !good) return std::unexpected(std::move(good.error()));
    if (queue == nullptr) return no_such_queue(job.queue);
    auto checked = check_job(job, queue->name(), queue->config().max_payload_bytes);
    if (!checked) return std::unexpected(std::move(checked.error()));
    queues.push_back(queue);
  }
  return queues;
}

Future<Result<SettleReply>> SettleDesk::submit_verdict(std::uint64_t token, Verdict verdict,
                                                       std::optional<Error> why_no_follow_ups) {
  Future<Result<SettleReply>> answer = loop_.create_future<Result<SettleReply>>();
  Pending pending = ended(token, std::move(verdict), std::move(why_no_follow_ups));
  pending.answer = answer;
  submit(std::move(pending));
  return answer;
}

// The run is over in memory, and this is to be written down.
SettleDesk::Pending SettleDesk::ended(std::uint64_t token, Verdict verdict, std::optional<Error> why_no_follow_ups) {
  const Run& running = runs_.at(token);
  Pending pending{.queue = running.queue, .attempt = running.attempt};
  auto queues = why_no_follow_ups ? std::unexpected(*std::move(why_no_follow_ups)) : queues_of(verdict.follow_ups);
  if (!verdict.follow_ups.empty()) pending.run = std::make_unique<Run>(running);
  if (!queues) {
    pending.settlement.token = token;
    pending.settlement.outcome = verdict.outcome;
    run_desk_.end(token);
    fail_for(pending, std::move(queues.error()));
    return pending;
  }
  pending.is_finding = verdict.is_finding;
  pending.settlement = settlement_of(running, token, verdict, loop_.time());
  run_desk_.end(token);
  // Follow-ups find room whatever the capacity: work that is done is not refused for what comes of it.
  for (std::size_t i = 0; i < queues->size(); ++i) {
    (*queues)[i]->room.take_anyway(1);
    pending.settlement.follow_ups.push_back(queue_desk_.request_of(std::move(verdict.follow_ups[i]), *(*queues)[i]));
  }
  pending.follow_up_queues = std::move(*queues);
  return pending;
}

// A run whose follow-ups cannot be put has failed, and that is its own affair.
void SettleDesk::fail_for(Pending& pending, Error why) {
  Verdict failed{.outcome = Outcome::retry, .error = fmt::format("a follow-up was refused: {}", why.message)};
  if (pending.settlement.outcome == Outcome::bury || pending.settlement.outcome == Outcome::cancel) {
    failed.outcome = pending.settlement.outcome;
  }
  pending.settlement = settlement_of(*pending.run, pending.settlement.token, failed, loop_.time());
  pending.follow_up_queues.clear();
  pending.run.reset();
  pending.refused = std::move(why);
}

void SettleDesk::submit_refused(Pending pending, Error why) {
  fail_for(pending, std::move(why));
  submit(std::move(pending));
}

// The settlement on its way into the store; what the notes need of it stays.
Settlement SettleDesk::taken_along(Pending& pending) {
  Settlement settlement = std::move(pending.settlement);
  pending.settlement.id = settlement.id;
  pending.settlement.token = settlement.token;
  pending.settlement.outcome = settlement.outcome;
  pending.settlement.error = settlement.error;
  pending.settlement.expired = settlement.expired;
  return settlement;
}

Coro<void> SettleDesk::flush() {
  if (auto pending = settlements_.take_after_turn(); !pending.empty()) co_await send(std::move(pending));
}

Coro<void> SettleDesk::send(std::vector<Pending> pending) {
  std::vector<Settlement> settlements;
  settlements.reserve(pending.size());
  for (Pending& one : pending) settlements.push_back(taken_along(one));
  auto replies = co_await store_(&Store::settle, std::move(settlements));
  for (std::size_t i = 0; i < pending.size(); ++i) {
    Pending& one = pending[i];
    if (replies) {
      SettleReply& reply = (*replies)[i];
      note_settled(one, reply);
      if (reply.refused) {
        submit_refused(std::move(one), std::move(*reply.refused));
        continue;
      }
    }
    if (!one.answer || one.answer.done()) continue;
    if (!replies) {
      one.answer.set_result(std::unexpected(replies.error()));
    } else if (one.refused && (*replies)[i].settled) {
      one.answer.set_result(std::unexpected(std::move(*one.refused)));
    } else {
      one.answer.set_result(std::move((*replies)[i]));
    }
  }
  if (!replies) owned_.stop_all(replies.error());
}

void SettleDesk::note_settled(const Pending& pending, SettleReply& reply) {
  Queue& queue = *pending.queue;
  if (!reply.settled) {
    for (Queue* follow_up : pending.follow_up_queues) follow_up->room.arrived(false);
    return;
  }
  const Outcome outcome = reply.outcome;
  if (ends_job(outcome)) queue.room.give(1);
  if (outcome != pending.settlement.outcome) queue.window.forget(pending.settlement.id, loop_.time());
  if (reply.again) queue.window.place(*reply.again, loop_.time());
  queue_desk_.mark(queue);
  if (outcome == Outcome::bury && pending.settlement.expired) {
    tell(JobEventKind::expired, pending.settlement.id, queue, pending.settlement.error, pending.attempt);
  }
  const bool is_told = outcome != Outcome::done || pending.is_finding;
  tell(event_of(outcome), pending.settlement.id, queue, is_told ? pending.settlement.error : "", pending.attempt,
       reply.again ? reply.again->due_at : WallTime{}, 0, run_of(pending.settlement.id, reply.ended_runs));
  for (std::size_t i = 0; i < reply.follow_ups.size(); ++i)
    queue_desk_.note_put(*pending.follow_up_queues[i], reply.follow_ups[i]);
  queue_desk_.note_released(reply.released, reply.cancelled, reply.ended_runs);
}

void SettleDesk::give_back(std::uint64_t token) {
  if (runs_.find(token) != nullptr) end_unasked(token, {.outcome = Outcome::release});
}

void SettleDesk::give_back_unknown(const JobRecord& record, std::uint64_t token) {
  Queue* queue = queues_.find(record.queue);
  if (queue == nullptr) return;
  submit({.settlement = {.id = record.id,
                         .token = token,
                         .outcome = Outcome::release,
                         .at = clock_.now(),
                         .calendar_at = calendar_now()},
          .queue = queue,
          .attempt = record.attempts + 1});
}

void SettleDesk::expire(Queue& queue, const ExpiredLease& lease) {
  const std::uint64_t token = runs_.token_of(lease.id);
  if (token == 0) return;
  const Run& running = runs_.at(token);
  if (running.queue != &queue || running.queue_token != lease.token) return;
  Settlement settlement{.id = lease.id, .token = token, .at = clock_.now(), .calendar_at = calendar_now()};
  settlement.outcome = lease.buried ? Outcome::bury : Outcome::expire;
  settlement.expired = true;
  settlement.error = "lease expired";
  if (running.cancel_asked) {
    settlement.outcome = Outcome::cancel;
    settlement.keep = queue.window.config().keep_cancelled > Duration::zero();
    if (!running.cancel_why.empty()) settlement.error = running.cancel_why;
    queue.window.forget(lease.id, loop_.time());
  }
  settlement.worker = running.call->worker;
  const std::uint32_t attempt = running.attempt;
  const std::shared_ptr<const LeaseCall> call = running.call;
  run_desk_.end(token);
  submit({.settlement = std::move(settlement), .queue = &queue, .attempt = attempt});
  RunDesk::tell_holder(*call, token);
}

// --- with a key ------------------------------------------------------------------------------------------------------

Coro<Result<OnceReply>> SettleDesk::do_settle_once(RequestKey key, std::vector<RunEnd> ends) {
  // One after the other: a request that is repeated while it is being done finds its runs ended.
  const auto in_turn = co_await settling_once_.scoped();
  OnceReply known = co_await or_return(look_for_request(store_, key));
  if (known.how != Repetition::first) co_return known;
  co_return co_await to_its_end(settle_in_one(std::move(key), std::move(ends)));
}

Coro<Result<OnceReply>> SettleDesk::settle_in_one(RequestKey key, std::vector<RunEnd> ends) {
  auto why_no_follow_ups = co_await or_return(make_queues_of_all(ends));
  OnceRequest request{.key = std::move(key), .now = clock_.now()};
  std::vector<Pending> pending;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    RunEnd& end = ends[i];
    const bool runs = runs_.find(end.token) != nullptr;
    // No job has the id 0: the lease of such a token is lost.
    pending.push_back(runs ? ended(end.token, std::move(end.verdict), std::move(why_no_follow_ups[i]))
                           : Pending{.settlement = {.token = end.token}, .queue = nullptr, .attempt = 0});
    request.refused.push_back(pending.back().refused);
    request.settlements.push_back(taken_along(pending.back()));
  }
  auto answered = co_await store_(&Store::once, std::move(request));
  if (!answered) {
    owned_.stop_all(answered.error());
    co_return answered;
  }
  for (std::size_t i = 0; i < pending.size() && answered->how == Repetition::first; ++i) {
    if (pending[i].queue == nullptr) continue;
    SettleReply& reply = answered->settlements[i];
    note_settled(pending[i], reply);
    if (reply.refused && !pending[i].refused) submit_refused(std::move(pending[i]), *reply.refused);
  }
  co_return answered;
}

// --- leases of the owner before this one -----------------------------------------------------------------------------

// Jobs that ran when it ended run no more, but for those of remote workers.
Coro<Result<void>> SettleDesk::end_old_leases() {
  const auto old = co_await or_return(store_(&Store::old_leases));
  std::vector<Settlement> settlements;
  std::vector<LeaseRequest> adopted;
  for (const OldLease& lease : old) {
    const auto record = co_await or_return(store_(&Store::get, lease.id));
    Queue* queue = record ? queues_.find(record->queue) : nullptr;
    if (options_.adopt_leases && lease.remote && queue != nullptr) {
      adopted.push_back(adopt(lease, *record, *queue));
      continue;
    }
    settlements.push_back(ending_of(lease, record ? &*record : nullptr, queue));
    if (queue == nullptr) continue;
    // The target may just have been asked: its key rests as after any run.
    const Duration delay = queue->window.config().key_limits.delay;
    JobQueue& jobs = queue->window.jobs();
    const TimePoint now = loop_.time();
    if (delay > Duration::zero()) jobs.rest_key(jobs.key(record->key), saturating_add(now, delay), now);
  }
  // Nothing has been read yet, so the windows will find what waits now.
  if (!adopted.empty()) co_await or_return(store_(&Store::renew, std::move(adopted)));
  if (!settlements.empty()) co_await or_return(store_(&Store::settle, std::move(settlements)));
  co_return Result<void>{};
}

Settlement SettleDesk::ending_of(const OldLease& lease, const JobRecord* record, const Queue* queue) const {
  Settlement settlement{.id = lease.id,
                        .token = lease.token,
                        .outcome = Outcome::release,
                        .at = clock_.now(),
                        .calendar_at = calendar_now()};
  settlement.worker = lease.worker;
  if (!options_.blame_old_leases) return settlement;
  const bool last = queue != nullptr && record->expiries + 1 >= queue->window.config().max_lease_expiries;
  settlement.outcome = last ? Outcome::bury : Outcome::expire;
  settlement.expired = true;
  settlement.error = "the process that ran it has ended";
  return settlement;
}

// It goes on under its token, for a full lease time from now.
LeaseRequest SettleDesk::adopt(const OldLease& lease, const JobRecord& record, Queue& queue) {
  Run run{.queue = &queue,
          .id = lease.id,
          .max_attempts = record.max_attempts,
          .lease_time = record.lease_time,
          .cancel_asked = record.cancel_asked,
          .call = std::make_shared<const LeaseCall>(LeaseCall{.worker = lease.worker, .remote = true})};
  if (record.cancel_asked) run.cancel_why = record.error;
  const TimePoint now = loop_.time();
  const Duration lease_time = RunDesk::lease_time_of(run);
  queue.window.hold({.id = lease.id,
                     .queue = queue.window.id(),
                     .key = record.key,
                     .priority = ranked_priority(record.priority, clock_.now(), queue.config().ageing),
                     .attempts = record.attempts,
                     .expiries = record.expiries},
                    now);
  const auto leased = queue.window.jobs().lease_job(lease.id, now, lease_time);
  run.queue_token = leased->token;
  run.attempt = leased->attempts;
  runs_.begin(lease.token, std::move(run));
  queue_desk_.mark(queue);
  return {.id = lease.id,
          .token = lease.token,
          .until = clock_.to_job_time(saturating_add(now, lease_time)),
          .worker = lease.worker,
          .remote = true};
}

}  // namespace argiope
