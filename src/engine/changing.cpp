// How jobs that do not run are changed, and those that run are asked to stop.
#include "argiope/async/coro.hpp"
#include "engine/settle_desk.hpp"

namespace argiope {

void SettleDesk::set_times(Change& change) const {
  change.at = clock_.now();
  change.calendar_at = calendar_now();
  change.due_at = whole_ms(clock_.from_calendar(change.due_at));
  change.keep = std::nullopt;
}

Coro<Result<ChangeReply>> SettleDesk::change_one(Change change) {
  set_times(change);
  if (const std::uint64_t token = runs_.token_of(change.id); change.kind == ChangeKind::cancel && token != 0) {
    co_return co_await cancel_running(token, std::move(change));
  }
  const auto before = co_await or_return(store_(&Store::get, change.id));
  if (!before) co_return ChangeReply{.outcome = ChangeOutcome::not_found};
  auto replies = co_await or_return(store_(&Store::change, std::vector<Change>{change}));
  apply_in_memory(*before, change, replies.front());
  co_return std::move(replies.front());
}

// The store has said what it has come to.
void SettleDesk::apply_in_memory(const JobRecord& before, const Change& change, const ChangeReply& reply) {
  if (reply.outcome == ChangeOutcome::asked) {
    const std::uint64_t token = runs_.token_of(change.id);
    if (token != 0) run_desk_.ask_to_stop(token, change.error);
  } else if (reply.outcome == ChangeOutcome::changed) {
    note_changed(before, change, reply);
  }
}

void SettleDesk::note_changed(const JobRecord& before, const Change& change, const ChangeReply& reply) {
  Queue* const queue = queues_.find(before.queue);
  if (queue == nullptr) return;
  const JobId id = change.id;
  const bool was_live = before.state == JobState::ready || before.state == JobState::delayed;
  switch (change.kind) {
    case ChangeKind::cancel:
    case ChangeKind::erase:
      queue->window.forget(id, loop_.time());
      if (was_live) queue->room.give(1);
      tell(change.kind == ChangeKind::cancel ? JobEventKind::cancelled : JobEventKind::erased, id, *queue,
           change.kind == ChangeKind::cancel ? std::string_view{"asked for"} : std::string_view{}, 0, {}, 0,
           run_of(id, reply.ended_runs));
      break;
    case ChangeKind::kick:
      if (!was_live) queue->room.came_back();
      tell(JobEventKind::kicked, id, *queue);
      break;
    case ChangeKind::set_priority:
    case ChangeKind::set_due: tell(JobEventKind::changed, id, *queue, {}, 0, change.due_at); break;
  }
  if (reply.job) queue->window.place(*reply.job, loop_.time());
  queue_desk_.mark(*queue);
  queue_desk_.note_released(reply.released, reply.cancelled, reply.ended_runs);
}

// Asked of the store before its worker can answer.
Coro<Result<ChangeReply>> SettleDesk::cancel_running(std::uint64_t token, Change change) {
  const std::string queue = runs_.at(token).queue->name();
  auto written = loop_.create_task(store_(&Store::change, std::vector<Change>{change}), "broker", Start::eagerly);
  run_desk_.ask_to_stop(token, change.error);
  auto replies = co_await std::move(written);
  if (!replies) co_return std::unexpected(std::move(replies.error()));
  ChangeReply& reply = replies->front();
  if (reply.outcome == ChangeOutcome::changed) {  // its lease was not written down yet
    note_changed({.queue = queue, .state = JobState::ready}, change, reply);
  }
  co_return std::move(reply);
}

// Of jobs that others have changed, those that run here and are to be cancelled.
Coro<Result<void>> SettleDesk::hear_of_cancellations(std::vector<JobId> jobs) {
  for (const JobId id : jobs) {
    const auto record = co_await or_return(store_(&Store::get, id));
    const std::uint64_t token = runs_.token_of(id);
    if (!record || !record->cancel_asked || token == 0) continue;
    if (!runs_.at(token).cancel_asked) run_desk_.ask_to_stop(token, record->error);
  }
  co_return Result<void>{};
}

// --- with a key ------------------------------------------------------------------------------------------------------

Coro<Result<OnceReply>> SettleDesk::do_change_once(OnceCall call) {
  OnceReply known = co_await or_return(look_for_request(store_, call.key));
  if (known.how != Repetition::first) co_return known;
  co_return co_await to_its_end(change_in_one(std::move(call)));
}

Coro<Result<OnceReply>> SettleDesk::change_in_one(OnceCall call) {
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
    if (before[i]) apply_in_memory(*before[i], call.changes[i], reply.changes[i]);
  }
  co_return reply;
}

}  // namespace argiope
