// `argiope next`: when a cron or interval expression comes next, and what daylight saving does to it.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/json_writer.hpp"
#include "argiope/schedule/timestamp.hpp"
#include "argiope/schedule/trigger.hpp"
#include "cli/commands.hpp"

namespace argiope {
namespace {

// Changes of the clocks that are looked at between two times, when skipped ones are searched for.
constexpr int kMostChanges = 1'000;

struct NextArguments {
  std::string expression;
  std::string dialect = "argiope";
  std::string zone = "UTC";
  std::string after;
  std::string dst_gap, dst_overlap, dom_dow;
  int count = 5;
  bool json = false;
};

struct Question {
  Trigger trigger;
  WallTime after;
};

Result<Question> read(const NextArguments& arguments, WallTime now) {
  const auto dialect = parse_cron_dialect(arguments.dialect);
  if (!dialect) return std::unexpected(dialect.error());
  CronOptions options = CronOptions::of(*dialect);
  const auto set = [](const std::string& text, auto& out, auto parse) -> Result<void> {
    if (text.empty()) return {};
    const auto value = parse(text);
    if (!value) return std::unexpected(value.error());
    out = *value;
    return {};
  };
  if (auto done = set(arguments.dst_gap, options.dst_gap, parse_dst_gap); !done) return std::unexpected(done.error());
  if (auto done = set(arguments.dst_overlap, options.dst_overlap, parse_dst_overlap); !done) {
    return std::unexpected(done.error());
  }
  if (auto done = set(arguments.dom_dow, options.dom_dow, parse_dom_dow); !done) return std::unexpected(done.error());
  const auto zone = TimeZone::find(arguments.zone);
  if (!zone) return std::unexpected(zone.error());
  WallTime after = now;
  if (!arguments.after.empty()) {
    const auto time = parse_timestamp(arguments.after, *zone);
    if (!time) return std::unexpected(time.error());
    after = *time;
  }
  auto trigger = Trigger::parse(arguments.expression, options, *zone, after);
  if (!trigger) return std::unexpected(std::move(trigger.error()));
  return Question{std::move(*trigger), after};
}

std::string json_line(const std::vector<WallTime>& times, const TimeZone& zone) {
  std::string out = R"({"valid":true,"next":[)";
  for (const WallTime time : times) {
    if (out.back() != '[') out += ',';
    append_json_string(out, format_timestamp(time, zone));
  }
  return out + "]}";
}

// "in 3 d 4 h", "in 12 min", "5 s ago": the two largest units that say something.
std::string distance(Duration from_now) {
  struct Unit {
    const char* name;
    std::int64_t seconds;
  };
  static constexpr Unit kUnits[] = {{"y", 31'556'952}, {"d", 86'400}, {"h", 3'600}, {"min", 60}, {"s", 1}};
  const bool past = from_now < Duration::zero();
  auto seconds = std::chrono::round<std::chrono::seconds>(past ? -from_now : from_now).count();
  std::string text;
  int parts = 0;
  for (const Unit& unit : kUnits) {
    if (seconds < unit.seconds && parts == 0) continue;
    if (parts == 2) break;
    if (const auto count = seconds / unit.seconds; count > 0)
      text += fmt::format("{}{} {}", parts > 0 ? " " : "", count, unit.name);
    seconds %= unit.seconds;
    ++parts;
  }
  if (text.empty()) return "now";
  return past ? text + " ago" : "in " + text;
}

// "02:30", and the seconds where there are any.
std::string clock_text(LocalTime local) {
  const auto time = std::chrono::hh_mm_ss{local - std::chrono::floor<std::chrono::days>(local)};
  std::string text = fmt::format("{:02}:{:02}", time.hours().count(), time.minutes().count());
  if (time.seconds().count() != 0) text += fmt::format(":{:02}", time.seconds().count());
  return text;
}

std::string weekday_text(LocalTime local) {
  static constexpr const char* kNames[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  const std::chrono::weekday weekday{std::chrono::floor<std::chrono::days>(local)};
  return kNames[weekday.c_encoding()];
}

std::string date_text(LocalTime local) {
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(local)};
  return fmt::format("{:04}-{:02}-{:02}", int{date.year()}, unsigned{date.month()}, unsigned{date.day()});
}

// What daylight saving has to do with a time of a cron expression.
class DaylightNotes {
 public:
  DaylightNotes(const CronExpression& expression, const TimeZone& zone) : expression_(expression), zone_(zone) {}

