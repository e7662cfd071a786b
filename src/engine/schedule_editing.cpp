// Schedules come, change and go; what is known of them in memory follows.
#include <spdlog/spdlog.h>

#include "argiope/async/or_return.hpp"
#include "base/internal/printable.hpp"
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

void SchedulerImpl::mark(ScheduleId id, std::string_view name, std::string_view queue, Mark mark) {
  Mark& marked = marks_[id];
  const bool is_news = marked.reason != mark.reason || marked.text != mark.text;
  marked = std::move(mark);
  if (!is_news) return;
  spdlog::warn("schedule {} is due and cannot be run: {}", in_quotes(name), marked.text);
  tell_of(ScheduleEventKind::schedule_marked, id, name, queue, marked.text);
}

void SchedulerImpl::unmark(ScheduleId id, std::string_view name, std::string_view queue) {
  if (marks_.erase(id) > 0) tell_of(ScheduleEventKind::schedule_unmarked, id, name, queue);
}

void SchedulerImpl::look_at_marked(ScheduleReason reason) {
  const WallTime present = now();
  for (const auto& [id, marked] : marks_) {
    if (marked.reason == reason) look_again(id, present);
  }
  ticker_.soon();
}

SchedulerImpl::News SchedulerImpl::note_news(const std::vector<Schedule>& schedules) const {
  // Added schedules that are due: as written, since nobody has moved them on yet.
  const WallTime present = loop_.clock().wall_now();
  News news;
  news.places.reserve(schedules.size());
  const bool tells = listened(ScheduleEventKind::schedule_added);
  for (const Schedule& schedule : schedules) {
    const auto next = schedule.trigger.next_fire_time(std::nullopt, present);
    news.places.push_back({.next = next.value_or(WallTime::max()), .paused = schedule.paused});
    if (!tells) continue;
    news.names.push_back(schedule.name);
    news.queues.push_back(schedule.job.queue);
  }
  return news;
}

Coro<void> SchedulerImpl::take_news(News news, const std::vector<AddReply>& replies) {
  std::vector<ScheduleId> replaced;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const AddReply& reply = replies[i];
    if (reply.outcome == AddOutcome::replaced) replaced.push_back(reply.id);
    if (reply.outcome != AddOutcome::added) continue;
    reindex(reply.id, news.places[i]);
    if (!news.names.empty()) tell_of(ScheduleEventKind::schedule_added, reply.id, news.names[i], news.queues[i]);
  }
  if (!replaced.empty()) co_await read_again(std::move(replaced));
  ticker_.soon();
}

void SchedulerImpl::take_edit(const ScheduleStatus& status) {
  reindex(status.id, status.place);
  tell_of(ScheduleEventKind::schedule_modified, status.id, status.name, status.schedule ? status.schedule->job.queue : std::string_view());
  ticker_.soon();
}

void SchedulerImpl::take_removal(ScheduleId id, std::string_view name, std::string_view queue) {
  forget(id);
  tell_of(ScheduleEventKind::schedule_removed, id, name, queue);
}

Coro<Result<void>> SchedulerImpl::take_removal_of_all() {
  // One that was added meanwhile is in the store, and will be found there.
  index_ = {};
  marks_.clear();
  co_await or_return(read_all());
  tell(ScheduleEventKind::all_schedules_removed);
  co_return Result<void>{};
}

Coro<void> SchedulerImpl::take_run(ScheduleId id, std::string name, std::string queue, Plan plan,
                                   const FireReply& reply) {
  Step step{id, std::move(name), std::move(queue), std::move(plan)};
  reindex(step.id, step.plan.place);
  co_await fired(step, reply);
}

}  // namespace argiope
