// Triggers as JSON, both ways. A member that has its default is left out when written, and unknown ones are refused
// when read, so that a misspelt policy is not a policy silently lost.
#include "time/internal/trigger_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "argiope/time/time_zone.hpp"
#include "base/internal/field_error.hpp"
#include "base/internal/json_members.hpp"
#include "base/internal/json_writer.hpp"
#include "time/calendar.hpp"
#include "time/cron_parser.hpp"
#include "time/trigger_rule.hpp"

namespace argiope {
namespace {

using namespace detail;

constexpr int kMostNesting = 8;
constexpr std::string_view kLayouts[] = {"five", "six", "optional", "quartz", "year_last", "second_last"};
constexpr std::string_view kWeekdays[] = {"sunday_0", "sunday_0_or_7", "sunday_1", "monday_0"};
constexpr std::string_view kQuestionMarks[] = {"in_days", "anywhere", "never"};
constexpr std::string_view kStepLimits[] = {"field", "range", "none"};

template <class Value, std::size_t N>
void write_choice(JsonWriter& out, std::string_view name, Value value, Value usual,
                  const std::string_view (&names)[N]) {
  if (value != usual) out.member(name, names[static_cast<std::size_t>(value)]);
}

void write_flag(JsonWriter& out, std::string_view name, bool value, bool usual) {
  if (value != usual) out.member(name, value);
}

void write_options(JsonWriter& out, const CronOptions& options) {
  const CronOptions usual = CronOptions::of(options.dialect);
  if (options.dialect != CronDialect::argiope) out.member("dialect", to_string(options.dialect));
  if (options.dom_dow != usual.dom_dow) out.member("dom_dow", to_string(options.dom_dow));
  if (options.dst_gap != usual.dst_gap) out.member("dst_gap", to_string(options.dst_gap));
  if (options.dst_overlap != usual.dst_overlap) out.member("dst_overlap", to_string(options.dst_overlap));
  write_choice(out, "layout", options.layout, usual.layout, kLayouts);
  write_choice(out, "weekday_numbers", options.weekday_numbers, usual.weekday_numbers, kWeekdays);
  write_choice(out, "question_mark", options.question_mark, usual.question_mark, kQuestionMarks);
  write_choice(out, "step_limit", options.step_limit, usual.step_limit, kStepLimits);
  write_flag(out, "wrap_ranges", options.wrap_ranges, usual.wrap_ranges);
  write_flag(out, "day_rules", options.day_rules, usual.day_rules);
  write_flag(out, "upper_case_names", options.upper_case_names, usual.upper_case_names);
  write_flag(out, "refuse_never", options.refuse_never, usual.refuse_never);
}

void write_members(JsonWriter& out, const DateRule& rule) {
  out.member("type", "date");
  out.member("time", format_timestamp(rule.time));
}

void write_members(JsonWriter& out, const IntervalRule& rule) {
  out.member("type", "interval");
  out.member("every", format_duration(rule.interval));
  out.member("anchor", format_timestamp(rule.anchor));
}

void write_members(JsonWriter& out, const CalendarRule& rule) {
  const CalendarInterval& interval = rule.interval;
  out.member("type", "calendar");
  const auto number = [&](std::string_view name, int value) {
    if (value != 0) out.member(name, value);
  };
  number("years", interval.years);
  number("months", interval.months);
  number("weeks", interval.weeks);
  number("days", interval.days);
  number("hour", interval.hour);
  number("minute", interval.minute);
  number("second", interval.second);
  out.member("start_date", fmt::format("{:04}-{:02}-{:02}", int{interval.start.year()},
                                       unsigned{interval.start.month()}, unsigned{interval.start.day()}));
  out.member("zone", interval.zone.name());
  if (interval.dst_gap != DstGap::next) out.member("dst_gap", to_string(interval.dst_gap));
  if (interval.dst_overlap != DstOverlap::vixie) out.member("dst_overlap", to_string(interval.dst_overlap));
}

void write_members(JsonWriter& out, const CronRule& rule) {
  out.member("type", "cron");
  out.member("expression", rule.expression.text());
  out.member("zone", rule.given_zone.name());
  write_options(out, rule.expression.options());
}

void write_parts(JsonWriter& out, const std::vector<Trigger>& parts) {
  out.array("triggers", [&] {
    for (const Trigger& part : parts) out.raw(part.to_json());
  });
}

void write_members(JsonWriter& out, const AllRule& rule) {
  out.member("type", "and");
  write_parts(out, rule.parts);
  if (rule.threshold != std::chrono::seconds{1}) out.member("threshold", format_duration(rule.threshold));
}

void write_members(JsonWriter& out, const AnyRule& rule) {
  out.member("type", "or");
  write_parts(out, rule.parts);
}

// The outcome of a form: a trigger, or why there is none, and the member that is to blame; null: the form.
struct Made {
  Result<Trigger> trigger;
  const JsonValue* blamed = nullptr;
};

CronOptions read_options(JsonMembers& in) {
  CronDialect dialect = CronDialect::argiope;
  in.parsed("dialect", dialect, parse_cron_dialect);
  CronOptions options = CronOptions::of(dialect);
  in.parsed("dom_dow", options.dom_dow, parse_dom_dow);
  in.parsed("dst_gap", options.dst_gap, parse_dst_gap);
  in.parsed("dst_overlap", options.dst_overlap, parse_dst_overlap);
  in.choice("layout", options.layout, kLayouts);
  in.choice("weekday_numbers", options.weekday_numbers, kWeekdays);
  in.choice("question_mark", options.question_mark, kQuestionMarks);
  in.choice("step_limit", options.step_limit, kStepLimits);
  options.wrap_ranges = in.flag("wrap_ranges", options.wrap_ranges);
  options.day_rules = in.flag("day_rules", options.day_rules);
  options.upper_case_names = in.flag("upper_case_names", options.upper_case_names);
  options.refuse_never = in.flag("refuse_never", options.refuse_never);
  return options;
}

Made read_date(JsonMembers& in, const TimeZone& zone) {
  WallTime at{};
  in.parsed("time", at, [&](const std::string& text) { return parse_timestamp(text, zone); });
  if (!in.has("time")) return {fail(Errc::invalid_input, "date: a time")};
  return {Trigger::at(at)};
}

Made read_cron(JsonMembers& in, const TimeZone& zone) {
  const CronOptions options = read_options(in);
  Result<CronExpression> expression = fail(Errc::invalid_input, "cron: an expression, or fields");
  const JsonValue* given = in.find("fields");
  if (given != nullptr) {
    if (!given->is_object()) {
      in.find("expression");  // what is wrong comes first, not that both are there
      return {fail(Errc::invalid_input, "cron: fields are an object"), given};
    }
    CronFields fields;
    given->for_each_name(
        [&](std::string_view name, const JsonValue& value) { fields.emplace_back(name, value.shown()); });
    expression =
        CronExpression::from_fields(fields, in.has("dialect") ? options : CronOptions::of(CronDialect::apscheduler));
  } else if (given = in.find("expression"); given != nullptr) {
    expression = CronExpression::parse(in.text("expression"), options);
  }
  if (!expression) return {std::unexpected(std::move(expression.error())), given};
  return {Trigger::cron(std::move(*expression), zone)};
}

Made read_interval(JsonMembers& in, const TimeZone& zone) {
  Duration interval{};
  in.parsed("every", interval, parse_duration);
  const JsonValue* const every = in.find("every");
  struct Unit {
    std::string_view name;
    Duration length;
  };
  constexpr Unit kUnits[] = {{"weeks", std::chrono::weeks{1}},     {"days", std::chrono::days{1}},
                             {"hours", std::chrono::hours{1}},     {"minutes", std::chrono::minutes{1}},
                             {"seconds", std::chrono::seconds{1}}, {"milliseconds", std::chrono::milliseconds{1}}};
  for (const auto& [name, length] : kUnits) {
    if (every != nullptr && in.has(name)) in.find(name)->refuse_name("the interval has an `every` already");
    const Duration part = in.whole(name, std::chrono::days{14'600} / length) * length;
    interval += std::min(part, Duration::max() - interval);
  }
  const auto time = [&](const std::string& text) { return parse_timestamp(text, zone); };
  WallTime anchor{};
  in.parsed("start", anchor, time);
  in.parsed("anchor", anchor, time);
  return {Trigger::every(interval, anchor), every};
}

Made read_calendar(JsonMembers& in, const TimeZone& zone) {
  CalendarInterval interval{.zone = zone};
  const auto number = [&](std::string_view name, std::int64_t most) { return static_cast<int>(in.whole(name, most)); };
  interval.years = number("years", 1'000'000);
  interval.months = number("months", 1'000'000);
  interval.weeks = number("weeks", 1'000'000);
  interval.days = number("days", 1'000'000);
  interval.hour = number("hour", 23);
  interval.minute = number("minute", 59);
  interval.second = number("second", 59);
  in.parsed("dst_gap", interval.dst_gap, parse_dst_gap);
  in.parsed("dst_overlap", interval.dst_overlap, parse_dst_overlap);
  WallTime start{};
  in.parsed("start_date", start, [](const std::string& text) -> Result<WallTime> {
    if (text.size() != 10) return bad_field("start_date", text, "a date such as 2026-01-31");
    return parse_timestamp(text);
  });
  if (!in.has("start_date")) return {fail(Errc::invalid_input, "calendar: a start_date such as 2026-01-31")};
  interval.start = std::chrono::floor<std::chrono::days>(start);
  return {Trigger::calendar(interval)};
}

// Where in a form a trigger is, and how many parts the whole form has had so far.
struct Within {
  int depth = 0;
  std::size_t& parts;
};
// `zone`: where the form names none.
std::optional<Trigger> read(const JsonValue& form, TimeZone zone, Within within);

Made read_parts(JsonMembers& in, bool all, const TimeZone& zone, Within within) {
  Duration threshold = std::chrono::seconds{1};
  if (all) in.parsed("threshold", threshold, parse_span);
  const JsonValue* triggers = in.find("triggers");
  if (triggers == nullptr || !triggers->is_list()) {
    return {fail(Errc::invalid_input, "and, or: a list of triggers"), triggers};
  }
  within.parts += triggers->size();
  if (within.parts > Trigger::kMostParts) {
    return {fail(Errc::too_large, fmt::format("and, or: at most {} triggers in all", Trigger::kMostParts)), triggers};
  }
  std::vector<Trigger> parts;
  triggers->for_each([&](const JsonValue& part) {
    if (!part.is_object()) return part.refuse("each is an object");
    if (auto trigger = read(part, zone, {within.depth + 1, within.parts})) parts.push_back(std::move(*trigger));
  });
  if (!all) return {Trigger::any_of(std::move(parts)), triggers};
  const JsonValue* blamed = parts.empty() ? triggers : in.find("threshold");
  return {Trigger::all_of(std::move(parts), threshold), blamed};
}

// nullopt: the errors of the form say why.
std::optional<Made> read_kind(JsonMembers& in, std::string_view type, const TimeZone& zone, Within within) {
  if (type == "date") return read_date(in, zone);
  if (type == "interval") return read_interval(in, zone);
  if (type == "calendar") return read_calendar(in, zone);
  if (type == "cron") return read_cron(in, zone);
  if (type == "and" || type == "or") return read_parts(in, type == "and", zone, within);
  constexpr std::string_view kTypes = "date, interval, calendar, cron, and, or";
  const JsonValue* given = in.find("type");
  given == nullptr ? in.object().refuse(fmt::format("a trigger needs a type: {}", kTypes)) : given->complain(kTypes);
  return std::nullopt;
}

Result<std::uint64_t> parse_seed(const std::string& text) {
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || text.size() > 20) return bad_field("seed", text, "a number, as a string");
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

std::optional<Trigger> read(const JsonValue& form, TimeZone zone, Within within) {
  if (within.depth > kMostNesting) {
    form.refuse({Errc::too_large, "trigger: nested too deeply"});
    return std::nullopt;
  }
  JsonMembers in(form);
  in.parsed("zone", zone, TimeZone::find);
  const std::string type = in.text("type");
  auto made = read_kind(in, type, zone, within);
  if (!made) return std::nullopt;
  const auto time = [&](const std::string& text) { return parse_timestamp(text, zone); };
  std::optional<WallTime> start, end;
  in.parsed("start", start, time);
  in.parsed("end", end, time);
  Duration jitter{};
  in.parsed("jitter", jitter, parse_duration);
  std::uint64_t seed = 0;
  in.parsed("seed", seed, parse_seed);
  in.finish(fmt::format("a trigger of type {} has none", type));
  Result<Trigger>& trigger = made->trigger;
  if (!trigger) (made->blamed == nullptr ? form : *made->blamed).refuse(trigger.error());
  // As in APScheduler, others with such bounds are valid and never due.
  if (type == "interval" && start && end && *end < *start) {
    in.find("end")->complain(fmt::format("not before the start, {}", in.text("start")));
  }
  if (form.errors()) return std::nullopt;
  if (start) trigger = trigger->starting(*start);
  if (end) trigger = trigger->ending(*end);
  if (jitter > Duration::zero()) trigger = trigger->with_jitter(jitter, seed);
  return std::move(*trigger);
}

}  // namespace

std::string Trigger::to_json() const {
  return json_object(
      [&](JsonWriter& out) {
        std::visit([&](const auto& kind) { write_members(out, kind); }, rule_->kind);
        if (bounds_.start) out.member("start", format_timestamp(*bounds_.start));
        if (bounds_.end) out.member("end", format_timestamp(*bounds_.end));
        if (bounds_.jitter > Duration::zero()) {
          out.member("jitter", format_duration(bounds_.jitter));
          // A string: JSON's numbers are not all exact in every language.
          out.member("seed", fmt::to_string(bounds_.seed));
        }
      },
      JsonEscapes::letters);
}

Result<Trigger> Trigger::from_json(std::string_view json) {
  const auto text = JsonText::parse_object("trigger", json, kMostJsonBytes);
  if (!text) return std::unexpected(text.error());
  JsonErrors errors;
  return detail::read_trigger(text->root(errors));
}

Result<Trigger> detail::read_trigger(const JsonValue& form) {
  std::size_t parts = 0;
  auto trigger = read(form, TimeZone{}, {0, parts});
  if (!trigger) return std::unexpected(form.errors().error());
  return std::move(*trigger);
}

}  // namespace argiope
