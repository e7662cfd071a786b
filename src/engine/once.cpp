// How the broker does requests that have a key: in one call of the store, which remembers them with what they have done.
#include "argiope/async/or_return.hpp"
#include "engine/book_rules.hpp"
#include "engine/broker.hpp"

namespace argiope {

// Whoever repeats a request gets its answer at once, even where there is no room any more, or a lease has ended by it.
Coro<Result<OnceReply>> look_for_request(StoreUse store, RequestKey key) {
  return store(&Store::once, OnceRequest{.key = std::move(key), .only_look = true});
}

Coro<Result<OnceReply>> Broker::do_once(OnceCall call) {
  OnceReply known = co_await or_return(look_for_request(store_, call.key));
  if (known.how != Repetition::first) co_return known;
  if (!call.changes.empty()) co_return co_await to_its_end(change_once(std::move(call)));
  co_return co_await put_once(std::move(call));
}

// --- puts ----------------------------------------------------------------------------------------------------------

Coro<Result<OnceReply>> Broker::put_once(OnceCall call) {
  const bool each = call.as == OnceCall::As::each;
  std::vector<Result<Queue*>> queues;
  for (const NewJob& job : call.jobs) {
    auto queue = co_await queue_named(job.queue, options_.create_queues, job.within);
    Result<void> good = queue ? check_job(job, (*queue)->name(), (*queue)->config().max_payload_bytes) : Result<void>{};
    if (queue && !good) queue = std::unexpected(std::move(good.error()));
    if (!queue && !each) co_return std::unexpected(std::move(queue.error()));
    queues.push_back(std::move(queue));
  }
  co_await or_return(take_room(queues, each));
  OnceRequest request{.key = std::move(call.key), .refusal = each ? Refusal::alone : Refusal::whole};
  for (std::size_t i = 0; i < call.jobs.size(); ++i) {
    if (queues[i]) {
      request.puts.emplace_back(request_of(std::move(call.jobs[i]), **queues[i]));
    } else {
      request.puts.emplace_back(std::unexpected(queues[i].error()));
    }
  }
  if (call.as == OnceCall::As::batch && !request.puts.empty()) request.puts.back()->waits_for_those_before = true;
  co_return co_await to_its_end(send_puts_once(std::move(request), std::move(queues)));
}

// For a job in each of the queues; where `each`, those for which there is none get that as their error.
Coro<Result<void>> Broker::take_room(std::vector<Result<Queue*>>& queues, bool each) {
  Room::Wanted wanted;
  for (const auto& queue : queues) {
    if (queue) ++wanted[&(*queue)->room];
  }
  Room::TakeSome take_some;
  if (each) take_some = [&](Room& room) { return take_what_there_is(room, queues); };
  co_return co_await Room::take_all(std::move(wanted), std::move(take_some));
}

// How much that was.
std::uint64_t Broker::take_what_there_is(Room& room, std::vector<Result<Queue*>>& queues) {
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

// The room for them has been taken; the queues hear of it whoever waits.
Coro<Result<OnceReply>> Broker::send_puts_once(OnceRequest request, std::vector<Result<Queue*>> queues) {
  request.now = clock_.now();
  auto answered = co_await store_(&Store::once, std::move(request));
  const bool done = answered && answered->how == Repetition::first;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (!queues[i]) continue;
    if (done && answered->puts[i]) {
      note_put(**queues[i], *answered->puts[i]);
    } else {
      (*queues[i])->room.arrived(false);
    }
  }
  co_return answered;
}

// --- changes -------------------------------------------------------------------------------------------------------

Coro<Result<OnceReply>> Broker::change_once(OnceCall call) {
  std::vector<std::optional<JobRecord>> before;
  for (Change& change : call.changes) {
    set_times(change);
    before.push_back(co_await or_return(store_(&Store::get, change.id)));
  }
  OnceRequest request{.key = std::move(call.key), .now = clock_.now()};
  request.changes = call.changes;
  auto reply = co_await or_return(store_(&Store::once, std::move(request)));
  if (reply.how != Repetition::first) co_return reply;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i]) heed(*before[i], call.changes[i], reply.changes[i]);
  }
  co_return reply;
}

// --- ends of runs --------------------------------------------------------------------------------------------------

Coro<Result<OnceReply>> Broker::do_settle_once(RequestKey key, std::vector<RunEnd> ends) {
  // One after the other: whoever repeats a request while it is being done finds its runs ended.
  const auto in_turn = co_await settling_once_.scoped();
  OnceReply known = co_await or_return(look_for_request(store_, key));
  if (known.how != Repetition::first) co_return known;
  co_return co_await to_its_end(settle_in_one(std::move(key), std::move(ends)));
}

Coro<Result<OnceReply>> Broker::settle_in_one(RequestKey key, std::vector<RunEnd> ends) {
  for (const RunEnd& end : ends) co_await or_return(make_queues_of(end.token, end.verdict.follow_ups));
  OnceRequest request{.key = std::move(key), .now = clock_.now()};
  std::vector<PendingSettlement> pending;
  for (RunEnd& end : ends) {
    const bool runs = runs_.find(end.token) != nullptr;
    // No job has the id 0: the lease of such a token is lost.
    pending.push_back(runs ? ended(end.token, std::move(end.verdict))
                           : PendingSettlement{.settlement = {.token = end.token}, .queue = nullptr, .attempt = 0});
    request.refused.push_back(pending.back().refused);
    request.settlements.push_back(taken_along(pending.back()));
  }
  auto answered = co_await store_(&Store::once, std::move(request));
  if (!answered) {
    stop_all(answered.error());
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

}  // namespace argiope
