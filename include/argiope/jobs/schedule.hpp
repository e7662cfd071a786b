// Schedules: what a store knows of them, and what they are to those who make them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/job.hpp"
#include "argiope/time/trigger.hpp"

namespace argiope {

// A store's knowledge of schedules: where each of them stands, and what became of its last runs. Only the scheduler
// knows what their texts mean.

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

// Schedule: when to put which job, and what to do when a run comes late or the one before has not ended. A value, with
// a form in JSON; a Scheduler carries it out.

// The job that each run of a schedule is.
struct JobTemplate {
  std::string queue = "default";  // the executor's name, or a queue with workers elsewhere
  std::string function;           // what the executor calls; empty: what it has for the queue
  std::string key;
  std::string payload;  // UTF-8
  // In the payload {name}, {planned_at}, {fired_at} and {run} stand for the schedule's name, the planned time and the
  // time of firing in RFC 3339, and the number of the run in the schedule's history; as text inside a JSON string,
  // escaped.
  bool fill_in = false;
  std::int32_t priority = 0;
  std::uint32_t max_attempts = 0;  // 0: the queue's

  friend bool operator==(const JobTemplate&, const JobTemplate&) = default;
};

// Which of several planned times that have come due together are run: after a stop, a sleep of the machine, a pause.
enum class Coalesce : std::uint8_t {
  latest,    // one run, for the latest of them
  earliest,  // one run, for the earliest of them
  all,       // a run for each, in order; of more than most_catch_up the latest
};

// The fate of a planned time that comes while max_instances runs have not ended.
enum class Overlap : std::uint8_t {
  skip,            // it is not run
  queue_one,       // it waits for one of them to end, unless another waits already
  queue_all,       // it waits for one of them to end, behind all others that wait
  cancel_running,  // the oldest are cancelled, and it runs when they have ended
};

constexpr std::string_view to_string(Coalesce value) noexcept {
  constexpr std::string_view kNames[] = {"latest", "earliest", "all"};
  return kNames[static_cast<std::size_t>(value)];
}
constexpr std::string_view to_string(Overlap value) noexcept {
  constexpr std::string_view kNames[] = {"skip", "queue_one", "queue_all", "cancel_running"};
  return kNames[static_cast<std::size_t>(value)];
}

struct Schedule {
  static constexpr std::size_t kMostNameBytes = 512;
  static constexpr std::size_t kMostPayloadBytes = 256 * 1024;
  static constexpr std::uint32_t kMostCatchUp = 1000;
  static constexpr std::uint32_t kMostInstances = 1'000'000;

  std::string name;  // unique in its store
  Trigger trigger;   // with start, end and jitter
  JobTemplate job;
  // A run that cannot begin within this time after it was due is missed. None: however late it is, it is run. It is
  // looked at when the run is put, and again when an executor of the scheduler begins it: one that comes too late then
  // is cancelled, and told of as missed.
  std::optional<Duration> misfire_grace;
  Coalesce coalesce = Coalesce::latest;
  std::uint32_t most_catch_up = 100;  // 1 to kMostCatchUp
  // Runs that have not ended, those that wait in their queue included. Runs that Coalesce::all catches up with at one
  // moment follow one another, so many at a time.
  std::uint32_t max_instances = 1;
  Overlap overlap = Overlap::skip;
  std::uint64_t max_runs = 0;  // run_now() counts too; 0: no end
  bool paused = false;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Checks that no bound is broken; else invalid_input that names the member: `max_instances "0": a whole number, 1 to
// 1000000`, or `job.queue "": 1 to 512 bytes`.
Result<void> check(const Schedule& schedule);
// Also checks that its first planned time from `now` on can be found (Trigger::search).
Result<void> check(const Schedule& schedule, WallTime now);

// {"name":"backup","trigger":{"type":"cron","expression":"0 3 * * *","zone":"Europe/Berlin"},
//  "job":{"queue":"default","function":"backup","key":"","payload":"…","fill_in":true,"priority":0,"max_attempts":0},
//  "misfire_grace":"1h","coalesce":"latest","most_catch_up":100,"max_instances":1,"overlap":"skip","max_runs":0,
//  "paused":false}
// Members that have their default are left out when written, and may be missing when read, but for name and trigger. A
// trigger may also be a string, as Trigger::parse takes it (in UTC, from the epoch); a payload that is no string is
// kept as the JSON text it is.
// Errors: invalid_input naming the member that is unknown, of the wrong type or out of range, and those that lead to
//         it: `trigger.triggers[1].hours "-1": a whole number, 0 to 350400`.
std::string to_json(const Schedule& schedule);
Result<Schedule> parse_schedule(std::string_view json);

}  // namespace argiope
