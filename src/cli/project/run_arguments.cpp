#include "cli/project/run_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/internal/printable.hpp"
#include "cli/number_option.hpp"
#include "cli/span_option.hpp"

namespace argiope {
namespace {

constexpr Duration kLongestQuestion = std::chrono::seconds{30};

}  // namespace

// One option, two lines: no formatter sees that.
// clang-format off
void ProjectRunArguments::add_to(CLI::App& command) {
  command.add_option("FILE", files, "The projects, in TOML; none: all that the database has")->type_name("");

  const char* const store_group = "The database and its results";
  command.add_option("-d,--db,--database", database, "SQLite database of the projects, their pages and results; \":memory:\" keeps nothing")
      ->group(store_group)->type_name("FILE")->capture_default_str();
  command.add_option("--sync", sync, "How carefully it is written: full survives a power cut, normal survives a crash")
      ->check(CLI::IsMember({"full", "normal", "off"}))->group(store_group)->capture_default_str();
  command.add_option("--results", results, "At the end, write all results of the project to FILE.csv, FILE.json or FILE.jsonl; \"-\": JSON Lines to standard output")
      ->group(store_group)->type_name("FILE");

  const char* const run_group = "The run";
  command.add_flag("--once", once, "One round: start each project, and end when nothing that this led to is left (default: go on until Ctrl-C)")
      ->group(run_group);
  add_span_with_default(command, "--retry-wait", retry_wait, "With --once: end, too, when all that is left waits longer than this, as after failures; the next run goes on")
      ->group(run_group);
  command.add_flag("--quiet", quiet, "No progress and no report; errors only")->group(run_group);
  command.add_option("--summary", summary, "Last line on standard output: the results as one JSON object")
      ->check(CLI::IsMember({"json"}))->group(run_group)->type_name("json");
  command.add_flag("-D,--debug", debug, "Also what scripts log for debugging")->group(run_group);

  const char* const script_group = "Scripts (docs/processors.md)";
  command.add_option("--sandbox", sandbox, "How a project's script is confined: strict (no network, its own folder to read and nothing to write), basic (bounds), none")
      ->check(CLI::IsMember({"strict", "basic", "none"}))->group(script_group)->capture_default_str();
  command.add_option("--workers", workers, "Processes of each script, at most")
      ->check(whole_number(1, 256))->group(script_group)->type_name("N")->capture_default_str();

  const char* const pace_group = "How fast, beside the projects' own rates";
  command.add_option("-c,--concurrency", concurrency, "Visits under way in all")
      ->check(whole_number(1, 100'000))->group(pace_group)->type_name("N")->capture_default_str();
  requests.add_pace_to(command, pace_group);

  const char* const request_group = "Each request";
  requests.add_robots_to(command, request_group);
  requests.add_to(command, request_group);
  wire.add_to(command, request_group, pace_group);
  command.remove_option(command.get_option("--quota"));
  hosts.add_to(command, run_group, pace_group);
  (void)render.add_browser_to(command, kRenderGroup);
  command.footer(
      "Each FILE becomes a project of the database, or a new version of it where file or script have changed. Without --once a project\n"
      "that never ran starts at once, and again by its `every` or `schedule`; what is under way goes on. Ctrl-C stops within 10 s,\n"
      "twice stops at once; nothing is lost either way. Private addresses are asked only where a project's `start` names one.\n"
      "Exit status: 0 finished, 1 pages failed for good or wait to be tried again, an alarm was raised or a script cannot run,\n"
      "2 bad usage, 3 the database cannot be used, 130 interrupted.\n"
      "Example: argiope project run shop.toml --once --results prices.csv");
}
// clang-format on

Result<void> ProjectRunArguments::check() const {
  if (results.empty()) return {};
  if (files.size() != 1)
    return fail(Errc::invalid_input,
                "--results: give one project's FILE; argiope project results writes those of others");
  const auto ends = [&](std::string_view suffix) { return results.ends_with(suffix); };
  if (results != "-" && !ends(".csv") && !ends(".json") && !ends(".jsonl")) {
    return fail(Errc::invalid_input,
                fmt::format("--results {}: the name must end with .csv, .json or .jsonl, or be -", in_quotes(results)));
  }
  if (results == "-" && summary == "json") {
    return fail(Errc::invalid_input, "--summary json: results go to standard output; --results names a file for them");
  }
  return {};
}

void ProjectRunArguments::name_files(CommandFiles& into) const {
  for (const std::string& file : files) into.reads("FILE", file);
  into.reads("--config", hosts.file);
  requests.name_files(into);
  wire.name_files(into);
  into.keeps_database("--db", database);
  into.writes("--results", results);
}

Result<void> ProjectRunArguments::apply(CrawlOptions& options, CrawlSetup& setup,
                                        const ProxySettings::Variable& environment) const {
  if (auto applied = requests.apply(options); !applied) return applied;
  requests.apply(setup);
  if (auto applied = wire.apply(options, setup, environment); !applied) return applied;
  hosts.apply(options);
  options.concurrency = concurrency;
  if (const auto browser = render.browser_options(options.user_agent);
      !browser && browser.error().code == Errc::invalid_input) {
    return std::unexpected(browser.error());
  }
  // Of robots.txt and the like; pages may take `requests.timeout`.
  options.timeout = std::min(options.timeout, kLongestQuestion);
  return {};
}

}  // namespace argiope
