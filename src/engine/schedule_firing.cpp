// Due runs go into the store: schedules that have come due are read, planned, and written as one batch.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <ranges>

#include "argiope/async/coro.hpp"
#include "base/internal/printable.hpp"
#include "engine/scheduler_impl.hpp"
#include "jobs/internal/run_request.hpp"

namespace argiope {
namespace {

// Of a job that was refused for what it is, which only an edit or another configuration changes.
constexpr Duration kTryAgain = std::chrono::minutes{1};

}  // namespace

Coro<void> SchedulerImpl::fire(std::vector<ScheduleId> ids) {
  Result<void> done;
  auto loaded = co_await core_.store(&Store::load_schedules, ids);
  if (loaded) {
    done = co_await fire_loaded(std::move(*loaded), ids);
  } else {
    done = std::unexpected(std::move(loaded.error()));
  }
  for (const ScheduleId id : ids) {
    if (core_.known.land(id)) core_.known.look_again(id, now());
  }
  --batches_;
  core_.batch_done.set();
  if (!done) co_return fail_all(done.error());
  core_.ticker.soon();
}

std::optional<ScheduleMark> SchedulerImpl::what_keeps(ScheduleId id, const JobTemplate& job) const {
  if (state_ == SchedulerState::stopped) return ScheduleMark{ScheduleReason::scheduler_stopped, {}};
  if (state_ == SchedulerState::paused) return ScheduleMark{ScheduleReason::scheduler_paused, {}};
  if (auto trouble = executors.trouble_with(job)) return trouble;
  const ScheduleMark* const marked = core_.known.mark_of(id);
  return marked == nullptr ? std::nullopt : std::optional(*marked);
}

// Of what is in the store, and can be read and run; what cannot is marked.
std::optional<SchedulerImpl::Due> SchedulerImpl::due_of(std::optional<ScheduleView> view, ScheduleId id) {
  if (!view) {
    core_.known.forget(id);
    return std::nullopt;
  }
  const StoredSchedule& stored = view->schedule;
  auto parsed = core_.reader.read(stored);
  if (!parsed) {
    mark(id, stored.name, {}, {ScheduleReason::unreadable, parsed.error().message});
    return std::nullopt;
  }
  if (look_time(*parsed->trigger, stored.place) <= now()) {
    const JobTemplate& job = parsed->definition->policies.job;
    if (auto trouble = executors.trouble_with(job)) {
      mark(id, stored.name, job.queue, std::move(*trouble));
      return std::nullopt;
    }
  }
  return Due{std::move(*view), std::move(*parsed)};
}

// Those whose plans need to know which runs are active are looked at again, as a whole: a plan is made from one view.
Coro<Result<void>> SchedulerImpl::look_closer(std::vector<Due>& all) {
  std::vector<ScheduleLook> looks;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StoredSchedule& stored = all[i].view.schedule;
    const auto look = what_is_needed(stored.id, all[i].parsed.definition->policies, stored.active);
    if (!look) continue;
    looks.push_back(*look);
    places.push_back(i);
  }
  if (looks.empty()) co_return Result<void>{};
  auto views = co_await or_return(core_.store(&Store::look_at_schedules, looks));
  std::vector<std::size_t> gone;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    const std::uint64_t version = all[places[i]].view.schedule.version;
    auto due = due_of(std::move(views[i]), looks[i].id);
    if (due && due->view.schedule.version == version) {
      due->newest_left_out = looks[i].newest_left_out;
      all[places[i]] = std::move(*due);
      continue;
    }
    // Changed between the two looks: it is looked at anew.
    if (due) core_.known.look_again(looks[i].id, now());
    gone.push_back(places[i]);
  }
  for (const std::size_t place : gone | std::views::reverse)
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(place));
  co_return Result<void>{};
}

