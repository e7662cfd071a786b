// How jobs that do not run are changed, and those that run are asked to stop.
#include "argiope/async/or_return.hpp"
#include "engine/broker.hpp"

namespace argiope {

void Broker::set_times(Change& change) const {
  change.at = clock_.now();
  change.calendar_at = calendar_now();
  change.due_at = whole_ms(clock_.from_calendar(change.due_at));
  change.keep = std::nullopt;
}

Coro<Result<ChangeReply>> Broker::change_one(Change change) {
  set_times(change);
  if (const std::uint64_t token = runs_.token_of(change.id); change.kind == ChangeKind::cancel && token != 0) {
    co_return co_await cancel_running(token, std::move(change));
  }
  const auto before = co_await or_return(store_(&Store::get, change.id));
  if (!before) co_return ChangeReply{.outcome = ChangeOutcome::not_found};
  auto replies = co_await or_return(store_(&Store::change, std::vector<Change>{change}));
  heed(*before, change, replies.front());
  co_return std::move(replies.front());
}

// The store has said what it has come to.
void Broker::heed(const JobRecord& before, const Change& change, const ChangeReply& reply) {
  if (reply.outcome == ChangeOutcome::asked) {
    const std::uint64_t token = runs_.token_of(change.id);
    if (token != 0) ask_to_stop(token, change.error);
  } else if (reply.outcome == ChangeOutcome::changed) {
    note_changed(before, change, reply);
  }
}

void Broker::note_changed(const JobRecord& before, const Change& change, const ChangeReply& reply) {
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
  mark(*queue);
  note_released(reply.released, reply.cancelled, reply.ended_runs);
}

void Broker::ask_to_stop(std::uint64_t token, std::string why) {
  Run& running = *runs_.find(token);
  running.cancel_asked = true;
  running.cancel_why = std::move(why);
  const std::shared_ptr<const LeaseCall> call = running.call;
  tell_holder(*call, token);
}

// Asked of the store before its worker can answer.
Coro<Result<ChangeReply>> Broker::cancel_running(std::uint64_t token, Change change) {
  const std::string queue = runs_.at(token).queue->name();
  auto written = loop_.create_task(store_(&Store::change, std::vector<Change>{change}), "broker", Start::eagerly);
  ask_to_stop(token, change.error);
  auto replies = co_await std::move(written);
  if (!replies) co_return std::unexpected(std::move(replies.error()));
  ChangeReply& reply = replies->front();
  if (reply.outcome == ChangeOutcome::changed) {  // its lease was not written down yet
    note_changed({.queue = queue, .state = JobState::ready}, change, reply);
  }
  co_return std::move(reply);
}

// Of jobs that others have changed, those that run here and are to be cancelled.
Coro<Result<void>> Broker::hear_of_cancellations(std::vector<JobId> jobs) {
  for (const JobId id : jobs) {
    const auto record = co_await or_return(store_(&Store::get, id));
    const std::uint64_t token = runs_.token_of(id);
    if (!record || !record->cancel_asked || token == 0) continue;
    if (!runs_.at(token).cancel_asked) ask_to_stop(token, record->error);
  }
  co_return Result<void>{};
}

}  // namespace argiope
