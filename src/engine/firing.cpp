// How schedules put their jobs.
#include "argiope/async/or_return.hpp"
#include "engine/book_rules.hpp"
#include "engine/broker.hpp"

namespace argiope {

Coro<Result<Broker::Step>> Broker::step_of(FireCall call) {
  Step step;
  Room::Wanted wanted;
  for (const FireJob& job : call.jobs) {
    Queue* queue = co_await or_return(queue_named(job.job.queue, options_.create_queues, job.job.within));
    co_await or_return(check_job(job.job, queue->window.name(), queue->window.config().max_payload_bytes));
    step.queues.push_back(queue);
    ++wanted[&queue->room];
  }
  step.request = {call.id, call.version, call.place, std::move(call.runs), {}, std::move(call.amended)};
  step.request.jobs.reserve(call.jobs.size());
  for (std::size_t i = 0; i < call.jobs.size(); ++i) {
    PutRequest put = request_of(std::move(call.jobs[i].job), *step.queues[i]);
    put.run = call.jobs[i].run;
    put.after_run = call.jobs[i].after_run;
    step.request.jobs.push_back(std::move(put));
  }
  co_await or_return(check(step.request));
  co_await or_return(Room::take_all_now(wanted));
  co_return step;
}

// `reply`: null where the store has refused.
void Broker::note_fired(const std::vector<Queue*>& queues, const FireReply* reply) {
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (reply != nullptr && reply->fired) {
      note_put(*queues[i], reply->jobs[i]);
    } else {
      queues[i]->room.arrived(false);
    }
  }
}

Coro<Broker::FireReplies> Broker::fire_all(std::vector<FireCall> calls) {
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
