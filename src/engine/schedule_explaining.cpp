#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "argiope/async/coro.hpp"
#include "argiope/time/time_zone.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "engine/internal/remote_book.hpp"
#include "engine/internal/schedule_status_json.hpp"
#include "engine/schedule_book_state.hpp"
#include "engine/scheduler_impl.hpp"

namespace argiope {
namespace {

constexpr std::string_view kReasons[] = {"unreadable",
                                         "paused",
                                         "finished",
                                         "max_runs",
                                         "scheduler_stopped",
                                         "scheduler_paused",
                                         "unknown_executor",
                                         "unknown_function",
                                         "queue_full",
                                         "job_refused",
                                         "overlap",
                                         "not_due",
                                         "due"};

std::string what_overlap_does(Overlap overlap) {
  switch (overlap) {
    case Overlap::skip: return "a planned time that comes now is skipped";
    case Overlap::queue_one: return "one that comes now waits, if none waits already";
    case Overlap::queue_all: return "one that comes now waits";
    case Overlap::cancel_running: return "one that comes now cancels the oldest";
  }
  return "";
}

}  // namespace

Coro<Result<ScheduleExplanation>> ScheduleBook::State::explain(std::string name) {
  if (remote) co_return co_await remote->explain_schedule(std::move(name));
  const auto status = co_await or_return(get(name));
  ScheduleExplanation why{.id = status.id,
                          .name = std::move(name),
                          .active = status.active,
                          .fired = status.place.fired,
                          .missed = status.place.missed};
  for (const ScheduleRun& run : co_await or_return(store(&Store::schedule_runs, status.id, kRunsKept))) {
    const bool is_misfire = run.outcome == RunOutcome::missed || run.outcome == RunOutcome::skipped;
    if (is_misfire && !why.last_misfire) why.last_misfire = run;
    if (run.outcome == RunOutcome::running) why.active_run = run;
  }
  if (why.active_run) co_await or_return(explain_run(why));
  if (status.place.next != WallTime::max()) why.next = status.place.next;
  if (!status.schedule) {
    why.reason = ScheduleReason::unreadable;
    why.text = status.trouble;
    co_return why;
  }
  const Schedule& schedule = *status.schedule;
  why.zone = schedule.trigger.zone();
  why.max_instances = schedule.max_instances;
  why.overlap = schedule.overlap;
  SchedulePlace going_on = status.place;
  going_on.paused = false;
  if (why.next) why.due_at = std::chrono::floor<std::chrono::milliseconds>(look_time(schedule.trigger, going_on));

  const bool has_had_all = schedule.max_runs != 0 && status.place.fired >= schedule.max_runs;
  const auto kept_by = scheduler ? scheduler->what_keeps(status.id, schedule.job) : std::nullopt;
  if (status.place.paused) {
    why.reason = ScheduleReason::paused;
    why.paused_by = status.paused_by;
    why.paused_at = status.paused_at;
  } else if (!why.next) {
    why.reason = has_had_all ? ScheduleReason::max_runs : ScheduleReason::finished;
  } else if (!owned) {
    why.reason = ScheduleReason::scheduler_stopped;
  } else if (kept_by) {
    why.reason = kept_by->reason;
    why.text = kept_by->text;
  } else if (status.active >= why.max_instances) {
    why.reason = ScheduleReason::overlap;
  } else {
    why.reason = *why.due_at > now() ? ScheduleReason::not_due : ScheduleReason::due;
  }
  co_return why;
}

// Why its oldest run does not go on: as of the run's job, which may have gone meanwhile.
Coro<Result<void>> ScheduleBook::State::explain_run(ScheduleExplanation& why) {
  const auto job = co_await explain_job(why.active_run->job);
  if (!job) {
    why.active_run.reset();
    co_return job.error().code == Errc::not_found ? Result<void>() : std::unexpected(job.error());
  }
  why.active_text = to_sentence(*job);
  if (job->reason != WaitReason::no_worker || !scheduler) co_return Result<void>{};
  const auto executors = scheduler->executors.names();
  if (std::ranges::find(executors, job->queue) == executors.end()) {
    why.active_text += fmt::format(", and no executor has {}", in_quotes(job->queue));
  }
  co_return Result<void>{};
}

std::string_view to_string(ScheduleReason reason) noexcept { return kReasons[static_cast<std::size_t>(reason)]; }

std::string to_sentence(const ScheduleExplanation& why) {
  using enum ScheduleReason;
  const auto time = [&](WallTime when) { return format_timestamp(when, why.zone); };
  std::string next;
  if (why.next) {
    next = "next planned for " + time(*why.next);
    if (why.due_at && *why.due_at != *why.next)
      next += fmt::format(", to run at {} with its jitter", time(*why.due_at));
  }
  std::string out;
  switch (why.reason) {
    case unreadable: out = "cannot be read: " + why.text; break;
    case paused:
      out = "paused";
      if (!why.paused_by.empty()) out += " by " + why.paused_by;
      if (why.paused_at != WallTime{}) out += " since " + time(why.paused_at);
      break;
    case finished: out = "over: no planned times are left"; break;
    case max_runs: out = fmt::format("over: it has had all of its {} runs", why.fired); break;
    case scheduler_stopped: out = "the scheduler is not running"; break;
    case scheduler_paused: out = "the scheduler is paused"; break;
    case unknown_executor:
    case unknown_function:
    case queue_full:
    case job_refused: out = "cannot be run: " + why.text; break;
    case overlap:
      out = fmt::format("{} of at most {} runs have not ended: {}", why.active, why.max_instances,
                        what_overlap_does(why.overlap));
      break;
    case not_due: out = "not due"; break;
    case due: out = "due"; break;
  }
  if (why.active_run) {
    out += fmt::format("; its run of {} is job {}: {}", time(why.active_run->planned), why.active_run->job,
                       why.active_text);
  }
  if (!next.empty()) out += "; " + next;
  if (why.last_misfire) {
    const ScheduleRun& missed = *why.last_misfire;
    out += fmt::format("; last not run: {}", time(missed.planned));
    if (missed.last_planned > missed.planned) out += " to " + time(missed.last_planned);
    if (!missed.error.empty()) out += fmt::format(" ({})", missed.error);
  }
  return out;
}

// --- as JSON ---------------------------------------------------------------------------------------------------------

namespace {

std::optional<WallTime> time_or_none(WallTime time) {
  return time == WallTime{} || time == WallTime::max() ? std::nullopt : std::optional(time);
}

void write_time(JsonWriter& json, std::string_view name, std::optional<WallTime> when, const TimeZone& zone) {
  json.key(name);
  when&&* when != WallTime{} ? json.value(format_timestamp(*when, zone)) : json.null();
}

void write_misfire(JsonWriter& json, const ScheduleExplanation& why) {
  json.key("last_misfire");
  if (!why.last_misfire) return json.null();
  json.object([&, &missed = *why.last_misfire] {
    write_time(json, "planned", missed.planned, why.zone);
    write_time(json, "last_planned", missed.last_planned, why.zone);
    json.member("count", missed.count);
    json.member("outcome", to_string(missed.outcome));
    json.member("why", missed.error);
  });
}

void write_active_run(JsonWriter& json, const ScheduleExplanation& why) {
  json.key("active_run");
  if (!why.active_run) return json.null();
  json.object([&] {
    json.member("run", why.active_run->number);
    write_time(json, "planned", why.active_run->planned, why.zone);
    json.member("job", why.active_run->job);
    json.member("why", why.active_text);
  });
}

}  // namespace

void write_members(JsonWriter& json, const ScheduleExplanation& why) {
  const auto time = [&](std::string_view name, std::optional<WallTime> when) {
    write_time(json, name, when, why.zone);
  };
  json.member("name", why.name);
  json.member("id", why.id);
  json.member("reason", to_string(why.reason));
  json.member("text", why.text);
  time("next", why.next);
  time("due_at", why.due_at);
  json.member("zone", why.zone.name());
  json.member("paused_by", why.paused_by);
  time("paused_at", why.paused_at);
  json.member("active", why.active);
  json.member("max_instances", why.max_instances);
  json.member("overlap", to_string(why.overlap));
  json.member("runs", why.fired);
  json.member("missed", why.missed);
  write_misfire(json, why);
  write_active_run(json, why);
}

std::string to_json(const ScheduleExplanation& why) {
  return json_object([&](JsonWriter& json) { write_members(json, why); });
}

void write_members(JsonWriter& out, const ScheduleStatus& status) {
  const TimeZone zone = status.schedule ? status.schedule->trigger.zone() : TimeZone{};
  const auto time = [&](std::string_view name, WallTime when) { write_time(out, name, time_or_none(when), zone); };
  out.member("name", status.name);
  out.member("id", status.id);
  time("next", status.place.next);
  time("last", status.place.last);
  out.member("runs", status.place.fired);
  out.member("missed", status.place.missed);
  out.member("active", status.active);
  out.member("paused", status.place.paused);
  if (status.place.paused) {
    out.key("paused_by");
    status.paused_by.empty() ? out.null() : out.value(status.paused_by);
    time("paused_at", status.paused_at);
  }
  if (status.schedule) {
    out.key("schedule");
    out.raw(to_json(*status.schedule));
  } else {
    out.member("trouble", status.trouble);
  }
}

void write_members(JsonWriter& out, const ScheduleRun& run) {
  const bool fired = time_or_none(run.fired_at) && run.job != 0;
  const auto lateness = std::chrono::floor<std::chrono::milliseconds>(run.fired_at - run.planned).count();
  out.member("run", run.number);
  out.member("planned", time_or_none(run.planned));
  out.member("last_planned", time_or_none(run.last_planned));
  out.member("count", run.count);
  out.member("outcome", to_string(run.outcome));
  out.member("fired_at", time_or_none(run.fired_at));
  out.member("ended_at", time_or_none(run.ended_at));
  out.member("lateness_ms", fired ? std::optional(lateness) : std::nullopt);
  out.member("job", run.job != 0 ? std::optional(run.job) : std::nullopt);
  out.member("error", run.error);
}

void write_members(JsonWriter& out, const ScheduleOutput& output) {
  out.member("run", output.run);
  out.member("job", output.job);
  out.member("outcome", to_string(output.outcome));
  out.member("ended_at", time_or_none(output.ended_at));
  out.member("error", output.error);
  out.bytes("output", output.output);
}

std::string to_json(const ScheduleStatus& status) {
  return json_object([&](JsonWriter& out) { write_members(out, status); }, JsonEscapes::letters);
}

}  // namespace argiope
