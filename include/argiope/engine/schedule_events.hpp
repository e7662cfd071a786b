// The events of a scheduler and its schedules, for listeners in the process.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "argiope/store/store.hpp"

namespace argiope {

// Bits, to be combined into a mask. APScheduler's events, under its names in small letters, and what it has none for.
enum class ScheduleEventKind : std::uint32_t {
  scheduler_started = 1 << 0,
  scheduler_shutdown = 1 << 1,
  scheduler_paused = 1 << 2,
  scheduler_resumed = 1 << 3,
  executor_added = 1 << 4,    // `text` is its name
  executor_removed = 1 << 5,  // the same
  schedule_added = 1 << 6,
  schedule_removed = 1 << 7,
  schedule_modified = 1 << 8,  // also paused, resumed and replaced
  all_schedules_removed = 1 << 9,
  job_submitted = 1 << 10,  // a run was put into its queue; `planned` and `job` say which
  job_executed = 1 << 11,   // a run has ended well
  job_error = 1 << 12,      // a run was buried after its last attempt
  job_cancelled = 1 << 13,
  job_missed = 1 << 14,         // planned times were not run: too late, or left out by coalescing; `count` of them
  job_max_instances = 1 << 15,  // planned times were not run because of max_instances
  schedule_finished = 1 << 16,  // it has no more times
  schedule_marked = 1 << 17,    // it cannot be run for now; `text` says why
  schedule_unmarked = 1 << 18,  // it can again
  calendar_jumped = 1 << 19,    // `jump` says how far
};
inline constexpr std::uint32_t kAllScheduleEvents = (1u << 20) - 1;

std::string_view to_string(ScheduleEventKind kind) noexcept;

struct ScheduleEvent {
  ScheduleEventKind kind{};
  WallTime at{};
  ScheduleId schedule = 0;
  std::string_view name;  // of the schedule
  // Of the job; of the other events of one schedule, that of its jobs: schedule_removed as it was, all else as it is
  // now. Empty where that cannot be read, or where another process has removed it.
  std::string_view queue;
  JobId job = 0;            // job_…
  std::uint64_t run = 0;    // job_…: number of the entry in the schedule's history
  WallTime planned{};       // job_…: the (first) planned time
  WallTime last_planned{};  // job_missed, job_max_instances: the last one
  std::uint64_t count = 1;  // job_missed, job_max_instances: how many of them, at least
  std::string_view text;    // error or reason; job_executed: JobContext::finding
  Duration jump{};          // calendar_jumped
};

// Called on the scheduler's loop when what it tells of is committed, for each schedule in the order it happened. The
// views end with the call. It may add and remove listeners, itself too; what it throws is logged and counted
// (Scheduler::listener_errors).
using ScheduleListener = std::function<void(const ScheduleEvent&)>;

}  // namespace argiope
