// `argiope simulate`: what the schedules and queues of a configuration will do, found out by letting them do it in
// virtual time.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/time/time_zone.hpp"
#include "base/internal/output_file.hpp"
#include "base/internal/printable.hpp"
#include "cli/command_files.hpp"
#include "cli/commands.hpp"
#include "cli/file_kind.hpp"
#include "cli/human.hpp"
#include "cli/job_store.hpp"
#include "cli/live_line.hpp"
#include "cli/number_option.hpp"
#include "cli/simulate/text_report.hpp"
#include "config/internal/configuration.hpp"
#include "serve/base/internal/own_queues.hpp"
#include "simulate/internal/simulation.hpp"
#include "store/internal/store_url.hpp"

namespace argiope {
namespace {

constexpr Duration kShortest = std::chrono::seconds{1};
constexpr Duration kLongest = std::chrono::days{366 * 50};

struct SimulateArguments {
  std::string file;
  JobStoreArguments store;
  std::string from, span = "30d", zone = "UTC";
  std::string html;
  std::optional<std::uint64_t> seed;
  std::uint64_t most_jobs = SimulationOptions{}.most_jobs;
  bool json = false;
  bool quiet = false;
};

// How far it is, on standard error. The library's log meanwhile is of times that are not now, and in the report.
class SimulationProgress {
 public:
  SimulationProgress(const SimulationOptions& options, bool quiet)
      : options_(options), quiet_(quiet), started_(clock_.now()), shown_at_(started_) {
    spdlog::set_level(spdlog::level::err);
  }
  ~SimulationProgress() { spdlog::set_level(spdlog::level::info); }
  SimulationProgress(const SimulationProgress&) = delete;

  void show(WallTime now, std::uint64_t runs) {
    const TimePoint present = clock_.now();
    if (quiet_ || present - shown_at_ < line_.interval()) return;
    shown_at_ = present;
    const double share = to_seconds(now - options_.from) / to_seconds(options_.span);
    spdlog::set_level(spdlog::level::info);
    line_.show(fmt::format("{}  {:.0f}%  {} runs  {}", format_timestamp(now, options_.zone), 100 * share, runs,
                           human_duration(elapsed())));
    spdlog::set_level(spdlog::level::err);
  }
  void end(std::uint64_t runs) {
    line_.clear();
    if (quiet_) return;
    fmt::print(stderr, "Simulated in {}, {:.0f} runs a second.\n", human_duration(elapsed()),
               static_cast<double>(runs) / std::max(elapsed(), 1e-3));
  }

 private:
  double elapsed() const { return to_seconds(clock_.now() - started_); }

