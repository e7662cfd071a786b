// Schedule: when to put which job, and what to do when a run comes late or the one before has not ended. A value, with
// a form in JSON; a Scheduler carries it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/jobs/job_record.hpp"
#include "argiope/time/trigger.hpp"

namespace argiope {

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
