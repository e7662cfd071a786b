// How runs end, and how jobs that do not run are changed.
#include <fmt/format.h>

#include <algorithm>

#include "argiope/async/or_return.hpp"
#include "engine/book_rules.hpp"
#include "engine/broker.hpp"

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

// The job that ends for others has its run, if it is one, at the front.
EndedRun run_of(JobId id, const std::vector<EndedRun>& ended_runs) noexcept {
  return !ended_runs.empty() && ended_runs.front().job == id ? ended_runs.front() : EndedRun{};
}

}  // namespace

// --- runs ----------------------------------------------------------------------------------------------------------

// What the verdict comes to under the queue's policy, and the same done to the queue in memory.
Settlement Broker::settlement_of(const Running& running, std::uint64_t token, Verdict& verdict, TimePoint now) {
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
      jobs.retry(running.queue_token, due, now, verdict.priority);
      break;
    case Outcome::release:
      if (due > now) settlement.due_at = whole_ms(clock_.to_job_time(due));
      jobs.release(running.queue_token, due, now);
      break;
    case Outcome::expire: break;  // the queue has done it
  }
  mark(queue);
  return settlement;
}

void Broker::end_run(std::uint64_t token) {
  const auto running = running_.find(token);
  running_ids_.erase(running->second.id);
  running_.erase(running);
}

void Broker::end_unasked(std::uint64_t token, Verdict verdict) {
  const Running& running = running_.at(token);
  Queue& queue = *running.queue;
  const std::uint32_t attempt = running.attempt;
  Settlement settlement = settlement_of(running, token, verdict, loop_.time());
  end_run(token);
  submit({.settlement = std::move(settlement), .queue = &queue, .attempt = attempt});
}

void Broker::submit(PendingSettlement pending) {
  pending_settlements_.push_back(std::move(pending));
  if (pending_settlements_.size() == kMostTogether) {
    run_in_background(send_settlements(std::exchange(pending_settlements_, {})), Start::eagerly);
  } else if (!std::exchange(settlements_scheduled_, true)) {
    run_in_background(flush_settlements());
  }
}

Coro<Result<bool>> Broker::settle_run(std::shared_ptr<Broker> self, std::uint64_t token, Verdict verdict) {
  if (auto failed = self->store_.failure()) co_return std::unexpected(std::move(*failed));
  const auto is_new = [&](const NewJob& job) { return self->find_queue(job.queue) == nullptr; };
  if (std::ranges::any_of(verdict.follow_ups, is_new)) {
    co_return co_await self->to_its_end(self->settle_in_new_queues(token, std::move(verdict)));
  }
  if (!self->running_.contains(token)) co_return false;
  co_return co_await self->submit_verdict(token, std::move(verdict));
}

Coro<Result<bool>> Broker::settle_in_new_queues(std::uint64_t token, Verdict verdict) {
  const auto running = running_.find(token);
  if (running == running_.end()) co_return false;
  running->second.queue->window.jobs().renew(running->second.queue_token, kNever);  // it only waits for the store
  for (const NewJob& job : verdict.follow_ups) {
    // What is refused here is refused again, and said, when it is looked up.
    if (auto made = co_await queue_named(job.queue, options_.create_queues); !made && store_.failure()) {
      co_return std::unexpected(std::move(made.error()));
    }
  }
  if (!running_.contains(token)) co_return false;
  co_return co_await submit_verdict(token, std::move(verdict));
}

// Of each follow-up, or why one of them cannot be put.
Result<std::vector<Broker::Queue*>> Broker::queues_of(const std::vector<NewJob>& follow_ups) const {
  std::vector<Queue*> queues;
  for (const NewJob& job : follow_ups) {
    Queue* queue = find_queue(job.queue);
    if (auto good = check_queue_name(job.queue); !good) return std::unexpected(std::move(good.error()));
    if (queue == nullptr) return no_such_queue(job.queue);
    auto checked = check_job(job, queue->window.name(), queue->window.config().max_payload_bytes);
    if (!checked) return std::unexpected(std::move(checked.error()));
    queues.push_back(queue);
  }
  return queues;
}

