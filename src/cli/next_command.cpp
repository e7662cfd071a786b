// `argiope next`: when a cron or interval expression comes next, and what daylight saving does to it.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/time/time_zone.hpp"
#include "argiope/time/trigger.hpp"
#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "cli/commands.hpp"
#include "cli/cron_arguments.hpp"
#include "cli/number_option.hpp"
#include "time/internal/daylight_notes.hpp"

namespace argiope {
namespace {

struct NextArguments {
  std::string expression;
  CronArguments cron;
  std::string after;
  int count = 5;
  bool json = false;
};

struct Question {
  Trigger trigger;
  WallTime after;
};

Result<Question> read(const NextArguments& arguments, WallTime now) {
  const auto options = arguments.cron.options();
  if (!options) return std::unexpected(options.error());
  const auto zone = arguments.cron.zone();
  if (!zone) return std::unexpected(zone.error());
  WallTime after = now;
  if (!arguments.after.empty()) {
    const auto time = parse_timestamp(arguments.after, *zone);
    if (!time) return std::unexpected(time.error());
    after = *time;
  }
  auto trigger = Trigger::parse(arguments.expression, *options, *zone, after);
  if (!trigger) return std::unexpected(std::move(trigger.error()));
  return Question{std::move(*trigger), after};
}

std::string json_line(const std::vector<WallTime>& times, const TimeZone& zone) {
  return json_object([&](JsonWriter& json) {
    json.member("valid", true);
    json.array("next", [&] {
      for (const WallTime time : times) json.value(format_timestamp(time, zone));
    });
  });
}

void print_table(const NextArguments& arguments, const Question& question, const std::vector<WallTime>& times,
                 WallTime now) {
  const Trigger& trigger = question.trigger;
  const TimeZone& zone = trigger.zone();
  std::optional<DaylightNotes> notes;
  if (trigger.cron_expression() != nullptr) notes.emplace(*trigger.cron_expression(), zone);
  WallTime before = question.after;
  for (const WallTime time : times) {
    const LocalTime local = zone.to_local(time);
    if (notes) {
      for (const std::string& line : notes->skipped(before, time)) fmt::print("{}\n", line);
    }
    std::string row = fmt::format("{} {} {:<6} {}", weekday_text(local), format_timestamp(time, zone),
                                  zone.abbreviation_at(time), distance(time - now));
    if (const std::string note = notes ? notes->about(time) : ""; !note.empty()) row += "  (" + note + ")";
    fmt::print("{}\n", row);
    before = time;
  }
  if (static_cast<int>(times.size()) == arguments.count) return;
  if (const auto undecided = why_undecided(trigger.search(times.empty() ? question.after : times.back()))) {
    fmt::print("{}\n", *undecided);
    return;
  }
  const bool impossible = trigger.cron_expression() != nullptr && trigger.cron_expression()->never();
  fmt::print("{}\n", impossible      ? "never: there is no such date until 2199"
                     : times.empty() ? "never again"
                                     : "no more after that");
}

int run_next(const NextArguments& arguments) {
  const SystemClock clock;
  const WallTime now = clock.wall_now();
  const auto question = read(arguments, now);
  if (!question) {
    if (arguments.json) {
      fmt::print("{}\n", json_object([&](JsonWriter& json) {
                   json.member("valid", false);
                   json.member("error", question.error().message);
                 }));
    } else {
      fmt::print(stderr, "argiope: {}\n", printable(question.error().message));
    }
    return kExitUsage;
  }
  std::vector<WallTime> times;
  WallTime at = question->after;
  while (static_cast<int>(times.size()) < arguments.count) {
    const auto next = question->trigger.next(at);
    if (!next) break;
    times.push_back(at = *next);
  }
  if (arguments.json) {
    fmt::print("{}\n", json_line(times, question->trigger.zone()));
  } else {
    print_table(arguments, *question, times, question->after);
  }
  return kExitFinished;
}

}  // namespace

std::function<int()> add_next_command(CLI::App& app) {
  auto arguments = std::make_shared<NextArguments>();
  CLI::App* command = app.add_subcommand(
      "next", "Show when a cron or interval expression comes next, and what daylight saving does to it.");
  command
      ->add_option("EXPR", arguments->expression,
                   "\"30 5 * * mon-fri\", \"@daily\", \"@every 90s\", another dialect's expression,\n"
                   "or a trigger as JSON")
      ->required();
  arguments->cron.add_to(*command);
  command->add_option("--after", arguments->after, "Times after this one, RFC 3339, instead of now")->type_name("TIME");
  command->add_option("--count", arguments->count, "How many times")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--json", arguments->json,
                    "One line: {\"valid\":true,\"next\":[…]} or, with exit status 2, {\"valid\":false,\"error\":…}");
  return [arguments] { return run_next(*arguments); };
}

}  // namespace argiope
