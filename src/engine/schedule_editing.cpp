// Schedules come, change and go; what is known of them in memory follows.
#include <spdlog/spdlog.h>

#include "base/internal/printable.hpp"
#include "engine/add_one.hpp"
#include "engine/scheduler_impl.hpp"

namespace argiope {

void SchedulerImpl::reindex(ScheduleId id, const SchedulePlace& place) {
  unmark(id);
  const auto flying = in_flight_.find(id);
  const bool is_flying = flying != in_flight_.end();
  if (is_flying) flying->second = true;
  if (id < graceless_.size()) graceless_[id] = false;
  // One that got into the future is looked at now: the plan says what becomes of it.
  const bool is_ahead = place.last > now();
  index_.set(id, is_flying || place.paused ? WallTime::max() : is_ahead ? now() : place.next);
}

void SchedulerImpl::forget(ScheduleId id) {
  index_.erase(id);
  marks_.erase(id);
}

void SchedulerImpl::mark(ScheduleId id, std::string_view name, Mark mark) {
  Mark& marked = marks_[id];
  const bool is_news = marked.reason != mark.reason || marked.text != mark.text;
  marked = std::move(mark);
  if (!is_news) return;
  spdlog::warn("schedule {} is due and cannot be run: {}", in_quotes(name), marked.text);
  tell_of(ScheduleEventKind::schedule_marked, id, name, marked.text);
}

void SchedulerImpl::unmark(ScheduleId id, std::string_view name) {
  if (marks_.erase(id) > 0) tell_of(ScheduleEventKind::schedule_unmarked, id, name);
}

void SchedulerImpl::look_at_marked(ScheduleReason reason) {
  const WallTime present = now();
  for (const auto& [id, marked] : marks_) {
    if (marked.reason == reason) look_again(id, present);
  }
  ticker_.soon();
}

Coro<Result<AddReply>> SchedulerImpl::add(Schedule schedule, ConflictPolicy conflict) {
  const std::string name = schedule.name;
  std::vector<Schedule> one;
  one.push_back(std::move(schedule));
  co_return reply_of_one(co_await add_all(std::move(one), conflict), name);
}

Coro<Result<std::vector<AddReply>>> SchedulerImpl::add_all(std::vector<Schedule> schedules, ConflictPolicy conflict) {
  // What is due of those added: as written, since nobody has moved them on yet.
  const WallTime present = loop_.clock().wall_now();
  std::vector<SchedulePlace> places;
  std::vector<std::string> names;
  places.reserve(schedules.size());
  const bool tells = listened(ScheduleEventKind::schedule_added) || listened(ScheduleEventKind::schedule_modified);
  for (const Schedule& schedule : schedules) {
    const auto next = schedule.trigger.next_fire_time(std::nullopt, present);
    places.push_back({.next = next.value_or(WallTime::max()), .paused = schedule.paused});
    if (tells) names.push_back(schedule.name);
  }
  auto replies = co_await book_.add_all(std::move(schedules), conflict);
  if (!replies) co_return replies;
  std::vector<ScheduleId> replaced;
  for (std::size_t i = 0; i < replies->size(); ++i) {
    const AddReply& reply = (*replies)[i];
    if (reply.outcome == AddOutcome::added) reindex(reply.id, places[i]);
    if (reply.outcome == AddOutcome::replaced) replaced.push_back(reply.id);
    if (tells && reply.outcome == AddOutcome::added) {
      tell_of(ScheduleEventKind::schedule_added, reply.id, names[i]);
    }
  }
  if (!replaced.empty()) co_await read_again(std::move(replaced));
  ticker_.soon();
  co_return replies;
}

Coro<Result<ScheduleStatus>> SchedulerImpl::edited(Coro<Result<ScheduleStatus>> edit) {
  auto status = co_await std::move(edit);
  if (!status) co_return status;
  reindex(status->id, status->place);
  tell_of(ScheduleEventKind::schedule_modified, status->id, status->name);
  ticker_.soon();
  co_return status;
}

Coro<Result<ScheduleStatus>> SchedulerImpl::modify(std::string name, std::function<void(Schedule&)> change) {
  return edited(book_.modify(std::move(name), std::move(change)));
}
Coro<Result<ScheduleStatus>> SchedulerImpl::reschedule(std::string name, Trigger trigger) {
  return edited(book_.reschedule(std::move(name), std::move(trigger)));
}
Coro<Result<ScheduleStatus>> SchedulerImpl::pause(std::string name, std::string by) {
  return edited(book_.pause(std::move(name), std::move(by)));
}
Coro<Result<ScheduleStatus>> SchedulerImpl::resume(std::string name, ResumeFrom from) {
  return edited(book_.resume(std::move(name), from));
}

Coro<Result<void>> SchedulerImpl::remove(std::string name) {
  auto id = co_await book_.remove(name);
  if (!id) co_return std::unexpected(std::move(id.error()));
  forget(*id);
  tell_of(ScheduleEventKind::schedule_removed, *id, name);
  co_return Result<void>{};
}

Coro<Result<void>> SchedulerImpl::remove_all() {
  auto count = co_await book_.remove_all();
  if (!count) co_return std::unexpected(std::move(count.error()));
  // One that was added meanwhile is in the store, and will be found there.
  index_ = {};
  marks_.clear();
  if (auto read = co_await read_all(); !read) co_return read;
  tell(ScheduleEventKind::all_schedules_removed);
  co_return Result<void>{};
}

}  // namespace argiope