  const SimulationOptions& options_;
  const SystemClock clock_;
  const bool quiet_;
  const TimePoint started_;
  TimePoint shown_at_;
  LiveLine line_{stderr};
};

int complain_of(const Error& error, int status) {
  fmt::print(stderr, "argiope: {}\n", printable(error.message));
  return status;
}

Result<SimulationOptions> options_of(const SimulateArguments& arguments) {
  SimulationOptions options;
  options.most_jobs = arguments.most_jobs;
  auto zone = TimeZone::find(arguments.zone);
  if (!zone) return std::unexpected(std::move(zone.error()));
  options.zone = *zone;
  options.from = std::chrono::floor<std::chrono::seconds>(SystemClock().wall_now());
  if (!arguments.from.empty()) {
    auto from = parse_timestamp(arguments.from, *zone);
    if (!from) return fail(from.error().code, "--from: " + from.error().message);
    options.from = *from;
  }
  auto span = parse_duration(arguments.span);
  if (!span) return fail(span.error().code, "--for: " + span.error().message);
  if (*span < kShortest || *span > kLongest || options.from < WallTime{} ||
      options.from > WallTime::max() - 2 * kLongest) {
    return fail(Errc::invalid_input, fmt::format("--for {}: 1s to 50 years, and nothing before 1970 or after 2160",
                                                 in_quotes(arguments.span)));
  }
  options.span = *span;
  return options;
}

// The queues and schedules of a store, without the daemon's own queues. Schedules that are paused, or cannot be read,
// fire nothing.
Coro<Result<int>> take_from(Book& book, Configuration& into) {
  for (StoredQueue& queue : co_await or_return(book.queues())) {
    if (is_own_queue(queue.name)) continue;
    into.queues.push_back({.name = std::move(queue.name), .config = std::move(queue.config)});
  }
  for (ScheduleId after = 0;;) {
    auto page = co_await or_return(book.schedules().list(after, kListPage));
    if (page.empty()) co_return kExitFinished;
    after = page.back().id;
    for (ScheduleStatus& status : page) {
      if (status.schedule && !status.place.paused) into.schedules.push_back(std::move(*status.schedule));
    }
  }
}

// The configuration to simulate, and how long its jobs take. nullopt: the reason is told; `status` is the command's.
std::optional<Configuration> configuration_of(const SimulateArguments& arguments, int& status) {
  const bool of_store = !arguments.store.store.empty();
  status = kExitUsage;
  Result<Configuration> read = Configuration{};
  if (!arguments.file.empty())
    read = or_other_kind(read_configuration(arguments.file), arguments.file, FileKind::configuration);
  if (!read) return complain_of(read.error(), status), std::nullopt;
  if (of_store) {
    read->queues.clear();
    read->schedules.clear();
    status = look_at_book(arguments.store, [&](Book& book) { return take_from(book, *read); });
    if (status != kExitFinished) return std::nullopt;
  }
  if (!read->schedules.empty()) return std::move(*read);
  const std::string why = of_store                 ? "the store has no schedule that fires, nothing to simulate"
                          : arguments.file.empty() ? "which configuration? Name its FILE, or a --store"
                                                   : arguments.file + ": no [[schedule]], nothing to simulate";
  status = complain_of({Errc::invalid_input, why}, kExitUsage);
  return std::nullopt;
}

CommandFiles files_of(const SimulateArguments& arguments) {
  CommandFiles files;
  files.reads("FILE", arguments.file);
  if (!arguments.store.store.empty()) files.reads_database("--store", arguments.store.file());
  files.writes("--html", arguments.html);
  return files;
}

int run_simulate(const SimulateArguments& arguments) {
  auto options = options_of(arguments);
  if (!options) return complain_of(options.error(), kExitUsage);
  if (auto good = files_of(arguments).check(); !good) return complain_of(good.error(), kExitUsage);
  int status = kExitFinished;
  auto configuration = configuration_of(arguments, status);
  if (!configuration) return status;
  if (arguments.seed) configuration->simulation.seed = *arguments.seed;
  SimulationProgress progress(*options, arguments.quiet);
  options->progress = [&](WallTime now, std::uint64_t runs) { progress.show(now, runs); };
  const auto report = simulate(*configuration, *options);
  if (!report) return complain_of(report.error(), kExitNothing);
  progress.end(report->runs);
  if (!arguments.html.empty()) {
    OutputFile html("--html", arguments.html);
    html.write(html_report(*report, arguments.file.empty() ? shown_store(arguments.store.store) : arguments.file));
    if (auto written = html.finish(); !written) return complain_of(written.error(), kExitNothing);
  }
  fmt::print("{}{}", arguments.json ? json_report(*report) : text_report(*report), arguments.json ? "\n" : "");
  return kExitFinished;
}

}  // namespace

std::function<int()> add_simulate_command(CLI::App& app) {
  auto arguments = std::make_shared<SimulateArguments>();
  CLI::App* command = app.add_subcommand(
      "simulate", "Run a configuration in virtual time: what fires when, what waits, what piles up, what never runs");
  command->add_option("FILE", arguments->file, "The configuration, TOML: its queues, schedules and how long jobs take");
  command
      ->add_option(
          "--store", arguments->store.store,
          "Instead of the file's, the queues and schedules of a store: sqlite:FILE, or a daemon, http://HOST:7733")
      ->type_name("STORE");
  command->add_option("--from", arguments->from, "When it begins, RFC 3339; instead of now")->type_name("TIME");
  command->add_option("--for", arguments->span, "How long it goes on, such as 12h or 1w3d: w, d, h, m (minutes), s, ms")
      ->type_name("SPAN")
      ->capture_default_str();
  command->add_option("--zone", arguments->zone, "Time zone of --from, and of times that belong to no schedule")
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "Seed of everything random, instead of the file's")
      ->check(whole_number(0))
      ->type_name("N");
  command->add_option("--most-jobs", arguments->most_jobs, "End early when more jobs than this wait or run")
      ->check(whole_number(1, 100'000'000))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "The report as one JSON object");
  command->add_option("--html", arguments->html, "Write the report with plots to this file as well")->type_name("FILE");
  command->add_flag("--quiet", arguments->quiet, "No progress");
  command->footer(
      "Nothing is sent and nothing is stored. Only the jobs are simulated; schedules, limits and retries do what they\n"
      "will do. The same file, times and seed give the same report. Of a store, its schedules begin anew, those that "
      "are\n"
      "paused do not fire, and jobs that wait there are not looked at; a FILE says how long jobs take.\n"
      "Example: argiope simulate argiope.toml --from 2026-03-01 --for 60d --html report.html");
  return [arguments] { return run_simulate(*arguments); };
}

}  // namespace argiope
