// Configuration: what a TOML file says of a daemon, of queues, schedules and a simulation of them
// (docs/configuration.md). One format for all who read one: `argiope serve` and `argiope simulate`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/base/random.hpp"
#include "argiope/calls/calls.hpp"
#include "argiope/jobs/job_queue.hpp"
#include "argiope/jobs/schedule.hpp"
#include "base/internal/file_reading.hpp"
#include "config/internal/crawl_file.hpp"
#include "serve/internal/serve_options.hpp"
#include "serve/notify/internal/notify_rule.hpp"

namespace argiope {

struct ConfiguredQueue {
  static constexpr std::size_t kMostWorkers = 100'000;

  std::string name;
  std::string line;  // where the file names it: `argiope.toml:4`
  QueueConfig config;
  // Jobs of it that this process works on at once; 0: others work it off.
  std::size_t workers = 16;
  bool says_workers = false;  // the file says how many
  // The command that the daemon runs for its jobs; neither: it waits for workers.
  std::optional<CommandOptions> command;
  std::optional<HttpPush> push;
  std::string target_text;   // the same as the file says it: equal texts are equal targets
  std::string target_place;  // where the file says it, for errors: `argiope.toml:4: queue "mail"`
};

// How long jobs take that are only simulated.
struct SimulatedDuration {
  enum class Kind : std::uint8_t {
    listed,       // `values` in turn, from the first again after the last
    uniform,      // from `low` to `high`
    normal,       // around `low` with standard deviation `high`; never below zero
    exponential,  // with mean `low`
  };
  Kind kind = Kind::listed;
  std::vector<Duration> values{std::chrono::seconds{1}};
  Duration low{}, high{};

  // That of the `number`th job, from 0; what is drawn is drawn from `random`.
  Duration draw(std::uint64_t number, Random& random) const;
};

// The behaviour of jobs in a simulation: those of one schedule, queue or function, or of several of them together.
struct SimulatedJobs {
  std::optional<std::string> schedule, queue, function;
  SimulatedDuration duration;
  double failures = 0;                 // the share of attempts that fail
  std::vector<std::uint64_t> failing;  // or which of them, from 1 and ascending
};

struct SimulationConfig {
  std::uint64_t seed = 0;
  std::vector<SimulatedJobs> jobs;  // the first that fits a job counts
  SimulatedJobs others;             // what no other fits: a second, without failures, unless the file says otherwise
  bool others_given = false;
};

// A project whose file decides what it is.
struct ConfiguredProject {
  std::string file;
  std::string text;  // what is in it, once it has been read: equal texts are equal projects
};

// How a daemon visits the pages of its projects: options of `argiope project run`, which only the command knows, and
// settings of hosts.
struct ConfiguredVisits {
  std::vector<CrawlFileOption> options;
  std::vector<HostSettings> hosts;
  std::string text;  // all of it, as JSON: equal texts say the same
};

struct Configuration {
  ServeOptions serve;
  std::vector<ConfiguredQueue> queues;
  std::vector<Schedule> schedules;
  std::vector<std::string> schedule_lines;  // as ConfiguredQueue::line, for each of them
  // Where the file says what each of them puts: `argiope.toml:4: schedule "ping"`.
  std::vector<std::string> schedule_places;
  std::vector<NotifyRule> notify;
  std::vector<std::string> notify_places;  // as ConfiguredQueue::target_place, for each of them
  std::vector<ConfiguredProject> projects;
  ConfiguredVisits visits;
  SimulationConfig simulation;
  bool simulates = false;  // the file has a [simulate]
};

inline constexpr std::size_t kMostConfigurationBytes = 64 * 1024 * 1024;

// Strict: what is unknown, of the wrong type or out of range is an error, as is a name that comes twice.
// Errors: invalid_input, too_large; `name:LINE: schedule "backup": minute "61": 0 to 59`, one line. read_configuration
// also those of read_file_text(), naming the file.
Result<Configuration> parse_configuration(std::string_view text, std::string_view name);
Result<Configuration> read_configuration(const std::string& path, FileReading reading = FileReading::first);

// Whether the machine has what the targets of queues and notifications need, as a daemon's start looks for it: a
// command's program.
// Errors: invalid_input, naming file, line and member.
Result<void> check_targets(const Configuration& configuration);
// Whether the calls that schedules put into queues can be run there. `executes`: whether the daemon runs what jobs of
// that queue name.
// Errors: invalid_input, naming file, line and member.
Result<void> check_calls(const Configuration& configuration,
                         const std::function<bool(std::string_view queue)>& executes);
// The schedules whose command or request nobody runs, each with its place: their queue has no target and no workers,
// and the file does not say `workers = 0` either, which is that others run it. `executes`: as above.
std::vector<std::string> calls_without_workers(const Configuration& configuration,
                                               const std::function<bool(std::string_view queue)>& executes);
// Pushes that need `allow_private`: URLs with private addresses, each with its place. Names are not looked up.
std::vector<std::string> private_pushes(const Configuration& configuration);
// The same of the requests of schedules, which need that of [serve].
std::vector<std::string> private_calls(const Configuration& configuration);

}  // namespace argiope
