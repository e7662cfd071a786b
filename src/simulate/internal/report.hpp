// The findings of a simulation: values only. simulation.cpp fills them in; json_report.cpp, html_report.cpp and
// the command show them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/time/time_zone.hpp"

namespace argiope {

// How late things were, in a few numbers: percentiles to within 1 %, the maximum exactly.
class Lateness {
 public:
  void add(Duration late);
  std::uint64_t count() const noexcept { return count_; }
  Duration percentile(double share) const;
  Duration max() const noexcept { return max_; }

 private:
  std::map<std::uint32_t, std::uint64_t> buckets_;  // 128 for each power of two; most are empty
  std::uint64_t count_ = 0;
  Duration max_{};
};

struct ScheduleFindings {
  std::string name;
  std::string trigger;  // to show
  std::string queue;
  TimeZone zone;
  std::uint64_t runs = 0;    // put into the queue
  std::uint64_t done = 0;    // of them, within the time simulated
  std::uint64_t failed = 0;  // buried after their last attempt
  std::uint64_t cancelled = 0;
  std::uint64_t retries = 0;
  std::uint64_t missed = 0;                   // planned times, at least
  std::uint64_t skipped = 0;                  // for as many runs as it may have had not ended
  std::uint64_t waiting = 0;                  // runs that had not begun when the simulation ended
  std::uint64_t together = 0;                 // runs begun in the same second as one of another schedule
  std::optional<WallTime> first, last, next;  // planned; `next` comes after the end
  std::string why;                            // it has not run, or does not run now for another reason than the time
  Lateness lateness;                          // from due to begun
  std::int64_t most_running = 0;
  std::vector<std::uint32_t>
      fires;  // in each `strip_steps` steps of the time line; empty for those beyond the first 500
};

// A number over one step of the time line.
struct Level {
  double mean = 0;
  std::int64_t most = 0;
  std::int64_t least = 0;
};

enum class Trend : std::uint8_t {
  keeps_up,
  never_empty,  // something waits at any time in the second half
  piles_up,     // and it becomes more
  not_worked,   // none of it has begun: no workers, paused, or a rate of 0
};

struct QueueFindings {
  std::string name;
  bool configured = false;  // the file has a [[queue]] of it
  std::size_t workers = 0;
  std::uint64_t put = 0, done = 0, failed = 0, cancelled = 0, retries = 0;
  std::uint64_t refused = 0;  // times a schedule found it full, or its job was refused otherwise
  std::int64_t most_running = 0;
  double mean_running = 0;
  std::int64_t most_waiting = 0;
  std::optional<WallTime> most_waiting_at;
  std::int64_t waiting = 0;          // at the end
  std::optional<WallTime> empty_at;  // since when nothing of it waited, for the first time
  Trend trend = Trend::keeps_up;
  double growth_per_day = 0;  // of what waits, fitted to the second half
  std::vector<Level> depth;   // what waits, for each step
  Lateness lateness;          // from due to begun
};

struct Peak {
  std::uint64_t most = 0;
  std::optional<WallTime> at;  // the first time
};

struct Collision {
  std::vector<std::uint32_t> schedules;  // by their numbers in the report
  std::uint64_t seconds = 0;             // in which all of them, and no others, began a run
  WallTime first{};
};

// A time of a schedule that a change of the clocks leaves out or repeats.
struct DaylightSurprise {
  std::string schedule;
  TimeZone zone;
  WallTime change{};
  bool gap = false;           // else the clock is set back
  std::uint64_t times = 0;    // how many of its local times lie in what is left out or repeated; counted up to 10,000
  LocalTime first{}, last{};  // of them
  std::string policy;         // `next`, `both` …
  std::string effect;         // a sentence
};

struct SimulationReport {
  WallTime from{}, until{};
  std::uint64_t seed = 0;
  std::string stopped;               // why it ended before `until`; empty: it did not
  TimeZone zone;                     // to show times in that are no schedule's
  Duration step{};                   // of the time line
  std::vector<std::uint64_t> fires;  // in each step
  std::vector<Level> running;        // at once
  std::size_t strip_steps = 1;
  std::uint64_t runs = 0, done = 0, failed = 0, cancelled = 0, retries = 0, missed = 0, skipped = 0;
  Peak at_once, in_a_second, in_a_minute, in_an_hour;
  std::vector<ScheduleFindings> schedules;  // in the order of the file
  std::vector<QueueFindings> queues;        // by name
  std::uint64_t seconds_shared = 0;         // in which several schedules began a run
  std::vector<Collision> collisions;        // the most frequent ones
  std::vector<DaylightSurprise> daylight;   // by time
  std::vector<std::string> assumed;         // schedules of whose jobs the file does not say how long they take
};

std::string_view to_string(Trend trend) noexcept;

// One object in one line.
std::string json_report(const SimulationReport& report);
// One file that needs no other.
std::string html_report(const SimulationReport& report, const std::string& title);

}  // namespace argiope