Coro<Result<void>> SchedulerImpl::fire_loaded(std::vector<std::optional<StoredSchedule>> loaded,
                                              const std::vector<ScheduleId>& ids) {
  std::vector<Due> all;
  all.reserve(loaded.size());
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    std::optional<ScheduleView> view;
    if (loaded[i]) view = ScheduleView{.schedule = std::move(*loaded[i])};
    if (auto due = due_of(std::move(view), ids[i])) all.push_back(std::move(*due));
  }
  co_await or_return(look_closer(all));
  std::vector<FireCall> calls;
  std::vector<Step> steps;
  calls.reserve(all.size());
  steps.reserve(all.size());
  for (Due& due : all) {
    StoredSchedule& stored = due.view.schedule;
    const Trigger& trigger = *due.parsed.trigger;
    const Schedule& policies = due.parsed.definition->policies;
    core_.known.note_grace(stored.id, policies.misfire_grace.has_value());
    const WallTime present = now();
    Plan plan = make_plan({.trigger = trigger,
                           .policies = policies,
                           .place = stored.place,
                           .active = stored.active,
                           .active_jobs = due.view.active_jobs,
                           .newest_left_out = due.newest_left_out,
                           .last_entry = due.view.last_entry ? &*due.view.last_entry : nullptr,
                           .now = present,
                           .step_back = core_.options.step_back});
    if (!plan.changes) {
      core_.known.look_again(stored.id, plan.look_at);
      continue;
    }
    FireCall call{.id = stored.id, .version = stored.version, .place = plan.place};
    call.amended = plan.amended;
    call.jobs.reserve(plan.runs.size());
    for (const PlannedRun& run : plan.runs) {
      call.jobs.push_back({.job = job_of({policies.job, stored.name, trigger.zone(), present}, run),
                           .run = run.entry,
                           .after_run = run.after_run});
    }
    // The history is told only to those who listen.
    if (events.tells_runs()) {
      call.runs = plan.entries;
    } else {
      call.runs = std::move(plan.entries);
      plan.entries.clear();
    }
    calls.push_back(std::move(call));
    steps.push_back({stored.id, std::move(stored.name), policies.job.queue, std::move(plan)});
  }
  if (calls.empty()) co_return Result<void>{};
  co_return co_await write(std::move(calls), std::move(steps));
}

Coro<Result<void>> SchedulerImpl::write(std::vector<FireCall> calls, std::vector<Step> steps) {
  const auto replies = co_await or_return(core_.broker->puts.fire(std::move(calls)));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Result<FireReply>& reply = replies[i];
    if (!reply) {
      refused(steps[i], reply.error());
    } else if (!reply->fired) {
      // Another process has changed it since it was loaded.
      core_.known.look_again(steps[i].id, now());
    } else {
      co_await fired(steps[i], *reply);
    }
  }
  co_return Result<void>{};
}

void SchedulerImpl::refused(const Step& step, const Error& error) {
  const bool is_full = error.code == Errc::refused;
  mark(step.id, step.name, step.queue,
       {is_full ? ScheduleReason::queue_full : ScheduleReason::job_refused, error.message});
  core_.known.look_again(step.id, now() + (is_full ? core_.options.retry_interval : kTryAgain));
}

Coro<void> SchedulerImpl::fired(Step& step, const FireReply& reply) {
  using enum ScheduleEventKind;
  const Plan& plan = step.plan;
  core_.known.look_again(step.id, plan.look_at);
  unmark(step.id, step.name, step.queue);
  if (plan.began_anew) {
    spdlog::warn("schedule {} had got ahead of the calendar, and begins anew", in_quotes(step.name));
    events.tell_of(schedule_modified, step.id, step.name, step.queue,
                   "it had got ahead of the calendar, and begins anew");
  }
  const auto told = [&](ScheduleEventKind kind, const ScheduleRun& entry) {
    return ScheduleEvent{.kind = kind,
                         .at = now(),
                         .schedule = step.id,
                         .name = step.name,
                         .queue = step.queue,
                         .run = entry.number,
                         .planned = entry.planned,
                         .last_planned = entry.last_planned,
                         .count = entry.count,
                         .text = entry.error};
  };
  if (plan.amended && events.listened(job_max_instances)) {
    ScheduleEvent event = told(job_max_instances, *plan.amended);
    event.planned = plan.amended_from;
    event.count = plan.amended_count;
    events.tell(event);
  }
  if (events.tells_runs()) {
    std::size_t job = 0;
    for (const ScheduleRun& entry : plan.entries) {
      ScheduleEvent event = told(entry.outcome == RunOutcome::running   ? job_submitted
                                 : entry.outcome == RunOutcome::skipped ? job_max_instances
                                                                        : job_missed,
                                 entry);
      if (entry.outcome == RunOutcome::running) event.job = reply.jobs.at(job++).id;
      events.tell(event);
    }
  }
  if (plan.finished) events.tell_of(schedule_finished, step.id, step.name, step.queue);
  for (const JobId id : plan.cancel) {
    // One that has just ended is what was wanted.
    (void)co_await core_.broker->ends.change(
        {.id = id, .kind = ChangeKind::cancel, .error = "the next run of its schedule is due"});
  }
}

}  // namespace argiope