Future<Result<bool>> Broker::submit_verdict(std::uint64_t token, Verdict verdict) {
  const auto running = running_.find(token);
  Queue& queue = *running->second.queue;
  const std::uint32_t attempt = running->second.attempt;
  Future<Result<bool>> answer = loop_.create_future<Result<bool>>();
  auto queues = queues_of(verdict.follow_ups);
  std::unique_ptr<Running> run;
  if (!verdict.follow_ups.empty()) run = std::make_unique<Running>(running->second);
  Settlement settlement;
  if (queues) settlement = settlement_of(running->second, token, verdict, loop_.time());
  end_run(token);
  if (!queues) {
    const Outcome outcome = verdict.outcome;
    submit_refused({.settlement = {.token = token, .outcome = outcome},
                    .queue = &queue,
                    .attempt = attempt,
                    .answer = answer,
                    .run = std::move(run)},
                   std::move(queues.error()));
    return answer;
  }
  // Follow-ups find room whatever the capacity: work that is done is not refused for what comes of it.
  for (std::size_t i = 0; i < queues->size(); ++i) {
    ++(*queues)[i]->live;
    ++(*queues)[i]->coming;
    settlement.follow_ups.push_back(request_of(std::move(verdict.follow_ups[i]), *(*queues)[i]));
  }
  submit({std::move(settlement), &queue, attempt, std::move(*queues), answer, std::move(run), {}});
  return answer;
}

// A run whose follow-ups cannot be put has failed, and that is its own affair.
void Broker::submit_refused(PendingSettlement pending, Error why) {
  Verdict failed{.outcome = Outcome::retry, .error = fmt::format("a follow-up was refused: {}", why.message)};
  if (pending.settlement.outcome == Outcome::bury || pending.settlement.outcome == Outcome::cancel) {
    failed.outcome = pending.settlement.outcome;
  }
  pending.settlement = settlement_of(*pending.run, pending.settlement.token, failed, loop_.time());
  pending.follow_up_queues.clear();
  pending.run.reset();
  pending.refused = std::move(why);
  submit(std::move(pending));
}

Coro<void> Broker::flush_settlements() {
  settlements_scheduled_ = false;
  if (!pending_settlements_.empty()) co_await send_settlements(std::exchange(pending_settlements_, {}));
}

Coro<void> Broker::send_settlements(std::vector<PendingSettlement> pending) {
  std::vector<Settlement> settlements;
  settlements.reserve(pending.size());
  for (PendingSettlement& one : pending) {
    settlements.push_back(std::move(one.settlement));
    // What the notes below need of it.
    one.settlement.id = settlements.back().id;
    one.settlement.token = settlements.back().token;
    one.settlement.outcome = settlements.back().outcome;
    one.settlement.error = settlements.back().error;
  }
  auto replies = co_await store_(&Store::settle, std::move(settlements));
  for (std::size_t i = 0; i < pending.size(); ++i) {
    PendingSettlement& one = pending[i];
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
      one.answer.set_result((*replies)[i].settled);
    }
  }
  if (!replies) stop_all(replies.error());
}

void Broker::note_settled(const PendingSettlement& pending, SettleReply& reply) {
  Queue& queue = *pending.queue;
  if (!reply.settled) {
    for (Queue* follow_up : pending.follow_up_queues) arrived(*follow_up, false);
    return;
  }
  const Outcome outcome = reply.outcome;
  if (ends_job(outcome)) give_room(queue, 1);
  if (outcome != pending.settlement.outcome) queue.window.forget(pending.settlement.id, loop_.time());
  if (reply.again) queue.window.place(*reply.again, loop_.time());
  mark(queue);
  tell(event_of(outcome), pending.settlement.id, queue, pending.settlement.error, pending.attempt,
       reply.again ? reply.again->due_at : WallTime{}, 0, run_of(pending.settlement.id, reply.ended_runs));
  for (std::size_t i = 0; i < reply.follow_ups.size(); ++i) note_put(*pending.follow_up_queues[i], reply.follow_ups[i]);
  note_released(queue, reply.released, reply.cancelled, reply.ended_runs);
}

