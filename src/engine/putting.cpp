// How the broker takes jobs in.
#include <algorithm>

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
  if (*queue == nullptr) queue = co_await self->queue_named(job.queue, self->options_.create_queues, job.within);
  if (!queue) co_return std::unexpected(std::move(queue.error()));
  if (auto good = check_job(job, (*queue)->name(), (*queue)->config().max_payload_bytes); !good)
    co_return std::unexpected(std::move(good.error()));
  if (!(*queue)->room.take_now(1)) {
    if (auto room = co_await (*queue)->room.take(1); !room) {
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
    if (*queue == nullptr) queue = co_await queue_named(jobs[i].queue, options_.create_queues, jobs[i].within);
    Result<void> good = queue ? check_job(jobs[i], (*queue)->name(), (*queue)->config().max_payload_bytes)
                              : std::unexpected(std::move(queue.error()));
    if (good && !(*queue)->room.take_now(1)) good = co_await (*queue)->room.take(1);
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
  auto replies = co_await store_(&Store::put, std::move(requests), clock_.now(), Refusal::alone);
  for (std::size_t i = 0; i < pending.size(); ++i) {
    Result<PutReply> reply = replies ? std::move((*replies)[i]) : std::unexpected(replies.error());
    if (reply) note_put(*pending[i].queue, *reply);
    note_answered(pending[i], std::move(reply));
  }
}

void Broker::note_answered(PendingPut& put, Result<PutReply> reply) {
  if (!reply) put.queue->room.arrived(false);
  if (!put.answer.done()) put.answer.set_result(std::move(reply));
}

void Broker::note_put(Queue& queue, const PutReply& reply) {
  queue.room.arrived(reply.outcome == PutOutcome::added || reply.outcome == PutOutcome::run_again);
  if (reply.outcome == PutOutcome::kept || reply.outcome == PutOutcome::taken) return;
  if (reply.cancelled != nullptr) {
    tell(JobEventKind::cancelled, reply.id, queue, reply.cancelled->why);
    // Until it was put into them, those batches may have been ready.
    for (const CancelledJob& other : reply.cancelled->cancelled) {
      if (Queue* its_queue = queues_.find(other.queue)) its_queue->window.forget(other.id, loop_.time());
    }
    return note_released(reply.cancelled->released, reply.cancelled->cancelled, reply.cancelled->ended_runs);
  }
  queue.window.place(reply.job, loop_.time());
  tell_of_put(queue, reply);
}

void Broker::tell_of_put(Queue& queue, const PutReply& reply) {
  mark(queue);
  tell(reply.outcome == PutOutcome::changed ? JobEventKind::changed : JobEventKind::added, reply.id, queue, {}, 0,
       reply.job.due_at);
}

Coro<Result<std::vector<PutReply>>> Broker::put_together(std::vector<NewJob> jobs, bool last_completes) {
  std::vector<Queue*> queues;
  for (const NewJob& job : jobs) {
    Queue* queue = co_await or_return(queue_named(job.queue, options_.create_queues, job.within));
    co_await or_return(check_job(job, queue->name(), queue->config().max_payload_bytes));
    queues.push_back(queue);
  }
  Room::Wanted wanted;
  for (Queue* queue : queues) ++wanted[&queue->room];
  co_await or_return(Room::take_all(std::move(wanted)));
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
