// What eleven public suites assert about triggers, each fact under its own suite's rules. A suite's rules are Argiope's
// options set one way or another; nothing here knows a single fact.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <map>
#include <string>

#include "argiope/time/time_zone.hpp"
#include "argiope/time/trigger.hpp"

namespace argiope {
namespace {

namespace json = boost::json;

constexpr Duration kTick{1};

CronOptions suite_options(const std::string& dialect) {
  CronOptions options;
  if (dialect == "systemd") return CronOptions::of(CronDialect::systemd);
  if (dialect == "quartz") return CronOptions::of(CronDialect::quartz);
  if (dialect.starts_with("aps")) {
    options = CronOptions::of(CronDialect::apscheduler);
    options.dst_overlap = DstOverlap::both;
    options.dst_gap = dialect == "aps3" ? DstGap::shift : DstGap::skip;
    if (dialect == "aps4") options.weekday_numbers = WeekdayNumbers::sunday_0_or_7;
  } else if (dialect.starts_with("robfig")) {
    options.layout = dialect == "robfig-sec" ? CronLayout::six : CronLayout::five;
    options.weekday_numbers = WeekdayNumbers::sunday_0;
    options.question_mark = QuestionMark::anywhere;
    options.dst_gap = DstGap::skip;
    options.dst_overlap = DstOverlap::both;
  } else if (dialect.starts_with("cronos")) {
    options.layout = dialect == "cronos-sec" ? CronLayout::six : CronLayout::five;
    options.dom_dow = DomDow::both;
  } else if (dialect == "gorhill") {
    options.layout = CronLayout::year_last;
  } else if (dialect == "croniter") {
    options.layout = CronLayout::second_last;
    options.dst_gap = DstGap::shift;
  } else if (dialect == "cron-parser") {
    options.dst_gap = DstGap::shift;
    options.wrap_ranges = false;
  } else if (dialect == "croner") {
    options.dst_gap = DstGap::shift;
    options.dst_overlap = DstOverlap::first;
  } else if (dialect == "oban") {
    options.layout = CronLayout::five;
    options.weekday_numbers = WeekdayNumbers::sunday_0;
    options.dom_dow = DomDow::both;
    options.upper_case_names = true;
    options.refuse_never = true;
    options.wrap_ranges = false;
  } else {
    ADD_FAILURE() << "no such suite: " << dialect;
  }
  return options;
}

std::string text_of(const json::object& from, std::string_view name, std::string_view usual = "") {
  const json::value* value = from.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string(usual);
}

CronFields fields_of(const json::object& object) {
  CronFields fields;
  for (const auto& member : object) {
    fields.emplace_back(member.key(), member.value().is_string() ? std::string(member.value().as_string())
                                                                 : json::serialize(member.value()));
  }
  return fields;
}

// The suites' spellings of bounds, and a zone, in the words of the JSON form.
Result<Trigger> keyword_trigger(const std::string& kind, json::object given, const std::string& zone,
                                const CronOptions& options) {
  json::object form{{"type", kind == "calendarinterval" ? "calendar" : kind}, {"zone", zone}};
  const auto move = [&](std::string_view from, std::string_view to) {
    if (!given.contains(from)) return;
    form[to] = given[from];
    given.erase(from);
  };
  if (kind == "calendarinterval") {
    move("start_date", "start_date");
    move("end_date", "end");
    form["dst_gap"] = to_string(options.dst_gap == DstGap::shift ? DstGap::skip : options.dst_gap);
  }
  for (const char* name : {"start_date", "start_time"}) move(name, "start");
  for (const char* name : {"end_date", "end_time"}) move(name, "end");
  for (const char* name : {"run_date", "run_time"}) move(name, "time");
  if (kind == "cron") {
    auto expression = CronExpression::from_fields(fields_of(given), options);
    if (!expression) return std::unexpected(expression.error());
    // By way of the JSON form, so that every fact shows that nothing of it gets lost there.
    json::object cron = json::parse(Trigger::cron(std::move(*expression), *TimeZone::find(zone)).to_json()).as_object();
    for (const auto& member : form) cron[member.key()] = member.value();
    return Trigger::from_json(json::serialize(cron));
  }
  for (const auto& member : given) form[member.key()] = member.value();
  return Trigger::from_json(json::serialize(form));
}

Result<Trigger> trigger_of(const json::object& fact, const std::string& kind, const CronOptions& options) {
  const std::string zone = text_of(fact, "tz", "UTC");
  const json::value& expression = fact.at("expr");
  if (expression.is_string()) {
    auto trigger = Trigger::parse(std::string(expression.as_string()), options, *TimeZone::find(zone));
    return trigger ? Trigger::from_json(trigger->to_json()) : trigger;
  }
  if (kind == "and" || kind == "or") {
    std::vector<Trigger> parts;
    for (const json::value& part : expression.as_array()) {
      const auto& only = *part.as_object().begin();
      auto trigger = keyword_trigger(std::string(only.key()), only.value().as_object(), zone, options);
      if (!trigger) return trigger;
      parts.push_back(std::move(*trigger));
    }
    return kind == "and" ? Trigger::all_of(std::move(parts)) : Trigger::any_of(std::move(parts));
  }
  return keyword_trigger(kind == "cron_fields" ? "cron" : kind, expression.as_object(), zone, options);
}

WallTime instant(const json::value& value) {
  const auto time = parse_timestamp(std::string(value.as_string()));
  EXPECT_TRUE(time) << json::serialize(value);
  return time.value_or(WallTime{});
}

std::string told(std::optional<WallTime> time) { return time ? format_timestamp(*time) : "nothing"; }

// What is wrong with the answers; empty when nothing is.
std::string walk(const json::object& fact, const Trigger& trigger) {
  const bool forward = text_of(fact, "direction", "next") == "next";
  const bool inclusive = fact.at("inclusive").as_bool();
  std::optional<WallTime> at;
  const auto step = [&](WallTime from) { return forward ? trigger.next(from) : trigger.previous(from); };
  std::size_t index = 0;
  const json::array& expected = fact.at("expect").as_array();
  const bool then_none = fact.at("then_none").as_bool();
  for (; index < expected.size() + (then_none ? 1 : 0); ++index) {
    if (index > 0) {
      at = step(*at);
    } else if (fact.contains("previous")) {
      at = trigger.next_fire_time(instant(fact.at("previous")), instant(fact.at("from")));
    } else if (fact.at("from").is_null()) {
      at = step(forward ? WallTime::min() : WallTime::max());
    } else if (forward && inclusive) {
      at = trigger.next_fire_time(std::nullopt, instant(fact.at("from")));
    } else {
      at = step(instant(fact.at("from")) + (inclusive ? kTick : Duration{}));
    }
    const auto wanted = index < expected.size() ? std::optional(instant(expected[index])) : std::nullopt;
    if (at != wanted) return told(at) + " where " + told(wanted) + " is right";
    if (!at) break;
  }
  return "";
}

// APScheduler's next value of one field: all larger fields are held at `at`.
std::string check_field(const json::object& fact, const CronOptions& options) {
  const std::string field = text_of(fact, "field"), at = text_of(fact, "at");
  CronFields fields{{"year", at.substr(0, 4)}, {"month", std::to_string(std::stoi(at.substr(5, 2)))}};
  if (field == "hour") fields.emplace_back("day", std::to_string(std::stoi(at.substr(8, 2))));
  fields.emplace_back(field, text_of(fact, "expr"));
  const auto expression = CronExpression::from_fields(fields, options);
  if (!expression) return expression.error().message;
  const auto next = Trigger::cron(*expression).next(parse_timestamp(at).value() - kTick);
  std::optional<std::int64_t> value;
  if (next) {
    const std::string text = format_timestamp(*next);
    value = field == "day" ? std::stoi(text.substr(8, 2)) : std::stoi(text.substr(11, 2));
    if (field == "day_of_week") {
      const auto day = std::chrono::floor<std::chrono::days>(*next);
      value = std::chrono::weekday{day}.iso_encoding() - 1;
    }
  }
  const json::value& wanted = fact.at("expect_value");
  const bool right = wanted.is_null() ? !value : value == wanted.as_int64();
  return right ? "" : (value ? std::to_string(*value) : "nothing") + " where " + json::serialize(wanted) + " is right";
}

// What is wrong; empty when nothing is. nullopt: nothing here knows this kind of fact.
std::optional<std::string> check(const json::object& fact) {
  const std::string kind = text_of(fact, "kind");
  CronOptions options = suite_options(text_of(fact, "dialect"));
  if (const json::value* given = fact.if_contains("options")) {
    const std::string rule = text_of(given->as_object(), "dom_dow");
    options.dom_dow = rule == "and" ? DomDow::both : rule == "or" ? DomDow::either : DomDow::vixie;
  }
  if (kind == "cron_field_next") return check_field(fact, options);
  if (kind == "crontab_normalize") {
    const auto fields = fields_of_crontab(text_of(fact, "expr"));
    if (!fields) return fields.error().message;
    for (const auto& wanted : fact.at("normalized").as_object()) {
      for (const auto& [name, value] : *fields) {
        if (name == wanted.key() && value != wanted.value().as_string()) return name + "=" + value;
      }
    }
    return "";
  }
  if (kind == "oncalendar_normalize") {
    const auto expression = CronExpression::parse(text_of(fact, "expr"), options);
    if (!expression) return expression.error().message;
    return expression->text() == text_of(fact, "normalized") ? "" : expression->text();
  }
  const auto trigger = trigger_of(fact, kind, options);
  if (!fact.at("valid").as_bool()) return trigger ? "it is taken, and should not be" : "";
  if (!trigger) return trigger.error().message;
  if (fact.contains("matches")) {
    const WallTime at = instant(fact.at("at"));
    const bool matches = trigger->next(at - kTick) == at && trigger->previous(at + kTick) == at;
    return matches == fact.at("matches").as_bool() ? "" : "matches and should not, or the other way round";
  }
  if (!fact.contains("expect")) return "";  // valid, and that is all
  if (const std::string wrong = walk(fact, *trigger); !wrong.empty()) return wrong;
  if (fact.contains("raw_expr")) {
    const auto raw = Trigger::parse(text_of(fact, "raw_expr"), options);
    return raw ? walk(fact, *raw) : raw.error().message;
  }
  return "";
}

TEST(CronCases, EveryFactOfThePublicSuitesHoldsUnderItsOwnDialect) {
  const std::string path = ARGIOPE_SOURCE_DIR "/../shared/data/cron_cases.jsonl";
  std::ifstream file(path);
  if (!file) GTEST_SKIP() << "conformance data not found: " << path;
  std::map<std::string, int> passed, left_out;
  int failed = 0, total = 0;
  for (std::string line; std::getline(file, line);) {
    const json::object fact = json::parse(line).as_object();
    ++total;
    const auto wrong = check(fact);
    if (!wrong) {
      ++left_out[text_of(fact, "kind")];
      continue;
    }
    if (wrong->empty()) {
      ++passed[text_of(fact, "dialect")];
      continue;
    }
    ++failed;
    ADD_FAILURE() << text_of(fact, "id") << " " << text_of(fact, "kind") << " " << json::serialize(fact.at("expr"))
                  << ": " << *wrong;
  }
  int sum = 0;
  for (const auto& [dialect, count] : passed) {
    std::printf("cron_cases.jsonl: %-12s %4d passed\n", dialect.c_str(), count);
    sum += count;
  }
  std::printf("cron_cases.jsonl: %d of %d passed, %d failed\n", sum, total, failed);
  for (const auto& [kind, count] : left_out) std::printf("cron_cases.jsonl: left out, %s: %d\n", kind.c_str(), count);
  EXPECT_EQ(sum, total);
  EXPECT_GT(sum, 700);
}

// The project's own dialect, with and for days, is Cronos's.
TEST(CronCases, TheNativeDialectAgreesWithCronosOnEverything) {
  const std::string path = ARGIOPE_SOURCE_DIR "/../shared/data/cron_cases.jsonl";
  std::ifstream file(path);
  if (!file) GTEST_SKIP() << "conformance data not found: " << path;
  CronOptions options;
  options.dom_dow = DomDow::both;
  int count = 0;
  for (std::string line; std::getline(file, line);) {
    const json::object fact = json::parse(line).as_object();
    if (!text_of(fact, "dialect").starts_with("cronos")) continue;
    const std::string expression = text_of(fact, "expr");
    // Seven fields are one too many for Cronos, which has no years.
    if (expression == "* * * * * * *") continue;
    ++count;
    const auto trigger = Trigger::parse(expression, options, *TimeZone::find(text_of(fact, "tz", "UTC")));
    EXPECT_EQ(trigger.has_value(), fact.at("valid").as_bool()) << expression;
    if (trigger && fact.contains("expect")) EXPECT_EQ(walk(fact, *trigger), "") << line;
  }
  EXPECT_GT(count, 400);
}

}  // namespace
}  // namespace argiope
