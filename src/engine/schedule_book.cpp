#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "argiope/async/coro.hpp"
#include "argiope/engine/book.hpp"
#include "argiope/time/time_zone.hpp"
#include "base/internal/printable.hpp"
#include "engine/book_rules.hpp"
#include "engine/broker.hpp"
#include "engine/internal/remote_book.hpp"
#include "engine/schedule_book_state.hpp"
#include "engine/scheduler_impl.hpp"
#include "jobs/internal/plan.hpp"
#include "jobs/internal/run_request.hpp"
#include "jobs/internal/schedule_codec.hpp"
#include "time/internal/instants.hpp"

namespace argiope {
namespace {

ScheduleStatus status_of(StoredSchedule stored) {
  ScheduleStatus status{.id = stored.id,
                        .version = stored.version,
                        .name = stored.name,
                        .trigger = std::move(stored.trigger),
                        .definition = std::move(stored.definition),
                        .place = stored.place,
                        .active = stored.active};
  auto trigger = parse_trigger_text(status.trigger);
  auto definition = parse_definition_text(status.definition);
  if (!trigger || !definition) {
    status.trouble = trigger ? definition.error().message : trigger.error().message;
    return status;
  }
  Schedule schedule = std::move(definition->policies);
  schedule.name = std::move(stored.name);
  schedule.trigger = std::move(*trigger);
  schedule.paused = stored.place.paused;
  status.schedule = std::move(schedule);
  if (stored.place.paused) {
    status.paused_by = std::move(definition->paused_by);
    status.paused_at = definition->paused_at;
  }
  return status;
}

// Each of those who edit the same schedule at the same moment gets its way at once but one; this often is no
// coincidence.
constexpr int kMostTries = 100;

AddOutcome added_as(PutScheduleOutcome outcome) noexcept {
  switch (outcome) {
    case PutScheduleOutcome::added: return AddOutcome::added;
    case PutScheduleOutcome::replaced: return AddOutcome::replaced;
    case PutScheduleOutcome::kept: return AddOutcome::kept;
    case PutScheduleOutcome::exists:
    case PutScheduleOutcome::stale: break;
  }
  return AddOutcome::exists;
}

std::unexpected<Error> no_such_schedule(std::string_view name) {
  return fail(Errc::not_found, fmt::format("schedule {}: there is no such schedule", in_quotes(name)));
}
std::unexpected<Error> edited_all_the_time(std::string_view name) {
  return fail(Errc::busy, fmt::format("schedule {}: other processes keep changing it", in_quotes(name)));
}
std::unexpected<Error> unreadable(std::string_view name, std::string_view why) {
  return fail(Errc::wrong_format, fmt::format("schedule {} cannot be read: {}", in_quotes(name), why));
}

// Where a schedule goes on when it is given its present trigger and bounds: `place` is where it stood.
void go_on(SchedulePlace& place, const Schedule& schedule, bool other_trigger, WallTime now) {
  const Trigger& trigger = schedule.trigger;
  if (other_trigger) {
    place.next = trigger.next_fire_time(std::nullopt, now).value_or(WallTime::max());
  } else if (place.next == WallTime::max()) {
    place.next = trigger.next(detail::just_before(now)).value_or(WallTime::max());
  }
  if (schedule.max_runs != 0 && place.fired >= schedule.max_runs) place.next = WallTime::max();
}

}  // namespace

// A scheduler hears of what has been committed for it, whether or not the caller still waits.
template <class T>
Coro<T> ScheduleBook::State::to_its_end(Coro<T> work) {
  if (scheduler) return scheduler->to_its_end(shared_from_this(), std::move(work));
  return keep_alive(shared_from_this(), std::move(work));
}

// --- what a book offers, kept until it has ended ---------------------------------------------------------------------

ScheduleBook::ScheduleBook(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

ScheduleBook::State::State(Store& its_store, const Clock& its_clock, QueueConfig its_new_queue, bool its_owned,
                           std::shared_ptr<Broker> its_owner, std::shared_ptr<SchedulerImpl> its_scheduler)
    : store(its_store),
      clock(its_clock),
      new_queue(std::move(its_new_queue)),
      owned(its_owned),
      owner(std::move(its_owner)),
      scheduler(std::move(its_scheduler)) {}
ScheduleBook::State::State(std::shared_ptr<RemoteBook> its_remote, const Clock& its_clock)
    : clock(its_clock), new_queue{}, owned(true), remote(std::move(its_remote)) {}

Coro<Result<AddReply>> ScheduleBook::add(Schedule schedule, ConflictPolicy conflict) {
  return state_->to_its_end(state_->add(std::move(schedule), conflict));
}
Coro<Result<std::vector<AddReply>>> ScheduleBook::add_all(std::vector<Schedule> schedules, ConflictPolicy conflict) {
  return state_->to_its_end(state_->add_all(std::move(schedules), conflict));
}
Coro<Result<ScheduleStatus>> ScheduleBook::get(std::string name) {
  return keep_alive(state_, state_->get(std::move(name)));
}
Coro<Result<std::vector<ScheduleStatus>>> ScheduleBook::list(ScheduleId after, std::size_t limit) {
  return keep_alive(state_, state_->list(after, limit));
}
Coro<Result<ScheduleStatus>> ScheduleBook::modify(std::string name, std::function<void(Schedule&)> change) {
  return keep_alive(state_, state_->modify(std::move(name), std::move(change)));
}
Coro<Result<ScheduleStatus>> ScheduleBook::reschedule(std::string name, Trigger trigger) {
  return modify(std::move(name), [trigger = std::move(trigger)](Schedule& schedule) { schedule.trigger = trigger; });
}
Coro<Result<ScheduleStatus>> ScheduleBook::pause(std::string name, std::string by) {
  return keep_alive(state_, state_->pause(std::move(name), std::move(by)));
}
Coro<Result<ScheduleStatus>> ScheduleBook::resume(std::string name, ResumeFrom from) {
  return keep_alive(state_, state_->resume(std::move(name), from));
}
Coro<Result<ScheduleId>> ScheduleBook::remove(std::string name) {
  return state_->to_its_end(state_->remove(std::move(name)));
}
Coro<Result<std::uint64_t>> ScheduleBook::remove_all() { return state_->to_its_end(state_->remove_all()); }
Coro<Result<JobId>> ScheduleBook::run_now(std::string name) {
  return state_->to_its_end(state_->run_now(std::move(name)));
}
Coro<Result<std::vector<ScheduleRun>>> ScheduleBook::history(std::string name, std::size_t limit) {
  return keep_alive(state_, state_->history(std::move(name), limit));
}
Coro<Result<std::optional<ScheduleOutput>>> ScheduleBook::output(std::string name) {
  return keep_alive(state_, state_->output(std::move(name)));
}
Coro<Result<ScheduleExplanation>> ScheduleBook::explain(std::string name) {
  return keep_alive(state_, state_->explain(std::move(name)));
}

// A schedule that is being edited.
struct ScheduleBook::State::Edited {
  Schedule schedule;
  SchedulePlace place;
  std::string paused_by;
  WallTime paused_at{};
  bool changed = true;
  bool resets_trigger = false;       // by whom it may be another
  std::vector<ScheduleRun> entries;  // to be written into its history
};

Coro<Result<StoredSchedule>> ScheduleBook::State::find(std::string name) {
  auto found = co_await or_return(store(&Store::find_schedule, name));
  if (!found) co_return no_such_schedule(name);
  co_return std::move(*found);
}

// --- adding ----------------------------------------------------------------------------------------------------------

Coro<Result<AddReply>> ScheduleBook::State::add(Schedule schedule, ConflictPolicy conflict) {
  const std::string name = schedule.name;
  std::vector<Schedule> one;
  one.push_back(std::move(schedule));
  const auto replies = co_await or_return(add_all(std::move(one), conflict));
  // An error here, where add_all() only reports it.
  if (replies.front().outcome == AddOutcome::exists) {
    co_return fail(Errc::refused, fmt::format("schedule {}: there is one of that name", in_quotes(name)));
  }
  co_return replies.front();
}

Coro<Result<std::vector<AddReply>>> ScheduleBook::State::add_all(std::vector<Schedule> schedules,
                                                                 ConflictPolicy conflict) {
  if (!scheduler) co_return co_await write_all(std::move(schedules), conflict);
  auto news = scheduler->note_news(schedules);
  auto replies = co_await or_return(write_all(std::move(schedules), conflict));
  co_await scheduler->take_news(std::move(news), replies);
  co_return replies;
}

Coro<Result<std::vector<AddReply>>> ScheduleBook::State::write_all(std::vector<Schedule> schedules,
                                                                   ConflictPolicy conflict) {
  const WallTime now = clock.wall_now();
  if (remote) {
    for (const Schedule& schedule : schedules) co_await or_return(check(schedule, now));
    co_return co_await remote->add_schedules(std::move(schedules), conflict);
  }
  for (const Schedule& schedule : schedules) co_await or_return(check(schedule, now));
  if (conflict == ConflictPolicy::replace) co_return co_await replace_all(std::move(schedules));
  ScheduleWriter writer;
  std::vector<PutSchedule> puts;
  puts.reserve(schedules.size());
  for (Schedule& schedule : schedules) {
    puts.push_back(writer.write(std::move(schedule), now));
    puts.back().policy = conflict;
  }
  const auto replies = co_await or_return(store(&Store::put_schedules, std::move(puts)));
  std::vector<AddReply> told;
  told.reserve(replies.size());
  for (const PutScheduleReply& reply : replies) told.push_back({added_as(reply.outcome), reply.id});
  co_return told;
}

// All in one transaction, but for those that another changes or adds meanwhile: each is made anew from what is there
// then.
Coro<Result<std::vector<AddReply>>> ScheduleBook::State::replace_all(std::vector<Schedule> schedules) {
  ScheduleWriter writer;
  std::vector<AddReply> told(schedules.size());
  std::vector<std::size_t> left(schedules.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  for (int tries = 0; !left.empty(); ++tries) {
    if (tries == kMostTries) co_return edited_all_the_time(schedules[left.front()].name);
    std::vector<PutSchedule> puts;
    puts.reserve(left.size());
    for (const std::size_t place : left) puts.push_back(co_await or_return(replacement_of(schedules[place], writer)));
    const auto replies = co_await or_return(store(&Store::put_schedules, std::move(puts)));
    std::vector<std::size_t> again;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const PutScheduleReply& reply = replies[i];
      const bool came_late = reply.outcome == PutScheduleOutcome::exists || reply.outcome == PutScheduleOutcome::stale;
      if (came_late) again.push_back(left[i]);
      told[left[i]] = {added_as(reply.outcome), reply.id};
    }
    left = std::move(again);
  }
  co_return told;
}

// The put that replaces the schedule of its name, if there is one: the state of that one stays.
Coro<Result<PutSchedule>> ScheduleBook::State::replacement_of(const Schedule& schedule, ScheduleWriter& writer) {
  const auto old = co_await or_return(store(&Store::find_schedule, schedule.name));
  const WallTime now = clock.wall_now();
  PutSchedule put = writer.write(schedule, now);
  if (!old) co_return put;
  const bool other_trigger = old->trigger != put.trigger;
  const bool stays_paused = old->place.paused;
  put.place = old->place;
  go_on(put.place, schedule, other_trigger, now);
  if (stays_paused) {
    if (auto before = parse_definition_text(old->definition)) {
      put.definition = definition_text(schedule, before->paused_by, before->paused_at);
    }
  }
  put.place.paused = stays_paused || schedule.paused;
  put.made_from = old->version;
  co_return put;
}

// --- looking ---------------------------------------------------------------------------------------------------------

Coro<Result<ScheduleStatus>> ScheduleBook::State::get(std::string name) {
  if (remote) co_return co_await remote->get_schedule(std::move(name));
  auto found = co_await or_return(find(std::move(name)));
  co_return status_of(std::move(found));
}

Coro<Result<std::vector<ScheduleStatus>>> ScheduleBook::State::list(ScheduleId after, std::size_t limit) {
  if (remote) co_return co_await remote->list_schedules(after, limit);
  auto found =
      co_await or_return(store(&Store::schedules, ScheduleFilter{.after = after, .limit = limit, .texts = true}));
  std::vector<ScheduleStatus> told;
  told.reserve(found.size());
  for (StoredSchedule& stored : found) told.push_back(status_of(std::move(stored)));
  co_return told;
}

Coro<Result<std::vector<ScheduleRun>>> ScheduleBook::State::history(std::string name, std::size_t limit) {
  if (remote) co_return co_await remote->schedule_history(std::move(name), limit);
  auto found = co_await or_return(find(std::move(name)));
  co_return co_await store(&Store::schedule_runs, found.id, limit);
}

Coro<Result<std::optional<ScheduleOutput>>> ScheduleBook::State::output(std::string name) {
  if (remote) co_return co_await remote->schedule_output(std::move(name));
  auto found = co_await or_return(find(std::move(name)));
  co_return co_await store(&Store::schedule_output, found.id);
}

// --- editing ---------------------------------------------------------------------------------------------------------

// A function of the user's is called only while the user waits; what it has come to is written, and told to the
// scheduler, whether or not the caller still waits.
Coro<Result<ScheduleStatus>> ScheduleBook::State::edit(std::string name, Edit change) {
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto stored = co_await or_return(find(name));
    ScheduleStatus status = status_of(stored);
    if (!status.schedule) co_return unreadable(name, status.trouble);
    Edited edited{.schedule = std::move(*status.schedule),
                  .place = stored.place,
                  .paused_by = std::move(status.paused_by),
                  .paused_at = status.paused_at};
    co_await or_return(change(edited));
    if (!edited.changed) co_return taken(std::move(stored));
    co_await or_return(edited.resets_trigger ? check(edited.schedule, clock.wall_now()) : check(edited.schedule));
    auto written = co_await or_return(to_its_end(write_edit(std::move(stored), std::move(edited))));
    if (written) co_return std::move(*written);
  }
  co_return edited_all_the_time(name);
}

ScheduleStatus ScheduleBook::State::taken(StoredSchedule stored) {
  ScheduleStatus status = status_of(std::move(stored));
  if (scheduler) scheduler->take_edit(status);
  return status;
}

// nullopt: another change came first.
Coro<Result<std::optional<ScheduleStatus>>> ScheduleBook::State::write_edit(StoredSchedule stored, Edited edited) {
  const Schedule& schedule = edited.schedule;
  if (!edited.entries.empty()) {
    // Its texts stay, so that history and place change in one transaction.
    std::vector<FireRequest> steps;
    steps.push_back(
        {.id = stored.id, .version = stored.version, .place = edited.place, .runs = std::move(edited.entries)});
    auto replies = co_await or_return(store(&Store::fire, std::move(steps), WallTime{}));
    const FireReply reply = co_await or_return(std::move(replies.front()));
    if (!reply.fired) co_return std::nullopt;
    stored.version = reply.version;
    stored.place = edited.place;
    co_return taken(std::move(stored));
  }
  PutSchedule put{.name = stored.name, .trigger = trigger_text(schedule.trigger), .place = edited.place};
  put.definition =
      put.place.paused ? definition_text(schedule, edited.paused_by, edited.paused_at) : definition_text(schedule);
  if (put.trigger != stored.trigger || put.definition != stored.definition) {
    go_on(put.place, schedule, put.trigger != stored.trigger, clock.wall_now());
  }
  put.made_from = stored.version;
  stored.trigger = put.trigger;
  stored.definition = put.definition;
  stored.place = put.place;
  std::vector<PutSchedule> one;
  one.push_back(std::move(put));
  auto replies = co_await or_return(store(&Store::put_schedules, std::move(one)));
  if (replies.front().outcome != PutScheduleOutcome::replaced) co_return std::nullopt;
  stored.version = replies.front().version;
  co_return taken(std::move(stored));
}

Coro<Result<ScheduleStatus>> ScheduleBook::State::modify(std::string name, std::function<void(Schedule&)> change) {
  if (remote) co_return co_await modify_remote(std::move(name), std::move(change));
  co_return co_await edit(name, [&](Edited& edited) -> Result<void> {
    change(edited.schedule);
    edited.resets_trigger = true;
    if (edited.schedule.name != name) {
      return fail(Errc::invalid_input,
                  fmt::format("name {}: a schedule keeps its name", in_quotes(edited.schedule.name)));
    }
    if (edited.schedule.paused && !edited.place.paused)
      edited.paused_at = std::chrono::floor<std::chrono::milliseconds>(clock.wall_now());
    edited.place.paused = edited.schedule.paused;
    return {};
  });
}

Coro<Result<ScheduleStatus>> ScheduleBook::State::pause(std::string name, std::string by) {
  if (by.size() > Schedule::kMostNameBytes) {
    co_return fail(Errc::invalid_input, fmt::format("by: at most {} bytes", Schedule::kMostNameBytes));
  }
  if (remote) co_return co_await remote->pause_schedule(std::move(name), std::move(by));
  co_return co_await edit(std::move(name), [&](Edited& edited) -> Result<void> {
    edited.changed = !edited.place.paused;
    edited.place.paused = true;
    edited.paused_by = by;
    edited.paused_at = std::chrono::floor<std::chrono::milliseconds>(clock.wall_now());
    return {};
  });
}

Coro<Result<ScheduleStatus>> ScheduleBook::State::resume(std::string name, ResumeFrom from) {
  if (remote) co_return co_await remote->resume_schedule(std::move(name), from);
  co_return co_await edit(std::move(name), [&](Edited& edited) -> Result<void> {
    SchedulePlace& place = edited.place;
    edited.changed = place.paused;
    place.paused = false;
    const WallTime now = clock.wall_now();
    const Trigger& trigger = edited.schedule.trigger;
    if (!edited.changed || from == ResumeFrom::where_it_was || place.next >= now) return {};
    const WallTime last = trigger.previous(now).value_or(place.next);
    ScheduleRun missed{.number = ++place.entries,
                       .planned = place.next,
                       .last_planned = std::max(last, place.next),
                       .fired_at = now,
                       .ended_at = now,
                       .outcome = RunOutcome::missed,
                       .error = "it was paused"};
    missed.count = std::max<std::uint64_t>(1, trigger.count(missed.planned, missed.last_planned, kMostCounted));
    place.missed += missed.count;
    place.last = missed.last_planned;
    const Trigger::Answer next = trigger.search(missed.last_planned);
    place.next = next.decided ? next.time.value_or(WallTime::max()) : next.clear;
    edited.entries.push_back(std::move(missed));
    return {};
  });
}

Coro<Result<ScheduleId>> ScheduleBook::State::remove(std::string name) {
  if (remote) co_return co_await remove_remote(std::move(name));
  const auto found = co_await or_return(find(name));
  const auto erased = co_await or_return(store(&Store::erase_schedules, std::vector<ScheduleId>{found.id}));
  if (erased == 0) co_return no_such_schedule(name);
  if (scheduler) {
    const auto definition = parse_definition_text(found.definition);
    scheduler->take_removal(found.id, name, definition ? definition->policies.job.queue : std::string_view());
  }
  co_return found.id;
}

Coro<Result<std::uint64_t>> ScheduleBook::State::remove_all() {
  if (remote) co_return co_await remove_all_remote();
  std::uint64_t count = 0;
  for (ScheduleId after = 0;;) {
    const auto page = co_await or_return(
        store(&Store::schedules, ScheduleFilter{.after = after, .limit = kSchedulesAPage, .texts = false}));
    if (page.empty()) break;
    std::vector<ScheduleId> ids;
    for (const StoredSchedule& stored : page) ids.push_back(stored.id);
    after = ids.back();
    count += co_await or_return(store(&Store::erase_schedules, std::move(ids)));
  }
  if (scheduler) co_await or_return(scheduler->take_removal_of_all());
  co_return count;
}

// --- behind a daemon -------------------------------------------------------------------------------------------------

// Of those who change the same members at the same moment the last one gets his way.
Coro<Result<ScheduleStatus>> ScheduleBook::State::modify_remote(std::string name,
                                                                std::function<void(Schedule&)> change) {
  ScheduleStatus status = co_await or_return(remote->get_schedule(name));
  if (!status.schedule) co_return unreadable(name, status.trouble);
  Schedule changed = *status.schedule;
  change(changed);
  if (changed.name != name) {
    co_return fail(Errc::invalid_input, fmt::format("name {}: a schedule keeps its name", in_quotes(changed.name)));
  }
  co_await or_return(check(changed, clock.wall_now()));
  co_return co_await remote->change_schedule(std::move(*status.schedule), std::move(changed));
}

Coro<Result<ScheduleId>> ScheduleBook::State::remove_remote(std::string name) {
  const ScheduleStatus found = co_await or_return(remote->get_schedule(name));
  co_await or_return(remote->remove_schedule(std::move(name)));
  co_return found.id;
}

Coro<Result<std::uint64_t>> ScheduleBook::State::remove_all_remote() {
  std::uint64_t count = 0;
  for (ScheduleId after = 0;;) {
    const auto page = co_await or_return(remote->list_schedules(after, kSchedulesAPage));
    if (page.empty()) co_return count;
    for (const ScheduleStatus& status : page) {
      after = status.id;
      const auto removed = co_await remote->remove_schedule(status.name);
      if (!removed && removed.error().code != Errc::not_found) co_return std::unexpected(removed.error());
      if (removed) ++count;
    }
  }
}

// --- running now -----------------------------------------------------------------------------------------------------

WallTime ScheduleBook::State::now() const { return scheduler ? scheduler->now() : clock.wall_now(); }

Coro<Result<JobId>> ScheduleBook::State::run_now(std::string name) {
  if (remote) co_return co_await remote->run_schedule_now(std::move(name));
  for (int tries = 0; tries < kMostTries; ++tries) {
    const auto found = co_await or_return(find(name));
    const ScheduleStatus status = status_of(found);
    if (!status.schedule) co_return unreadable(name, status.trouble);
    const Schedule& schedule = *status.schedule;
    if (const auto why = scheduler ? scheduler->executors.trouble_with(schedule.job) : std::nullopt) {
      co_return fail(Errc::not_found, why->text);
    }
    const WallTime present = now();
    const std::vector<JobId> no_jobs;
    Plan plan = make_plan_now({.trigger = schedule.trigger,
                               .policies = schedule,
                               .place = found.place,
                               .active = found.active,
                               .active_jobs = no_jobs,
                               .now = present});
    FireCall call{.id = found.id, .version = found.version, .place = plan.place, .runs = plan.entries};
    call.jobs.push_back({.job = job_of({schedule.job, name, schedule.trigger.zone(), present}, plan.runs.front()),
                         .run = plan.runs.front().entry});
    const FireReply reply = co_await or_return(fire(std::move(call)));
    // Every other step that makes this one stale is one that has been made.
    if (!reply.fired) continue;
    if (scheduler) co_await scheduler->take_run(found.id, name, schedule.job.queue, std::move(plan), reply);
    co_return reply.jobs.front().id;
  }
  co_return edited_all_the_time(name);
}

// Of a call with one job.
Coro<Result<FireReply>> ScheduleBook::State::fire(FireCall call) {
  if (owner) {
    std::vector<FireCall> calls;
    calls.push_back(std::move(call));
    auto replies = co_await or_return(owner->puts.fire(std::move(calls)));
    co_return std::move(replies.front());
  }
  FireJob& one = call.jobs.front();
  co_await or_return(check_queue_name(one.job.queue));
  const auto queue = co_await or_return(store(&Store::open_queue, one.job.queue, new_queue));
  co_await or_return(check_job(one.job, queue.name, queue.config.max_payload_bytes));
  const auto offset = co_await or_return(store(&Store::recall, kCalendarOffset));
  std::vector<FireRequest> steps;
  steps.push_back({.id = call.id, .version = call.version, .place = call.place, .runs = std::move(call.runs)});
  steps.back().jobs.push_back({.job = std::move(one.job), .run = one.run});
  auto replies =
      co_await or_return(store(&Store::fire, std::move(steps), clock.wall_now() + Duration{offset.value_or(0)}));
  co_return std::move(replies.front());
}

}  // namespace argiope
