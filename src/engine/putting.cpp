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

// --- room ----------------------------------------------------------------------------------------------------------

Coro<Result<void>> Broker::take_room(Queue& queue, std::uint64_t count) {
  const QueueConfig& config = queue.window.config();
  if (closing_) co_return fail(Errc::cancelled, "the queues are being closed");
  if (queue.for_room.empty() && has_room(queue.live, count, config.capacity)) {
    queue.live += count;
    queue.coming += count;
    co_return Result<void>{};
  }
  if (!waits_for_room(config.at_capacity, count, config.capacity)) {
    co_return queue_is_full(queue.window.name(), queue.live, config.capacity);
  }
  Future<void> room = loop_.create_future<void>();
  queue.for_room.emplace_back(count, room);
  bool cancelled = false;
  try {
    co_await room;
  } catch (const CancelledError&) {
    cancelled = true;
  }
  if (cancelled) {
    if (!room.cancelled()) queue.coming -= std::min(queue.coming, count);
    give_room(queue, room.cancelled() ? 0 : count);  // who stands behind may fit
    throw CancelledError();
  }
  if (closing_) co_return fail(Errc::cancelled, "the queues are being closed");
  co_return Result<void>{};
}

// Room for `count` has become free: it goes to who has waited longest.
void Broker::give_room(Queue& queue, std::uint64_t count) {
  queue.live -= std::min(queue.live, count);
  const std::uint64_t capacity = queue.window.config().capacity;
  while (!queue.for_room.empty()) {
    auto& [wanted, room] = queue.for_room.front();
    if (!room.done()) {
      if (!has_room(queue.live, wanted, capacity)) return;
      queue.live += wanted;
      queue.coming += wanted;
      room.set_result();
    }
    queue.for_room.pop_front();
  }
}

void Broker::arrived(Queue& queue, bool stays) {
  queue.coming -= std::min<std::uint64_t>(queue.coming, 1);
  if (!stays) give_room(queue, 1);
}

// For when jobs have ended of which nobody has told the queue.
Coro<Result<void>> Broker::recount() {
  const auto counted = co_await or_return(store_(&Store::counts));
  for (const QueueCounts& counts : counted) {
    const auto found = by_id_.find(counts.queue);
    if (found == by_id_.end()) continue;
    Queue& queue = *found->second;
    queue.live = counts.counts.ready + counts.counts.delayed + counts.counts.running + queue.coming;
    give_room(queue, 0);
  }
  co_return Result<void>{};
}

// --- puts ----------------------------------------------------------------------------------------------------------

Coro<Result<PutReply>> Broker::put_one(std::shared_ptr<Broker> self, NewJob job) {
  auto queue = co_await self->queue_named(job.queue, self->options_.create_queues);
  if (!queue) co_return std::unexpected(std::move(queue.error()));
  if (auto good = check_job(job, (*queue)->window.name(), (*queue)->window.config().max_payload_bytes); !good)
    co_return std::unexpected(std::move(good.error()));
  if (auto room = co_await self->take_room(**queue, 1); !room) co_return std::unexpected(std::move(room.error()));
  co_return co_await self->submit_put(std::move(job), **queue);
}

// Those that are on their way do not wait for room with those that come after them, and may be what fills the queue.
Coro<Result<std::vector<Result<PutReply>>>> Broker::put_several(std::vector<NewJob> jobs) {
  std::vector<Result<PutReply>> replies(jobs.size(), Result<PutReply>(PutReply{}));
  std::vector<std::pair<std::size_t, Future<Result<PutReply>>>> answers;
  answers.reserve(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto queue = co_await queue_named(jobs[i].queue, options_.create_queues);
    Result<void> good = queue ? check_job(jobs[i], (*queue)->window.name(), (*queue)->window.config().max_payload_bytes)
                              : std::unexpected(std::move(queue.error()));
    if (good) good = co_await take_room(**queue, 1);
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
  pending_puts_.push_back({std::move(job), &queue, answer});
  if (pending_puts_.size() == kMostTogether) {
    run_in_background(send_puts(std::exchange(pending_puts_, {})), Start::eagerly);
  } else if (!std::exchange(puts_scheduled_, true)) {
    run_in_background(flush_puts());
  }
  return answer;
}

Coro<void> Broker::flush_puts() {
  puts_scheduled_ = false;
  if (!pending_puts_.empty()) co_await send_puts(std::exchange(pending_puts_, {}));
}

Coro<void> Broker::send_puts(std::vector<PendingPut> pending) {
  std::vector<PutRequest> requests;
  requests.reserve(pending.size());
  for (PendingPut& put : pending) requests.push_back(request_of(std::move(put.job), *put.queue));
  auto replies = co_await store_(&Store::put, std::move(requests), clock_.now(), Refusal::alone);
  for (std::size_t i = 0; i < pending.size(); ++i) {
    PendingPut& put = pending[i];
    Result<PutReply> reply = replies ? std::move((*replies)[i]) : std::unexpected(replies.error());
    if (reply) {
      note_put(*put.queue, *reply);
    } else {
      arrived(*put.queue, false);
    }
    if (!put.answer.done()) put.answer.set_result(std::move(reply));
  }
}

void Broker::note_put(Queue& queue, const PutReply& reply) {
  arrived(queue, reply.outcome == PutOutcome::added || reply.outcome == PutOutcome::run_again);
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
    co_await or_return(check_job(job, queue->window.name(), queue->window.config().max_payload_bytes));
    queues.push_back(queue);
  }
  std::map<Queue*, std::uint64_t> wanted;
  for (Queue* queue : queues) ++wanted[queue];
  for (auto taken = wanted.begin(); taken != wanted.end(); ++taken) {
    Result<void> room;
    bool cancelled = false;
    try {
      room = co_await take_room(*taken->first, taken->second);
    } catch (const CancelledError&) {
      cancelled = true;
    }
    if (room && !cancelled) continue;
    for (auto back = wanted.begin(); back != taken; ++back) {
      for (std::uint64_t i = 0; i < back->second; ++i) arrived(*back->first, false);
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
      arrived(*queues[i], false);
    }
  }
  if (!answered) co_return std::unexpected(std::move(answered.error()));
  co_return replies;
}

}  // namespace argiope
