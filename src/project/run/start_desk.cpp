#include "project/run/start_desk.hpp"

#include <algorithm>

namespace argiope {
namespace {

constexpr Duration kClockSet = std::chrono::milliseconds{500};  // what clocks drift apart by in a second is far less

}  // namespace

Result<void> StartDesk::start(LiveProject& project, std::string cause) {
  const WallTime now = wall();
  PageBatch batch;
  batch.at = now;
  // In the transaction that begins it, it is wanted no more.
  const bool must_wait = !project.definition.processor.empty() && !project.description;
  project.record.start_wanted = must_wait ? std::optional(cause) : std::nullopt;
  if (must_wait) {
    project.write_to(batch);
    submit(std::move(batch));
    return {};
  }
  project.last_times.insert_or_assign(std::string(kStartTime), now);
  const std::int64_t round = rounds_.begin(project, std::move(cause), batch, now);
  for (const Url& url : project.definition.start) {
    AskedPage page{.url = url.href(), .force = true};
    if (auto taken = asks_.take_page(project, page, round, 0, batch, now); !taken)
      log(project, "warning", taken.error().message);
  }
  if (project.description && !project.description->on_start.empty()) {
    asks_.take_event(project, kStartPage, project.description->on_start, {}, round, batch, now);
  }
  rounds_.end_if_over(project, batch, now);
  plan(project);
  project.write_to(batch);
  submit(std::move(batch));
  turns_.activate(project);
  return {};
}

void StartDesk::begin_wanted(LiveProject& project) {
  if (project.record.start_wanted) (void)start(project, *project.record.start_wanted);
}

void StartDesk::plan(LiveProject& project) {
  project.plan_times(wall());
  if (project.next_time) next_times_ = std::min(next_times_, *project.next_time);
}

void StartDesk::do_due(WallTime now) {
  if (now < next_times_) return;
  next_times_ = WallTime::max();
  for (const auto& [name, project] : core_.projects) {
    if (project->next_time && *project->next_time <= now) do_due_of(*project, now);
    if (project->next_time) next_times_ = std::min(next_times_, *project->next_time);
  }
}

// However many times have passed, each start and each tick comes once.
void StartDesk::do_due_of(LiveProject& project, WallTime now) {
  if (!project.may_visit()) {
    // It is looked at again when it may.
    project.next_time.reset();
    return;
  }
  const auto started = project.last_times.find(kStartTime);
  if (started == project.last_times.end()) {
    if (project.definition.every) (void)start(project, "every");
  } else {
    const bool by_span = project.definition.every && started->second + *project.definition.every <= now;
    bool by_schedule = false;
    if (project.definition.schedule) {
      const auto next = project.definition.schedule->next(started->second);
      by_schedule = next && *next <= now;
    }
    if (by_span || by_schedule) (void)start(project, by_schedule ? "schedule" : "every");
  }
  if (project.description) {
    PageBatch batch;
    batch.at = now;
    for (const ProcessorDescription::Tick& tick : project.description->ticks) {
      const std::string name = std::string(kTickPage) + tick.rule;
      const auto last = project.last_times.find(name);
      if (last == project.last_times.end()) continue;
      const WallTime planned{now.time_since_epoch() / tick.every * tick.every};  // the latest that has passed
      if (planned <= last->second) continue;
      last->second = planned;
      project.is_changed = true;
      const auto seconds = std::chrono::floor<std::chrono::seconds>(planned.time_since_epoch()).count();
      asks_.take_event(project, name, tick.rule, "{\"tick\":" + std::to_string(seconds) + "}",
                       rounds_.begin(project, "tick", batch, now), batch, now);
    }
    if (batch.size() > 0) {
      project.write_to(batch);  // with them, so that a tick comes neither twice nor never
      submit(std::move(batch));
    }
  }
  project.plan_times(now);
}

// A clock that was set moves all that is due by the calendar.
void StartDesk::look_at_calendar(TimePoint now) {
  const Duration calendar = wall().time_since_epoch() - now.time_since_epoch();
  const Duration moved = calendar > calendar_ ? calendar - calendar_ : calendar_ - calendar;
  if (moved < kClockSet) return;
  calendar_ = calendar;
  next_times_ = WallTime::min();
  for (const auto& [name, project] : core_.projects) {
    project->plan_times(wall());
    if (project->frontier) project->frontier->set_clock(now, wall());
    turns_.activate(*project);
  }
}

}  // namespace argiope
