// A store's knowledge of schedules: where each of them stands, and what became of its last runs. Only the scheduler
// knows what their texts mean.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/jobs/job_record.hpp"

namespace argiope {

inline constexpr std::uint64_t kRunsKept =
    20;  // entries of a schedule's history; runs that go on are known beyond them
inline constexpr std::size_t kMostTriggerBytes = 64 * 1024;
inline constexpr std::size_t kMostDefinitionBytes = 4 * 1024 * 1024;
inline constexpr std::size_t kMostRunErrorBytes = 1024;  // longer ones are cut

// Times of schedules are the calendar's, kept in whole milliseconds from 1970 on; WallTime::max() is kept as it is.
struct SchedulePlace {
  WallTime next{};            // the first planned time not dealt with; WallTime::max(): none will come
  WallTime last{};            // the last planned time dealt with; the epoch: none
  std::uint64_t fired = 0;    // runs begun
  std::uint64_t missed = 0;   // planned times that were not run
  std::uint64_t entries = 0;  // entries of history written: the number of the last one
  bool paused = false;
  friend bool operator==(const SchedulePlace&, const SchedulePlace&) = default;
};

struct StoredSchedule {
  ScheduleId id = 0;
  std::uint64_t version = 0;  // another after each put and each fire; only the ends of runs leave it as it is
  std::string name;           // unique in the store
  std::string trigger;
  std::string definition;  // many schedules may share one
  SchedulePlace place;
  std::uint32_t active = 0;  // runs whose jobs have not ended for good
  friend bool operator==(const StoredSchedule&, const StoredSchedule&) = default;
};

enum class RunOutcome : std::uint8_t {
  running,  // or waiting to
  done,
  failed,     // its job is buried
  cancelled,  // or its job was erased
  missed,
  skipped,  // because of other runs, or because the put of its job added none
};
constexpr std::string_view to_string(RunOutcome outcome) noexcept {
  constexpr std::string_view kNames[] = {"running", "done", "failed", "cancelled", "missed", "skipped"};
  return kNames[static_cast<std::size_t>(outcome)];
}

// One entry of a schedule's history.
struct ScheduleRun {
  std::uint64_t number = 0;  // from 1
  WallTime planned{};
  WallTime last_planned{};  // missed, skipped: the last of `count` planned times (at least) that begin with `planned`
  std::uint64_t count = 1;
  WallTime fired_at{};
  WallTime ended_at{};
  RunOutcome outcome = RunOutcome::running;
  JobId job = 0;
  std::string error;  // why it failed, was cancelled, missed or skipped; done: its remark
  friend bool operator==(const ScheduleRun&, const ScheduleRun&) = default;
};

// The output of the last run of a schedule that printed anything: kept for as long as the schedule, whatever becomes of
// the run's job.
struct ScheduleOutput {
  std::uint64_t run = 0;
  JobId job = 0;
  WallTime ended_at{};
  RunOutcome outcome = RunOutcome::done;
  std::string error;
  std::string output;  // JobRecord::result
  friend bool operator==(const ScheduleOutput&, const ScheduleOutput&) = default;
};

// The job of a run has ended for good.
struct EndedRun {
  ScheduleId schedule = 0;  // it may have been erased since
  std::uint64_t number = 0;
  JobId job = 0;
  RunOutcome outcome = RunOutcome::done;
  friend bool operator==(const EndedRun&, const EndedRun&) = default;
};

// The outcome of a put of a schedule when there is one of that name.
enum class ConflictPolicy : std::uint8_t {
  fail,     // PutScheduleOutcome::exists
  replace,  // the new one takes the old one's place, and keeps its id, its history and its active runs
  keep,     // the old one stays as it is
};

struct PutSchedule {
  std::string name;        // at most 512 bytes, not empty
  std::string trigger;     // at most kMostTriggerBytes
  std::string definition;  // at most kMostDefinitionBytes
  SchedulePlace place;     // but for `entries`, which a store counts itself
  ConflictPolicy policy = ConflictPolicy::fail;
  // Not 0: replaces the schedule of that name if it still has this version, and does nothing otherwise.
  std::uint64_t made_from = 0;
};
enum class PutScheduleOutcome : std::uint8_t {
  added,
  replaced,
  kept,
  exists,  // nothing was done
  stale,   // nothing was done: it has another version than `made_from`, or is not there (id 0)
};
struct PutScheduleReply {
  PutScheduleOutcome outcome = PutScheduleOutcome::added;
  ScheduleId id = 0;  // of the one that is there now
  std::uint64_t version = 0;
  friend bool operator==(const PutScheduleReply&, const PutScheduleReply&) = default;
};

// All facts that a step of a schedule needs are looked at in one view, so that no run ends between two looks.
struct ScheduleLook {
  ScheduleId id = 0;
  // Which of its active runs are told of: all but so many of the newest, and at most so many.
  std::uint32_t newest_left_out = 0;
  std::size_t most = std::numeric_limits<std::size_t>::max();
};
struct ScheduleView {
  StoredSchedule schedule;
  std::vector<JobId> active_jobs;  // of the runs asked for, oldest first; however many entries have followed them
  std::optional<ScheduleRun> last_entry;  // of its history
};

struct ScheduleFilter {
  ScheduleId after = 0;      // ids greater than this
  std::size_t limit = 1000;  // at most 10,000
  bool texts = true;         // false: name, trigger and definition stay empty
};

}  // namespace argiope
