// A look at a schedule: from its definition, its place, its runs and the time, to the rows to write.
// Pure; the Scheduler looks and writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/jobs/schedule.hpp"

namespace argiope {

// Missed times are counted up to this, where counting is walking.
inline constexpr std::uint64_t kMostCounted = 1000;

struct PlannedRun {
  std::uint64_t entry = 0;  // number of its entry
  WallTime planned{};
  std::vector<JobId> waits_for;  // to end, however they do
  std::uint64_t after_run = 0;   // and for the job of that entry of the same plan; 0: for none
};

struct Plan {
  SchedulePlace place;               // as it is to be
  std::vector<ScheduleRun> entries;  // oldest first; those of runs are `running`
  // The history's last entry, written anew: what is skipped for the same reason as before is added to the entry that
  // says so, or one run that lasts would push all others out.
  std::optional<ScheduleRun> amended;
  WallTime amended_from{};          // the first of the planned times that this plan has added to it
  std::uint64_t amended_count = 0;  // and how many they are
  std::vector<PlannedRun> runs;
  std::vector<JobId> cancel;           // when the plan is written
  WallTime look_at = WallTime::max();  // when there will be something to do again; max: never by time alone
  bool changes = false;                // there is something to write
  bool finished = false;               // by this plan: no more times, or no more runs
  bool began_anew = false;             // the calendar was set back beyond `step_back`
};

struct PlanInput {
  const Trigger& trigger;
  const Schedule& policies;  // but for its name and trigger
  const SchedulePlace& place;
  // As of one view of the store: how many runs are active, which of them what_is_needed() asks for, oldest first, all
  // but so many of the newest, and the last entry of the history.
  std::uint32_t active = 0;
  const std::vector<JobId>& active_jobs;
  std::uint32_t newest_left_out = 0;
  const ScheduleRun* last_entry = nullptr;
  WallTime now{};
  Duration step_back = Duration::max();
};

// The facts that a plan needs of a schedule beside where it stands: nullopt when it is nothing.
std::optional<ScheduleLook> what_is_needed(ScheduleId id, const Schedule& policies, std::uint32_t active);

// Costs a bounded number of questions to the trigger, however many planned times have gone by.
Plan make_plan(const PlanInput& input);
// One run at once, planned for now, whatever the policies say.
Plan make_plan_now(const PlanInput& input);

// Whether a clock that was wrong has led a schedule into the future: it has dealt with times that are further than
// `step_back` from now, or ten of its own times if it follows elapsed time; or its first time is later than the one
// there is from now on.
bool is_lost(const Trigger& trigger, const SchedulePlace& place, WallTime now, Duration step_back);

// When a schedule that stands at `place` is to be looked at.
WallTime look_time(const Trigger& trigger, const SchedulePlace& place);

// The payload of a run; times in `zone`.
std::string fill_in(const JobTemplate& job, std::string_view name, const TimeZone& zone, std::uint64_t run,
                    WallTime planned, WallTime fired_at);

}  // namespace argiope