// Jobs that have waited for another one, which has ended.
void Broker::note_released(Queue& queue, const std::vector<WaitingJob>& released, const std::vector<JobId>& cancelled,
                           const std::vector<EndedRun>& ended_runs) {
  for (const WaitingJob& job : released) {
    const auto found = by_id_.find(job.queue);
    if (found == by_id_.end()) continue;  // of a queue that another process has made: take_changes() will find it
    Queue& its_queue = *found->second;
    its_queue.window.place(job, loop_.time());
    mark(its_queue);
    tell(JobEventKind::unblocked, job.id, its_queue, {}, 0, job.due_at);
  }
  auto run = ended_runs.begin();
  for (const JobId id : cancelled) {
    // In the same order, after that of the job that has ended.
    const auto its_run = std::find_if(run, ended_runs.end(), [id](const EndedRun& ended) { return ended.job == id; });
    const bool has_one = its_run != ended_runs.end();
    if (has_one) run = std::next(its_run);
    tell(JobEventKind::cancelled, id, queue, "a job that it waited for has failed", 0, {}, 0,
         has_one ? *its_run : EndedRun{});
  }
  if (cancelled.empty()) return;
  run_in_background([](Broker& broker) -> Coro<void> {
    if (auto counted = co_await broker.recount(); !counted) broker.stop_all(counted.error());
  }(*this));
}

void Broker::expire(Queue& queue, const ExpiredLease& lease) {
  const auto id = running_ids_.find(lease.id);
  if (id == running_ids_.end()) return;
  const std::uint64_t token = id->second;
  const Running& running = running_.at(token);
  if (running.queue != &queue || running.queue_token != lease.token) return;
  Settlement settlement{.id = lease.id, .token = token, .at = clock_.now(), .calendar_at = calendar_now()};
  settlement.outcome = lease.buried ? Outcome::bury : Outcome::expire;
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
  end_run(token);
  submit({.settlement = std::move(settlement), .queue = &queue, .attempt = attempt});
  tell_holder(*call, token);
}

// What ran when the owner before this one ended, runs no more.
Coro<Result<void>> Broker::end_old_leases() {
  const auto old = co_await or_return(store_(&Store::old_leases));
  std::vector<Settlement> settlements;
  for (const OldLease& lease : old) {
    const auto record = co_await or_return(store_(&Store::get, lease.id));
    Queue* queue = record ? find_queue(record->queue) : nullptr;
    Settlement settlement{.id = lease.id,
                          .token = lease.token,
                          .outcome = Outcome::release,
                          .at = clock_.now(),
                          .calendar_at = calendar_now()};
    settlement.worker = lease.worker;
    if (options_.blame_old_leases) {
      const bool last = queue != nullptr && record->expiries + 1 >= queue->window.config().max_lease_expiries;
      settlement.outcome = last ? Outcome::bury : Outcome::expire;
      settlement.error = "the process that ran it has ended";
    }
    settlements.push_back(std::move(settlement));
    if (queue == nullptr) continue;
    // The target may just have been asked: its key rests as after any run.
    const Duration delay = queue->window.config().key_limits.delay;
    JobQueue& jobs = queue->window.jobs();
    const TimePoint now = loop_.time();
    if (delay > Duration::zero()) jobs.rest_key(jobs.key(record->key), saturating_add(now, delay), now);
  }
  if (settlements.empty()) co_return Result<void>{};
  co_await or_return(store_(&Store::settle, std::move(settlements)));
  // Nothing has been read yet, so the windows will find them.
  co_return Result<void>{};
}

// --- changes -------------------------------------------------------------------------------------------------------

