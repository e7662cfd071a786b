// How the broker takes jobs in.
#include <algorithm>
#include <functional>

#include "argiope/async/or_return.hpp"
#include "engine/book_rules.hpp"
#include "engine/broker.hpp"

namespace argiope {

PutRequest Broker::request_of(NewJob job, const Queue& queue) const {
  job.due_at = whole_ms(clock_.from_calendar(job.due_at));
  const WallTime now = clock_.now();
  const std::int32_t ranked = ranked_priority(job.priority, std::max(now, job.due_at), queue.window.config().ageing);
  const bool aside = queue.window.sets_aside(job.key, ranked);
  return {std::move(job), aside};
}

Coro<Result<void>> Broker::recount() {
  const auto counted = co_await or_return(store_(&Store::counts));
  for (const QueueCounts& counts : counted) {
    Queue* const queue = queues_.find(counts.queue);
    if (queue != nullptr) queue->room.recount(counts.counts.ready + counts.counts.delayed + counts.counts.running);
  }
  co_return Result<void>{};
}

// --- puts ----------------------------------------------------------------------------------------------------------

Coro<Result<PutReply>> Broker::put_one(std::shared_ptr<Broker> self, NewJob job) {
  Result<Queue*> queue = self->queues_.find(job.queue);
  if (*queue == nullptr) queue = co_await self->queue_named(job.queue, self->options_.create_queues);
  if (!queue) co_return std::unexpected(std::move(queue.error()));
  if (auto good = check_job(job, (*queue)->name(), (*queue)->config().max_payload_bytes); !good)
    co_return std::unexpected(std::move(good.error()));
  if (!(*queue)->room.take_now(1)) {
    if (auto room = co_await (*queue)->room.take((*queue)->name(), 1); !room) {
      co_return std::unexpected(std::move(room.error()));
    }
  }
  co_return co_await self->submit_put(std::move(job), **queue);
}

// Those that are on their way do not wait for room with those that come after them, and may be what fills the queue.
Coro<Result<std::vector<Result<PutReply>>>> Broker::put_several(std::vector<NewJob> jobs) {
  std::vector<Result<PutReply>> replies(jobs.size(), Result<PutReply>(PutReply{}));
  std::vector<std::pair<std::size_t, Future<Result<PutReply>>>> answers;
  answers.reserve(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Result<Queue*> queue = queues_.find(jobs[i].queue);
    if (*queue == nullptr) queue = co_await queue_named(jobs[i].queue, options_.create_queues);
    Result<void> good = queue ? check_job(jobs[i], (*queue)->name(), (*queue)->config().max_payload_bytes)
                              : std::unexpected(std::move(queue.error()));
    if (good && !(*queue)->room.take_now(1)) good = co_await (*queue)->room.take((*queue)->name(), 1);
    if (good) {
      answers.emplace_back(i, submit_put(std::move(jobs[i]), **queue));
    } else {
      replies[i] = std::unexpected(std::move(good.error()));
    }
  }
  for (auto& [place, answer] : answers) replies[place] = co_await std::move(answer);
  // What fails them all is no fault of theirs.
  const bool none = std::ranges::none_of(replies, [](const Result<PutReply>& reply) { return reply.has_value(); });
  if (auto failed = store_.failure(); failed && none) co_return std::unexpected(std::move(*failed));
  co_return replies;
}

Future<Result<PutReply>> Broker::submit_put(NewJob job, Queue& queue) {
  Future<Result<PutReply>> answer = loop_.create_future<Result<PutReply>>();
  switch (puts_.add({std::move(job), &queue, answer})) {
    case Next::send_now: run_in_background(send_puts(puts_.take()), Start::eagerly); break;
    case Next::send_after_turn: run_in_background(flush_puts()); break;
    case Next::wait: break;
  }
  return answer;
}

Coro<void> Broker::flush_puts() {
  if (auto pending = puts_.take_after_turn(); !pending.empty()) co_await send_puts(std::move(pending));
}

Coro<void> Broker::send_puts(std::vector<PendingPut> pending) {
  std::vector<PutRequest> requests;
  requests.reserve(pending.size());
  for (PendingPut& put : pending) requests.push_back(request_of(std::move(put.job), *put.queue));
  if (Awaited awaited = jobs_awaited(pending, requests); !awaited.grants.empty()) {
    co_return co_await send_puts_with_leases(std::move(pending), std::move(requests), std::move(awaited));
  }
  for (const PendingPut& put : pending) ++put.queue->arriving;
  auto replies = co_await store_(&Store::put, std::move(requests), clock_.now(), Refusal::alone);
  for (std::size_t i = 0; i < pending.size(); ++i) {
    --pending[i].queue->arriving;
    Result<PutReply> reply = replies ? std::move((*replies)[i]) : std::unexpected(replies.error());
    if (reply) note_put(*pending[i].queue, *reply);
    note_answered(pending[i], std::move(reply));
  }
}

void Broker::note_answered(PendingPut& put, Result<PutReply> reply) {
  if (!reply) put.queue->room.arrived(false);
  if (!put.answer.done()) put.answer.set_result(std::move(reply));
}

// --- puts for which somebody waits -----------------------------------------------------------------------------------
//
// A put and the lease of its job are two transactions, one synced after the other. Where it is certain beforehand that a job
// will be leased as soon as it is there, and by whom, one transaction does both.

Broker::Awaited Broker::jobs_awaited(const std::vector<PendingPut>& pending, const std::vector<PutRequest>& requests) {
  Awaited awaited;
  if (callers_.empty() || closing_ || !started_) return awaited;
  const TimePoint now = loop_.time();
  std::vector<std::size_t> next;
  std::vector<Queue*> others;  // whose jobs, some of them, have to be there before it is known which one is next
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Queue* const queue = pending[i].queue;
    if (is_next(*queue, requests[i], now)) {
      next.push_back(i);
    } else if (queue->callers > 0) {
      others.push_back(queue);
    }
  }
  std::erase_if(next, [&](std::size_t i) { return std::ranges::find(others, pending[i].queue) != others.end(); });
  std::ranges::stable_sort(next, std::greater{}, [&](std::size_t i) { return requests[i].job.priority; });
  for (auto caller = callers_.begin(); caller != callers_.end() && !next.empty();) {
    const auto has_others = [](const Queue* queue) { return queue->active || queue->dirty; };
    Grant grant;
    if (!caller->answer.done() && std::ranges::none_of(caller->queues, has_others)) {
      std::erase_if(next, [&](std::size_t i) {
        Queue* const queue = pending[i].queue;
        if (grant.requests.size() == caller->call->most) return false;
        if (std::ranges::find(caller->queues, queue) == caller->queues.end()) return false;
        ask_for(*queue, 0, *caller, grant, now);
        awaited.places.push_back(i);
        return true;
      });
    }
    if (grant.requests.empty()) {
      ++caller;
      continue;
    }
    grant.caller = std::move(*caller);
    awaited.grants.push_back(std::move(grant));
    caller = callers_.erase(caller);
  }
  return awaited;
}

