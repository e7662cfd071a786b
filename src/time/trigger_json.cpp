// Triggers as JSON, both ways. A member that has its default is left out when written, and unknown ones are refused when
// read, so that a misspelt policy is not a policy silently lost.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <string>

#include "argiope/time/timestamp.hpp"
#include "time/calendar.hpp"
#include "time/cron_parser.hpp"
#include "time/internal/trigger_form.hpp"
#include "time/trigger_rule.hpp"

namespace argiope {
namespace {

using namespace detail;
namespace json = boost::json;

constexpr int kMostNesting = 8;
constexpr std::string_view kLayouts[] = {"five", "six", "optional", "quartz", "year_last", "second_last"};
constexpr std::string_view kWeekdays[] = {"sunday_0", "sunday_0_or_7", "sunday_1", "monday_0"};
constexpr std::string_view kQuestionMarks[] = {"in_days", "anywhere", "never"};
constexpr std::string_view kStepLimits[] = {"field", "range", "none"};

template <class Value, std::size_t N>
void write_choice(json::object& out, std::string_view name, Value value, Value usual,
                  const std::string_view (&names)[N]) {
  if (value != usual) out[name] = names[static_cast<std::size_t>(value)];
}

void write_flag(json::object& out, std::string_view name, bool value, bool usual) {
  if (value != usual) out[name] = value;
}

void write_options(json::object& out, const CronOptions& options) {
  const CronOptions usual = CronOptions::of(options.dialect);
  if (options.dialect != CronDialect::argiope) out["dialect"] = to_string(options.dialect);
  if (options.dom_dow != usual.dom_dow) out["dom_dow"] = to_string(options.dom_dow);
  if (options.dst_gap != usual.dst_gap) out["dst_gap"] = to_string(options.dst_gap);
  if (options.dst_overlap != usual.dst_overlap) out["dst_overlap"] = to_string(options.dst_overlap);
  write_choice(out, "layout", options.layout, usual.layout, kLayouts);
  write_choice(out, "weekday_numbers", options.weekday_numbers, usual.weekday_numbers, kWeekdays);
  write_choice(out, "question_mark", options.question_mark, usual.question_mark, kQuestionMarks);
  write_choice(out, "step_limit", options.step_limit, usual.step_limit, kStepLimits);
  write_flag(out, "wrap_ranges", options.wrap_ranges, usual.wrap_ranges);
  write_flag(out, "day_rules", options.day_rules, usual.day_rules);
  write_flag(out, "upper_case_names", options.upper_case_names, usual.upper_case_names);
  write_flag(out, "refuse_never", options.refuse_never, usual.refuse_never);
}

json::object form_of(const DateRule& rule) { return {{"type", "date"}, {"time", format_timestamp(rule.time)}}; }

json::object form_of(const IntervalRule& rule) {
  return {{"type", "interval"}, {"every", format_duration(rule.interval)}, {"anchor", format_timestamp(rule.anchor)}};
}

json::object form_of(const CalendarRule& rule) {
  const CalendarInterval& interval = rule.interval;
  json::object out{{"type", "calendar"}};
  const auto number = [&](std::string_view name, int value) {
    if (value != 0) out[name] = value;
  };
  number("years", interval.years);
  number("months", interval.months);
  number("weeks", interval.weeks);
  number("days", interval.days);
  number("hour", interval.hour);
  number("minute", interval.minute);
  number("second", interval.second);
  out["start_date"] = fmt::format("{:04}-{:02}-{:02}", int{interval.start.year()}, unsigned{interval.start.month()},
                                  unsigned{interval.start.day()});
  out["zone"] = interval.zone.name();
  if (interval.dst_gap != DstGap::next) out["dst_gap"] = to_string(interval.dst_gap);
  if (interval.dst_overlap != DstOverlap::vixie) out["dst_overlap"] = to_string(interval.dst_overlap);
  return out;
}

json::object form_of(const CronRule& rule) {
  json::object out{{"type", "cron"}, {"expression", rule.expression.text()}, {"zone", rule.given_zone.name()}};
  write_options(out, rule.expression.options());
  return out;
}

json::array forms_of(const std::vector<Trigger>& parts) {
  json::array out;
  for (const Trigger& part : parts) out.push_back(part.to_json());
  return out;
}

json::object form_of(const AllRule& rule) {
  json::object out{{"type", "and"}, {"triggers", forms_of(rule.parts)}};
  if (rule.threshold != std::chrono::seconds{1}) out["threshold"] = format_duration(rule.threshold);
  return out;
}

json::object form_of(const AnyRule& rule) { return {{"type", "or"}, {"triggers", forms_of(rule.parts)}}; }

CronOptions read_options(Reader& in) {
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

Result<Trigger> read_cron(Reader& in, const TimeZone& zone, MemberPath& where) {
  const CronOptions options = read_options(in);
  Result<CronExpression> expression = fail(Errc::invalid_input, "cron: an expression, or fields");
  if (const json::value* fields = in.find("fields"); fields != nullptr && fields->is_object()) {
    where = {"fields"};
    CronFields given;
    for (const auto& field : fields->as_object()) {
      given.emplace_back(field.key(), field.value().is_string() ? std::string(field.value().as_string())
                                                                : json::serialize(field.value()));
    }
    expression =
        CronExpression::from_fields(given, in.has("dialect") ? options : CronOptions::of(CronDialect::apscheduler));
  } else if (in.has("expression")) {
    where = {"expression"};
    expression = CronExpression::parse(in.text("expression"), options);
  }
  if (!expression) return std::unexpected(std::move(expression.error()));
  return Trigger::cron(std::move(*expression), zone);
}

Result<Trigger> read_interval(Reader& in, const TimeZone& zone, MemberPath& where) {
  if (in.has("every")) where = {"every"};
  Duration interval{};
  in.parsed("every", interval, parse_duration);
  struct Unit {
    std::string_view name;
    Duration length;
  };
  constexpr Unit kUnits[] = {{"weeks", std::chrono::weeks{1}},     {"days", std::chrono::days{1}},
                             {"hours", std::chrono::hours{1}},     {"minutes", std::chrono::minutes{1}},
                             {"seconds", std::chrono::seconds{1}}, {"milliseconds", std::chrono::milliseconds{1}}};
  for (const auto& [name, length] : kUnits) {
    interval += in.number(name, std::chrono::days{14'600} / length) * length;
  }
  const auto time = [&](const std::string& text) { return parse_timestamp(text, zone); };
  WallTime anchor{};
  in.parsed("start", anchor, time);
  in.parsed("anchor", anchor, time);
  return Trigger::every(interval, anchor);
}

Result<Trigger> read_calendar(Reader& in, const TimeZone& zone) {
  CalendarInterval interval{.zone = zone};
  const auto number = [&](std::string_view name) { return static_cast<int>(in.number(name, 1'000'000)); };
  interval.years = number("years");
  interval.months = number("months");
  interval.weeks = number("weeks");
  interval.days = number("days");
  interval.hour = number("hour");
  interval.minute = number("minute");
  interval.second = number("second");
  in.parsed("dst_gap", interval.dst_gap, parse_dst_gap);
  in.parsed("dst_overlap", interval.dst_overlap, parse_dst_overlap);
  WallTime start{};
  in.parsed("start_date", start, [](const std::string& text) -> Result<WallTime> {
    if (text.size() != 10) return bad_field("start_date", text, "a date such as 2026-01-31");
    return parse_timestamp(text);
  });
  if (!in.has("start_date")) return fail(Errc::invalid_input, "calendar: a start_date such as 2026-01-31");
  interval.start = std::chrono::floor<std::chrono::days>(start);
  return Trigger::calendar(interval);
}

Result<Trigger> read(const json::object& form, int depth, MemberPath& where);

Result<Trigger> read_parts(Reader& in, bool all, int depth, MemberPath& where) {
  std::vector<Trigger> parts;
  const json::value* triggers = in.find("triggers");
  if (triggers == nullptr || !triggers->is_array()) return fail(Errc::invalid_input, "and, or: a list of triggers");
  where = {"triggers"};
  for (std::size_t i = 0; i < triggers->as_array().size(); ++i) {
    const json::value& part = triggers->as_array()[i];
    where = {"triggers", i};
    if (!part.is_object()) return fail(Errc::invalid_input, "triggers: each is an object");
    MemberPath inside;
    auto trigger = read(part.as_object(), depth + 1, inside);
    if (!trigger) {
      where.insert(where.end(), inside.begin(), inside.end());
      return trigger;
    }
    parts.push_back(std::move(*trigger));
  }
  where = {"triggers"};
  if (!all) return Trigger::any_of(std::move(parts));
  Duration threshold = std::chrono::seconds{1};
  in.parsed("threshold", threshold, parse_span);
  if (!parts.empty()) where = {"threshold"};
  return Trigger::all_of(std::move(parts), threshold);
}

// `where`: the member that is wrong.
Result<Trigger> read(const json::object& form, int depth, MemberPath& where) {
  if (depth > kMostNesting) return fail(Errc::too_large, "trigger: nested too deeply");
  Reader in(form);
  TimeZone zone;
  in.parsed("zone", zone, TimeZone::find);
  const auto time = [&](const std::string& text) { return parse_timestamp(text, zone); };
  const std::string type = in.text("type");
  if (in.has("type")) where = {"type"};
  Result<Trigger> trigger = bad_field("type", type, "date, interval, calendar, cron, and, or");
  if (type == "date") {
    where.clear();
    WallTime at{};
    in.parsed("time", at, time);
    trigger = in.has("time") ? Result<Trigger>(Trigger::at(at)) : fail(Errc::invalid_input, "date: a time");
  } else if (type == "interval") {
    where.clear();
    trigger = read_interval(in, zone, where);
  } else if (type == "calendar") {
    where.clear();
    trigger = read_calendar(in, zone);
  } else if (type == "cron") {
    where.clear();
    trigger = read_cron(in, zone, where);
  } else if (type == "and" || type == "or") {
    where.clear();
    trigger = read_parts(in, type == "and", depth, where);
  } else {
    return trigger;
  }
  std::optional<WallTime> start, end;
  in.parsed("start", start, time);
  in.parsed("end", end, time);
  Duration jitter{};
  in.parsed("jitter", jitter, parse_duration);
  std::uint64_t seed = 0;
  in.parsed("seed", seed, [](const std::string& text) -> Result<std::uint64_t> {
    std::uint64_t value = 0;
    for (const char c : text) {
      if (c < '0' || c > '9' || text.size() > 20) return bad_field("seed", text, "a number, as a string");
      value = value * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return value;
  });
  if (auto error = in.finish(fmt::format("a trigger of type {} has none", type))) {
    where = in.path();
    return std::unexpected(std::move(*error));
  }
  if (!trigger) return trigger;
  // As in APScheduler, others with such bounds are valid and never due.
  if (type == "interval" && start && end && *end < *start) {
    where = {"end"};
    return bad_field("end", in.text("end"), fmt::format("not before the start, {}", in.text("start")));
  }
  if (start) trigger = trigger->starting(*start);
  if (end) trigger = trigger->ending(*end);
  if (jitter > Duration::zero()) trigger = trigger->with_jitter(jitter, seed);
  return trigger;
}

}  // namespace

json::object Trigger::to_json() const {
  json::object out = std::visit([](const auto& kind) { return form_of(kind); }, rule_->kind);
  if (bounds_.start) out["start"] = format_timestamp(*bounds_.start);
  if (bounds_.end) out["end"] = format_timestamp(*bounds_.end);
  if (bounds_.jitter > Duration::zero()) {
    out["jitter"] = format_duration(bounds_.jitter);
    out["seed"] = fmt::to_string(bounds_.seed);  // a string: JSON's numbers are not all exact in every language
  }
  return out;
}

Result<Trigger> Trigger::from_json(const json::object& form) {
  MemberPath where;
  return read(form, 0, where);
}

Result<Trigger> detail::read_trigger(const json::object& form, MemberPath& where) { return read(form, 0, where); }

}  // namespace argiope
