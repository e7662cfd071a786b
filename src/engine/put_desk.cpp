#include "engine/put_desk.hpp"

#include <algorithm>

#include "argiope/async/coro.hpp"
#include "engine/book_rules.hpp"

namespace argiope {

// --- each by itself --------------------------------------------------------------------------------------------------

Coro<Result<PutReply>> PutDesk::put_one(std::shared_ptr<PutDesk> self, NewJob job) {
  Result<Queue*> queue = self->queues_.find(job.queue);
  if (*queue == nullptr) queue = co_await self->queue_desk_.of(job);
  if (!queue) co_return std::unexpected(std::move(queue.error()));
  if (auto good = check_job(job, (*queue)->name(), (*queue)->config().max_payload_bytes); !good)
    co_return std::unexpected(std::move(good.error()));
  if (!(*queue)->room.take_now(1)) {
    if (auto room = co_await (*queue)->room.take(1); !room) {
      co_return std::unexpected(std::move(room.error()));
    }
  }
  co_return co_await self->submit(std::move(job), **queue);
}

// Those that are on their way do not wait for room with those that come after them, and may be what fills the queue.
Coro<Result<std::vector<Result<PutReply>>>> PutDesk::put_several(std::vector<NewJob> jobs) {
  std::vector<Result<PutReply>> replies(jobs.size(), Result<PutReply>(PutReply{}));
  std::vector<std::pair<std::size_t, Future<Result<PutReply>>>> answers;
  answers.reserve(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Result<Queue*> queue = queues_.find(jobs[i].queue);
    if (*queue == nullptr) {
      // It may name those before it, which the store must know then.
      for (auto& [place, answer] : answers) replies[place] = co_await std::move(answer);
      answers.clear();
      queue = co_await queue_desk_.of(jobs[i]);
    }
    Result<void> good = queue ? check_job(jobs[i], (*queue)->name(), (*queue)->config().max_payload_bytes)
                              : std::unexpected(std::move(queue.error()));
    if (good && !(*queue)->room.take_now(1)) good = co_await (*queue)->room.take(1);
    if (good) {
      answers.emplace_back(i, submit(std::move(jobs[i]), **queue));
    } else {
      replies[i] = std::unexpected(std::move(good.error()));
    }
  }
  for (auto& [place, answer] : answers) replies[place] = co_await std::move(answer);
  // An error that fails them all is no fault of theirs.
  const bool none = std::ranges::none_of(replies, [](const Result<PutReply>& reply) { return reply.has_value(); });
  if (auto failed = store_.failure(); failed && none) co_return std::unexpected(std::move(*failed));
  co_return replies;
}

Future<Result<PutReply>> PutDesk::submit(NewJob job, Queue& queue) {
  Future<Result<PutReply>> answer = loop_.create_future<Result<PutReply>>();
  switch (puts_.add({std::move(job), &queue, answer})) {
    case Next::send_now: run_in_background(send(puts_.take()), Start::eagerly); break;
    case Next::send_after_turn: run_in_background(flush()); break;
    case Next::wait: break;
  }
  return answer;
}

Coro<void> PutDesk::flush() {
  if (auto pending = puts_.take_after_turn(); !pending.empty()) co_await send(std::move(pending));
}

Coro<void> PutDesk::send(std::vector<Pending> pending) {
  std::vector<PutRequest> requests;
  requests.reserve(pending.size());
  for (Pending& put : pending) requests.push_back(queue_desk_.request_of(std::move(put.job), *put.queue));
  if (Awaited awaited = jobs_awaited(pending, requests); !awaited.grants.empty()) {
    co_return co_await send_with_leases(std::move(pending), std::move(requests), std::move(awaited));
  }
  auto replies = co_await store_(&Store::put, std::move(requests), clock_.now(), Refusal::alone);
  for (std::size_t i = 0; i < pending.size(); ++i) {
    Result<PutReply> reply = replies ? std::move((*replies)[i]) : std::unexpected(replies.error());
    if (reply) queue_desk_.note_put(*pending[i].queue, *reply);
    answer(pending[i], std::move(reply));
  }
}

void PutDesk::answer(Pending& put, Result<PutReply> reply) {
  if (!reply) put.queue->room.arrived(false);
  if (!put.answer.done()) put.answer.set_result(std::move(reply));
}

// --- all or none -----------------------------------------------------------------------------------------------------

Coro<Result<std::vector<PutReply>>> PutDesk::put_together(std::vector<NewJob> jobs, bool last_completes) {
  std::vector<Queue*> queues = co_await or_return(queue_desk_.of_all(pointers_to(jobs)));
  Room::Wanted wanted;
  for (Queue* queue : queues) ++wanted[&queue->room];
  co_await or_return(Room::take_all(std::move(wanted)));
  std::vector<PutRequest> requests;
  requests.reserve(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i)
    requests.push_back(queue_desk_.request_of(std::move(jobs[i]), *queues[i]));
  if (last_completes) requests.back().waits_for_those_before = true;
  co_return co_await to_its_end(send_together(std::move(requests), std::move(queues)));
}

// The room for them has been taken; the queues hear of it whether or not the caller still waits.
Coro<Result<std::vector<PutReply>>> PutDesk::send_together(std::vector<PutRequest> requests,
                                                           std::vector<Queue*> queues) {
  auto answered = co_await store_(&Store::put, std::move(requests), clock_.now(), Refusal::whole);
  std::vector<PutReply> replies;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (answered) {
      replies.push_back(std::move(*(*answered)[i]));
      queue_desk_.note_put(*queues[i], replies.back());
    } else {
      queues[i]->room.arrived(false);
    }
  }
  if (!answered) co_return std::unexpected(std::move(answered.error()));
  co_return replies;
}

