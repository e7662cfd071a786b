#include "jobs/internal/schedule_rules.hpp"

#include <fmt/format.h>

#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"
#include "jobs/internal/job_rules.hpp"

namespace argiope {

Result<void> check(const FireRequest& request) {
  const auto wrong = [&](std::string_view what) {
    return fail(Errc::invalid_input, fmt::format("a step of schedule {}: {}", request.id, what));
  };
  const std::size_t count = request.runs.size();
  if (request.place.entries < count) return wrong("its entries are not numbered on from those before");
  const std::uint64_t first = request.place.entries - count + 1;
  if (const auto& amended = request.amended) {
    if (amended->number == 0 || amended->number != first - 1 || amended->job != 0 ||
        (amended->outcome != RunOutcome::missed && amended->outcome != RunOutcome::skipped)) {
      return wrong("only the last entry there was can be written anew, if it was missed or skipped");
    }
  }
  std::size_t job = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const ScheduleRun& run = request.runs[i];
    if (run.number != first + i) return wrong("its entries are not numbered on from those before");
    if (run.job != 0) return wrong("an entry is given its job by the put");
    if (run.outcome != RunOutcome::running) continue;
    while (job < request.jobs.size() && request.jobs[job].run == 0) ++job;
    if (job == request.jobs.size() || request.jobs[job].run != run.number) {
      return wrong("an entry that runs has one job, and they stand in the same order");
    }
    ++job;
  }
  for (; job < request.jobs.size(); ++job) {
    if (request.jobs[job].run != 0) return wrong("an entry that runs has one job, and they stand in the same order");
  }
  for (const PutRequest& put : request.jobs) {
    if (put.after_run > request.place.entries || (put.run != 0 && put.after_run >= put.run)) {
      return wrong("a job waits for a run that does not come before it");
    }
    if (auto good = job_rules::check(put); !good) return good;
  }
  return {};
}

}  // namespace argiope

namespace argiope::schedule_rules {

SchedulePlace stored(const SchedulePlace& place) noexcept {
  SchedulePlace kept = place;
  kept.next = stored(place.next);
  kept.last = stored(place.last);
  return kept;
}

ScheduleRun stored(ScheduleRun run) {
  for (WallTime* time : {&run.planned, &run.last_planned, &run.fired_at, &run.ended_at}) *time = stored(*time);
  run.error.resize(cut_error(run.error).size());
  return run;
}

std::string_view cut_error(std::string_view error) noexcept {
  return cut_between_characters(error, kMostRunErrorBytes);
}

Result<void> check(const std::vector<PutSchedule>& schedules) {
  for (const PutSchedule& schedule : schedules) {
    if (schedule.name.empty()) return fail(Errc::invalid_input, "a schedule needs a name");
    if (auto fits = job_rules::check_name("schedule", schedule.name); !fits) return fits;
    const auto too_long = [&](std::string_view what, std::size_t bytes, std::size_t most) {
      return fail(Errc::invalid_input, fmt::format("schedule {}: a {} of {} bytes; at most {}",
                                                   in_quotes(schedule.name), what, bytes, most));
    };
    if (schedule.trigger.size() > kMostTriggerBytes) {
      return too_long("trigger", schedule.trigger.size(), kMostTriggerBytes);
    }
    if (schedule.definition.size() > kMostDefinitionBytes) {
      return too_long("definition", schedule.definition.size(), kMostDefinitionBytes);
    }
  }
  return {};
}

PutScheduleOutcome outcome_of(const PutSchedule& wanted, std::optional<std::uint64_t> old_version) noexcept {
  using enum PutScheduleOutcome;
  if (wanted.made_from != 0) return old_version == wanted.made_from ? replaced : stale;
  if (!old_version) return added;
  return wanted.policy == ConflictPolicy::fail ? exists : wanted.policy == ConflictPolicy::keep ? kept : replaced;
}

bool take_put(ScheduleRun& run, const PutReply& put) {
  run.job = put.id;
  if (put.outcome == PutOutcome::added || put.outcome == PutOutcome::run_again) return true;
  run.outcome = put.cancelled != nullptr ? RunOutcome::cancelled : RunOutcome::skipped;
  if (put.cancelled != nullptr) run.error = put.cancelled->why;
  run.ended_at = run.fired_at;
  return false;
}

}  // namespace argiope::schedule_rules