// Whether the job, once it is there, is certain to be the most important one of its queue, and free to start.
bool Broker::is_next(Queue& queue, const PutRequest& put, TimePoint now) {
  if (queue.callers == 0 || queue.arriving > 0 || queue.active || queue.dirty || queue.refilling) return false;
  const NewJob& job = put.job;
  const bool is_named = job.id != 0 || !job.name.empty() || !job.unique.empty();
  const bool stands_alone = job.waits_for.empty() && job.batch == 0;
  if (is_named || !stands_alone || put.set_aside || job.due_at > clock_.now()) return false;
  tick(queue, now);
  JobQueue& jobs = queue.window.jobs();
  return jobs.ready_count() == 0 && queue.window.top_is_certain() && jobs.starts_freely(jobs.key(job.key), now);
}

Coro<void> Broker::send_puts_with_leases(std::vector<PendingPut> pending, std::vector<PutRequest> requests,
                                         Awaited awaited) {
  const TimePoint asked = loop_.time();
  std::vector<PutLease> leases;
  leases.reserve(awaited.places.size());
  for (const Grant& grant : awaited.grants) {
    for (const LeaseRequest& request : grant.requests) leases.emplace_back(awaited.places[leases.size()], request);
  }
  std::vector<Queue*> arriving;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (std::ranges::find(awaited.places, i) == awaited.places.end()) arriving.push_back(pending[i].queue);
  }
  for (Queue* queue : arriving) ++queue->arriving;
  auto answered = co_await store_(&Store::put_and_lease, std::move(requests), clock_.now(), std::move(leases));
  for (Queue* queue : arriving) --queue->arriving;
  std::vector<std::optional<JobRecord>> leased(awaited.places.size());
  if (answered) leased = std::move(answered->leased);
  std::vector<bool> is_leased(pending.size());
  // All of them before anything is told of one, so that nobody finds them among the jobs that wait.
  std::size_t next = 0;
  for (const Grant& grant : awaited.grants) {
    for (const LeaseRequest& request : grant.requests) {
      const std::size_t place = awaited.places[next];
      if (!leased[next++]) continue;
      is_leased[place] = true;
      if (!closing_) begin_awaited(*pending[place].queue, answered->puts[place]->job, request.token, grant.caller);
    }
  }
  for (std::size_t i = 0; i < pending.size(); ++i) {
    Result<PutReply> reply = answered ? std::move(answered->puts[i]) : std::unexpected(answered.error());
    if (is_leased[i]) {
      note_leased_put(*pending[i].queue, *reply);
    } else if (reply) {
      note_put(*pending[i].queue, *reply);
    }
    note_answered(pending[i], std::move(reply));
  }
  hand_out(awaited.grants, std::move(leased), asked);  // callers who get none wait on
  if (auto failed = store_.failure()) stop_all(*failed);
}