Coro<Result<ChangeReply>> Broker::change_one(Change change) {
  change.at = clock_.now();
  change.calendar_at = calendar_now();
  change.due_at = whole_ms(clock_.from_calendar(change.due_at));
  if (const auto token = running_ids_.find(change.id);
      change.kind == ChangeKind::cancel && token != running_ids_.end()) {
    co_return co_await cancel_running(token->second, std::move(change));
  }
  const auto before = co_await or_return(store_(&Store::get, change.id));
  if (!before) co_return ChangeReply{.verdict = ChangeReply::Verdict::not_found};
  if (const Queue* queue = find_queue(before->queue); change.kind == ChangeKind::cancel) {
    change.keep = queue != nullptr && queue->window.config().keep_cancelled > Duration::zero();
  }
  auto replies = co_await or_return(store_(&Store::change, std::vector<Change>{change}));
  ChangeReply& reply = replies.front();
  if (reply.verdict == ChangeReply::Verdict::asked) {  // it has been leased since it was looked for
    const auto token = running_ids_.find(change.id);
    if (token != running_ids_.end()) ask_to_stop(token->second, std::move(change.error));
  } else if (reply.verdict == ChangeReply::Verdict::changed) {
    note_changed(*before, change, reply);
  }
  co_return std::move(reply);
}

void Broker::note_changed(const JobRecord& before, const Change& change, const ChangeReply& reply) {
  Queue* const queue = find_queue(before.queue);
  if (queue == nullptr) return;
  const JobId id = change.id;
  const bool was_live = before.state == JobState::ready || before.state == JobState::delayed;
  switch (change.kind) {
    case ChangeKind::cancel:
    case ChangeKind::erase:
      queue->window.forget(id, loop_.time());
      if (was_live) give_room(*queue, 1);
      tell(change.kind == ChangeKind::cancel ? JobEventKind::cancelled : JobEventKind::erased, id, *queue,
           change.kind == ChangeKind::cancel ? std::string_view{"asked for"} : std::string_view{}, 0, {}, 0,
           run_of(id, reply.ended_runs));
      break;
    case ChangeKind::kick:
      if (!was_live) ++queue->live;
      tell(JobEventKind::kicked, id, *queue);
      break;
    case ChangeKind::set_priority:
    case ChangeKind::set_due: tell(JobEventKind::changed, id, *queue, {}, 0, change.due_at); break;
  }
  if (reply.job) queue->window.place(*reply.job, loop_.time());
  mark(*queue);
  note_released(*queue, reply.released, reply.cancelled, reply.ended_runs);
}

void Broker::ask_to_stop(std::uint64_t token, std::string why) {
  Running& running = running_.at(token);
  running.cancel_asked = true;
  running.cancel_why = std::move(why);
  const std::shared_ptr<const LeaseCall> call = running.call;
  tell_holder(*call, token);
}

// Asked of the store before its worker can answer.
Coro<Result<ChangeReply>> Broker::cancel_running(std::uint64_t token, Change change) {
  const Queue& queue = *running_.at(token).queue;
  change.keep = queue.window.config().keep_cancelled > Duration::zero();
  auto written = loop_.create_task(store_(&Store::change, std::vector<Change>{change}), "broker", Start::eagerly);
  ask_to_stop(token, change.error);
  auto replies = co_await std::move(written);
  if (!replies) co_return std::unexpected(std::move(replies.error()));
  ChangeReply& reply = replies->front();
  if (reply.verdict == ChangeReply::Verdict::changed) {  // its lease was not written down yet
    note_changed({.queue = queue.window.name(), .state = JobState::ready}, change, reply);
  }
  co_return std::move(reply);
}

// Of jobs that others have changed, those that run here and are to be cancelled.
Coro<Result<void>> Broker::hear_of_cancellations(std::vector<JobId> jobs) {
  for (const JobId id : jobs) {
    const auto record = co_await or_return(store_(&Store::get, id));
    const auto token = running_ids_.find(id);
    if (!record || !record->cancel_asked || token == running_ids_.end()) continue;
    if (!running_.at(token->second).cancel_asked) ask_to_stop(token->second, record->error);
  }
  co_return Result<void>{};
}

}  // namespace argiope