  // Why it is there at all, or there twice; empty for an ordinary time.
  std::string about(WallTime time) const {
    const LocalTime local = zone_.to_local(time);
    if (expression_.first_at_or_after(local) != local) return moved(time);
    const TimeZone::LocalInstants at = zone_.resolve(local);
    if (at.kind != TimeZone::LocalKind::overlap) return "";
    const DstOverlap policy = expression_.options().dst_overlap;
    const bool twice =
        policy == DstOverlap::both || (policy == DstOverlap::vixie && expression_.follows_elapsed_time());
    return fmt::format("the clock shows {} twice; this is the {}{}", clock_text(local),
                       time == at.first ? "first" : "second", twice ? "" : " and the only one used");
  }

  // The times skipped after `from` and before `to`, each as a line.
  std::vector<std::string> skipped(WallTime from, WallTime to) const {
    std::vector<std::string> lines;
    if (expression_.options().dst_gap != DstGap::skip) return lines;
    auto change = zone_.next_transition(from);
    for (int i = 0; change && change->at <= to && i < kMostChanges; ++i, change = zone_.next_transition(change->at)) {
      if (change->to <= change->from) continue;
      const LocalTime gap{change->at.time_since_epoch() + change->from},
          end{change->at.time_since_epoch() + change->to};
      const auto local = expression_.first_at_or_after(gap);
      if (local && *local < end) {
        lines.push_back(fmt::format("{} {} {}: skipped, the clock goes from {} to {}", weekday_text(*local),
                                    date_text(*local), clock_text(*local), clock_text(gap), clock_text(end)));
      }
    }
    return lines;
  }

 private:
  std::string moved(WallTime time) const {
    const TimeZone::Period period = zone_.period_at(time);
    const LocalTime gap{period.begin.time_since_epoch() + period.offset_before};
    const LocalTime end{period.begin.time_since_epoch() + period.offset};
    const auto planned = expression_.options().dst_gap == DstGap::shift
                             ? std::optional(LocalTime{time.time_since_epoch() + period.offset_before})
                             : expression_.first_at_or_after(gap);
    if (!planned || *planned >= end) return "";
    return fmt::format("moved from {}, which the clock leaves out: it goes from {} to {}", clock_text(*planned),
                       clock_text(gap), clock_text(end));
  }

  const CronExpression& expression_;
  const TimeZone& zone_;
};

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
      std::string line = R"({"valid":false,"error":)";
      append_json_string(line, question.error().message);
      fmt::print("{}}}\n", line);
    } else {
      fmt::print(stderr, "argiope: {}\n", question.error().message);
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
    print_table(arguments, *question, times, now);
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
  command->add_option("--dialect", arguments->dialect, "argiope, vixie, quartz, apscheduler or systemd")
      ->capture_default_str();
  command->add_option("--zone", arguments->zone, "Time zone, such as Europe/Berlin")->capture_default_str();
  command->add_option("--after", arguments->after, "Times after this one, RFC 3339, instead of now")->type_name("TIME");
  command->add_option("--count", arguments->count, "How many times")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--dst-gap", arguments->dst_gap,
                   "A time that the clock leaves out in spring: next (runs at the first instant after it),\n"
                   "shift (runs as much later as the clock jumps) or skip")
      ->type_name("POLICY");
  command
      ->add_option("--dst-overlap", arguments->dst_overlap,
                   "A time that the clock shows twice in autumn: vixie (fixed times run the first time,\n"
                   "those with *, - or / both times), first, second or both")
      ->type_name("POLICY");
  command
      ->add_option("--dom-dow", arguments->dom_dow,
                   "When day-of-month and day-of-week are both restricted: and, or (one is enough)")
      ->type_name("RULE");
  command->add_flag("--json", arguments->json,
                    "One line: {\"valid\":true,\"next\":[…]} or, with exit status 2, {\"valid\":false,\"error\":…}");
  return [arguments] { return run_next(*arguments); };
}

}  // namespace argiope