void Broker::begin_awaited(Queue& queue, const WaitingJob& job, std::uint64_t token, const Caller& caller) {
  const TimePoint now = loop_.time();
  queue.window.hold(job, now);
  const auto lease = queue.window.jobs().lease_job(job.id, now, queue.config().lease_time);
  if (lease) begin_run(queue, *lease, token, caller);
}

void Broker::note_leased_put(Queue& queue, const PutReply& reply) {
  queue.room.arrived(true);
  mark(queue);
  tell(JobEventKind::added, reply.id, queue, {}, 0, reply.job.due_at);
}

void Broker::note_put(Queue& queue, const PutReply& reply) {
  queue.room.arrived(reply.outcome == PutOutcome::added || reply.outcome == PutOutcome::run_again);
  if (reply.outcome == PutOutcome::kept) return;
  if (reply.cancelled != nullptr) {
    tell(JobEventKind::cancelled, reply.id, queue, reply.cancelled->why);
    // Until it was put into them, those batches may have been ready.
    for (const JobId id : reply.cancelled->cancelled) {
      for (auto& other : queues_) other->window.forget(id, loop_.time());
    }
    return note_released(queue, reply.cancelled->released, reply.cancelled->cancelled, reply.cancelled->ended_runs);
  }
  queue.window.place(reply.job, loop_.time());
  mark(queue);
  tell(reply.outcome == PutOutcome::changed ? JobEventKind::changed : JobEventKind::added, reply.id, queue, {}, 0,
       reply.job.due_at);
}

Coro<Result<std::vector<PutReply>>> Broker::put_together(std::vector<NewJob> jobs, bool last_completes) {
  std::vector<Queue*> queues;
  for (const NewJob& job : jobs) {
    Queue* queue = co_await or_return(queue_named(job.queue, options_.create_queues));
    co_await or_return(check_job(job, queue->name(), queue->config().max_payload_bytes));
    queues.push_back(queue);
  }
  std::map<Queue*, std::uint64_t> wanted;
  for (Queue* queue : queues) ++wanted[queue];
  for (auto taken = wanted.begin(); taken != wanted.end(); ++taken) {
    Result<void> room;
    bool cancelled = false;
    try {
      room = co_await taken->first->room.take(taken->first->name(), taken->second);
    } catch (const CancelledError&) {
      cancelled = true;
    }
    if (room && !cancelled) continue;
    for (auto back = wanted.begin(); back != taken; ++back) {
      for (std::uint64_t i = 0; i < back->second; ++i) back->first->room.arrived(false);
    }
    if (cancelled) throw CancelledError();
    co_return std::unexpected(std::move(room.error()));
  }
  std::vector<PutRequest> requests;
  requests.reserve(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) requests.push_back(request_of(std::move(jobs[i]), *queues[i]));
  if (last_completes) requests.back().waits_for_those_before = true;
  co_return co_await to_its_end(send_together(std::move(requests), std::move(queues)));
}

// The room for them has been taken; the queues hear of it whoever waits.
Coro<Result<std::vector<PutReply>>> Broker::send_together(std::vector<PutRequest> requests,
                                                          std::vector<Queue*> queues) {
  auto answered = co_await store_(&Store::put, std::move(requests), clock_.now(), Refusal::whole);
  std::vector<PutReply> replies;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (answered) {
      replies.push_back(std::move(*(*answered)[i]));
      note_put(*queues[i], replies.back());
    } else {
      queues[i]->room.arrived(false);
    }
  }
  if (!answered) co_return std::unexpected(std::move(answered.error()));
  co_return replies;
}

}  // namespace argiope