// --- with a key ------------------------------------------------------------------------------------------------------

Coro<Result<OnceReply>> PutDesk::do_put_once(OnceCall call) {
  OnceReply known = co_await or_return(look_for_request(store_, call.key));
  if (known.how != Repetition::first) co_return known;
  const bool each = call.as == OnceCall::As::each;
  std::vector<Result<Queue*>> queues;
  if (each) {
    std::vector<JobId> before;
    for (const NewJob& job : call.jobs) {
      queues.push_back(co_await queue_desk_.of(job, before));
      if (job.id != 0) before.push_back(job.id);
    }
  } else {
    for (Queue* queue : co_await or_return(queue_desk_.of_all(pointers_to(call.jobs)))) queues.emplace_back(queue);
  }
  co_await or_return(take_room(queues, each));
  OnceRequest request{.key = std::move(call.key), .refusal = each ? Refusal::alone : Refusal::whole};
  for (std::size_t i = 0; i < call.jobs.size(); ++i) {
    if (queues[i]) {
      request.puts.emplace_back(queue_desk_.request_of(std::move(call.jobs[i]), **queues[i]));
    } else {
      request.puts.emplace_back(std::unexpected(queues[i].error()));
    }
  }
  if (call.as == OnceCall::As::batch && !request.puts.empty()) request.puts.back()->waits_for_those_before = true;
  co_return co_await to_its_end(send_once(std::move(request), std::move(queues)));
}

// For a job in each of the queues; where `each`, those for which there is none get that as their error.
Coro<Result<void>> PutDesk::take_room(std::vector<Result<Queue*>>& queues, bool each) {
  Room::Wanted wanted;
  for (const auto& queue : queues) {
    if (queue) ++wanted[&(*queue)->room];
  }
  Room::TakeSome take_some;
  if (each) take_some = [&](Room& room) { return take_what_there_is(room, queues); };
  co_return co_await Room::take_all(std::move(wanted), std::move(take_some));
}

// How much that was.
std::uint64_t PutDesk::take_what_there_is(Room& room, std::vector<Result<Queue*>>& queues) {
  std::uint64_t taken = 0;
  for (auto& wanted : queues) {
    if (!wanted || &(*wanted)->room != &room) continue;
    if (room.take_now(1)) {
      ++taken;
    } else {
      wanted = room.is_full();
    }
  }
  return taken;
}

// The room for them has been taken; the queues hear of it whether or not the caller still waits.
Coro<Result<OnceReply>> PutDesk::send_once(OnceRequest request, std::vector<Result<Queue*>> queues) {
  request.now = clock_.now();
  auto answered = co_await store_(&Store::once, std::move(request));
  const bool done = answered && answered->how == Repetition::first;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (!queues[i]) continue;
    if (done && answered->puts[i]) {
      queue_desk_.note_put(**queues[i], *answered->puts[i]);
    } else {
      (*queues[i])->room.arrived(false);
    }
  }
  co_return answered;
}

// --- of schedules ----------------------------------------------------------------------------------------------------

Coro<Result<PutDesk::Step>> PutDesk::step_of(FireCall call) {
  Step step;
  std::vector<const NewJob*> jobs;
  for (const FireJob& job : call.jobs) jobs.push_back(&job.job);
  step.queues = co_await or_return(queue_desk_.of_all(std::move(jobs)));
  Room::Wanted wanted;
  for (Queue* queue : step.queues) ++wanted[&queue->room];
  step.request = {call.id, call.version, call.place, std::move(call.runs), {}, std::move(call.amended)};
  step.request.jobs.reserve(call.jobs.size());
  for (std::size_t i = 0; i < call.jobs.size(); ++i) {
    PutRequest put = queue_desk_.request_of(std::move(call.jobs[i].job), *step.queues[i]);
    put.run = call.jobs[i].run;
    put.after_run = call.jobs[i].after_run;
    step.request.jobs.push_back(std::move(put));
  }
  co_await or_return(check(step.request));
  co_await or_return(Room::take_all_now(wanted));
  co_return step;
}

// `reply`: null where the store has refused.
void PutDesk::note_fired(const std::vector<Queue*>& queues, const FireReply* reply) {
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (reply != nullptr && reply->fired) {
      queue_desk_.note_put(*queues[i], reply->jobs[i]);
    } else {
      queues[i]->room.arrived(false);
    }
  }
}

Coro<Result<std::vector<Result<FireReply>>>> PutDesk::fire_all(std::vector<FireCall> calls) {
  std::vector<Result<FireReply>> replies(calls.size(), Result<FireReply>(FireReply{}));
  std::vector<Step> steps;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    auto step = co_await step_of(std::move(calls[i]));
    if (!step) {
      replies[i] = std::unexpected(std::move(step.error()));
      continue;
    }
    step->call = i;
    steps.push_back(std::move(*step));
  }
  std::vector<FireRequest> requests;
  requests.reserve(steps.size());
  for (Step& step : steps) requests.push_back(std::move(step.request));
  auto fired = co_await store_(&Store::fire, std::move(requests), clock_.now());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Result<FireReply>& reply = replies[steps[i].call];
    if (fired) reply = std::move((*fired)[i]);
    note_fired(steps[i].queues, fired && reply ? &*reply : nullptr);
  }
  if (!fired) co_return std::unexpected(std::move(fired.error()));
  co_return replies;
}

}  // namespace argiope
