#include "engine/internal/book_telling.hpp"

#include "base/internal/json_told.hpp"
#include "jobs/internal/schedule_json.hpp"

namespace argiope {

JobExplanation read_job_explanation(const JsonValue& told) {
  ToldMembers in(told);
  JobExplanation why;
  in.read("id", why.id);
  in.read("queue", why.queue);
  in.read_word("state", why.state, JobState::buried);
  in.read_word("reason", why.reason, WaitReason::no_worker);
  in.read("until", why.until);
  in.read("ahead", why.ahead);
  in.read("attempts", why.attempts);
  in.read("max_attempts", why.max_attempts);
  in.read("error", why.error);
  if (const JsonValue* jobs = in.find("waits_for")) {
    jobs->for_each([&](const JsonValue& id) {
      why.waits_for.push_back(static_cast<JobId>(id.whole(1, static_cast<std::int64_t>(kMostJobId))));
    });
  }
  in.read("lease_until", why.lease_until);
  in.read("worker", why.worker);
  in.read("progress", why.progress);
  in.read("progress_message", why.progress_message);
  if (const JsonValue* reasons = in.find("owner_knows")) {
    reasons->for_each([&](const JsonValue& reason) {
      why.owner_knows.push_back(ToldMembers::word_of(reason, WaitReason::no_worker, WaitReason::none));
    });
  }
  return why;
}

ScheduleStatus read_schedule_status(const JsonValue& told) {
  ToldMembers in(told);
  ScheduleStatus status;
  in.read("name", status.name);
  in.read("id", status.id);
  status.place.next = WallTime::max();
  in.read("next", status.place.next);
  in.read("last", status.place.last);
  in.read("runs", status.place.fired);
  in.read("missed", status.place.missed);
  in.read("active", status.active);
  in.read("paused", status.place.paused);
  in.read("paused_by", status.paused_by);
  in.read("paused_at", status.paused_at);
  in.read("trouble", status.trouble);
  if (const JsonValue* form = in.find("schedule")) {
    if (auto schedule = detail::read_schedule(*form)) status.schedule = std::move(*schedule);
  }
  return status;
}

ScheduleRun read_schedule_run(const JsonValue& told) {
  ToldMembers in(told);
  ScheduleRun run;
  in.read("run", run.number);
  in.read("planned", run.planned);
  in.read("last_planned", run.last_planned);
  in.read("count", run.count);
  in.read_word("outcome", run.outcome, RunOutcome::skipped);
  in.read("fired_at", run.fired_at);
  in.read("ended_at", run.ended_at);
  in.read("job", run.job);
  in.read("error", run.error);
  return run;
}

namespace {

ScheduleRun read_misfire(const JsonValue& told) {
  ToldMembers in(told);
  ScheduleRun missed;
  in.read("planned", missed.planned);
  in.read("last_planned", missed.last_planned);
  in.read("count", missed.count);
  in.read_word("outcome", missed.outcome, RunOutcome::skipped);
  in.read("why", missed.error);
  return missed;
}

void read_active_run(const JsonValue& told, ScheduleExplanation& why) {
  ToldMembers in(told);
  ScheduleRun& run = why.active_run.emplace();
  in.read("run", run.number);
  in.read("planned", run.planned);
  in.read("job", run.job);
  in.read("why", why.active_text);
}

TimeZone read_zone(const JsonValue& told) {
  auto zone = TimeZone::find(told.text(0, kMostNameBytes));
  if (!zone) told.refuse(zone.error());
  return zone ? *zone : TimeZone{};
}

}  // namespace

ScheduleExplanation read_schedule_explanation(const JsonValue& told) {
  ToldMembers in(told);
  ScheduleExplanation why;
  in.read("name", why.name);
  in.read("id", why.id);
  in.read_word("reason", why.reason, ScheduleReason::due);
  in.read("text", why.text);
  in.read("next", why.next);
  in.read("due_at", why.due_at);
  if (const JsonValue* zone = in.find("zone")) why.zone = read_zone(*zone);
  in.read("paused_by", why.paused_by);
  in.read("paused_at", why.paused_at);
  in.read("active", why.active);
  in.read("max_instances", why.max_instances);
  in.read_word("overlap", why.overlap, Overlap::cancel_running);
  in.read("runs", why.fired);
  in.read("missed", why.missed);
  if (const JsonValue* missed = in.find("last_misfire")) why.last_misfire = read_misfire(*missed);
  if (const JsonValue* run = in.find("active_run")) read_active_run(*run, why);
  return why;
}

}  // namespace argiope
