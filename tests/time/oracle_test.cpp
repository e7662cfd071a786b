// A brute-force oracle: it walks a window second by second, or minute by minute where an expression has no seconds,
// asks what the clock on the wall shows, and matches that against its own reading of the expression. It shares no code
// with the search.
//
// ARGIOPE_ORACLE_CASES sets how many expressions are tried (a few thousand unless given; 100000 for the long run) and
// ARGIOPE_ORACLE_SEED the first seed; a failure prints the seed that shows it alone.
#include <cctz/civil_time.h>
#include <cctz/time_zone.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "argiope/base/random.hpp"
#include "argiope/time/time_zone.hpp"
#include "argiope/time/trigger.hpp"
#include "support/environment.hpp"

namespace argiope {
namespace {

constexpr std::int64_t kHour = 3600, kDay = 86400;

// Zones with ordinary changes, changes of half an hour, at midnight, southern ones, fixed ones, and one that changes
// twice around Ramadan.
const char* const kZones[] = {
    "Europe/Berlin",     "America/New_York", "Australia/Lord_Howe", "Asia/Amman",       "America/Santiago",
    "Africa/Cairo",      "Asia/Beirut",      "America/Havana",      "Pacific/Auckland", "Europe/London",
    "America/Sao_Paulo", "Asia/Tehran",      "Africa/Casablanca",   "Asia/Kolkata",     "UTC",
    "America/St_Johns",  "Atlantic/Azores",  "Asia/Gaza",           "Pacific/Chatham",  "America/Asuncion"};

// One field: a set of values, drawn and written at once.
struct Field {
  std::string text;
  std::set<int> values;
  bool is_star = false;
  bool varies = false;
};

Field draw_field(Random& random, int low, int high, int odds_of_star) {
  Field field;
  if (random.below(10) < static_cast<std::uint64_t>(odds_of_star)) {
    field = {"*", {}, true, true};
    for (int value = low; value <= high; ++value) field.values.insert(value);
    return field;
  }
  const int parts = static_cast<int>(random.between(1, 3));
  for (int part = 0; part < parts; ++part) {
    if (part > 0) field.text += ',';
    const int first = static_cast<int>(random.between(low, high));
    switch (random.below(4)) {
      case 0: {
        const int step = static_cast<int>(random.between(1, high));
        const bool from_star = random.chance(0.5);
        field.text += from_star ? fmt::format("*/{}", step) : fmt::format("{}/{}", first, step);
        // Weekdays are 0 to 7, and 7 is Sunday again: `5/2` is Friday and Sunday, as in crontabs.
        const int highest = high == 6 ? 7 : high;
        for (int value = from_star ? low : first; value <= highest; value += step) {
          field.values.insert(high == 6 ? value % 7 : value);
        }
        field.varies = true;
        break;
      }
      case 1: {
        const int length = static_cast<int>(random.between(0, high - low));
        const int step = static_cast<int>(random.between(1, 3));
        const int last = low + (first - low + length) % (high - low + 1);
        field.text += fmt::format("{}-{}", first, last) + (step > 1 ? fmt::format("/{}", step) : "");
        for (int at = 0; at <= length; at += step) field.values.insert(low + (first - low + at) % (high - low + 1));
        field.varies = true;
        break;
      }
      default: {
        field.text += fmt::format("{}", first);
        field.values.insert(first);
      }
    }
  }
  return field;
}

// A day field may also have rules that depend on the month.
enum class DayKind { plain, last, last_minus, working_day, last_working_day, nth, last_such };
struct DayField {
  Field field;
  DayKind kind = DayKind::plain;
  int number = 0, which = 0;
};

struct Civil {
  int year, month, day, hour, minute, second, weekday;
};

int days_in(int year, int month) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && ((year % 4 == 0 && year % 100 != 0) || year % 400 == 0) ? 29 : kDays[month - 1];
}

bool is_working_day_nearest_to(const Civil& at, int target) {
  const int length = days_in(at.year, at.month);
  if (target < 1 || target > length) return false;
  const auto weekday = [&](int day) { return ((at.weekday + day - at.day) % 7 + 7) % 7; };
  const auto works = [&](int day) { return day >= 1 && day <= length && weekday(day) != 0 && weekday(day) != 6; };
  // Nearer days first; of two as near there is only ever one that works, or the target itself.
  for (const int distance : {0, 1, 2}) {
    for (const int day : {target - distance, target + distance}) {
      if (works(day)) return day == at.day;
    }
  }
  return false;
}

bool day_matches(const DayField& day, const Civil& at, bool is_weekday_field) {
  const int length = days_in(at.year, at.month);
  switch (day.kind) {
    case DayKind::plain: return day.field.values.contains(is_weekday_field ? at.weekday : at.day);
    case DayKind::last: return at.day == length;
    case DayKind::last_minus: return at.day == length - day.number;
    case DayKind::working_day: return is_working_day_nearest_to(at, day.number);
    case DayKind::last_working_day: return is_working_day_nearest_to(at, length - day.number);
    case DayKind::nth: return at.weekday == day.number && (at.day + 6) / 7 == day.which;
    case DayKind::last_such: return at.weekday == day.number && at.day + 7 > length;
  }
  return false;
}

struct Expression {
  std::string text;
  bool has_seconds;
  Field second, minute, hour, month;
  DayField dom, dow;
  CronOptions options;

  bool matches(const Civil& at) const {
    if (!second.values.contains(at.second) || !minute.values.contains(at.minute) || !hour.values.contains(at.hour) ||
        !month.values.contains(at.month)) {
      return false;
    }
    const bool by_dom = day_matches(dom, at, false), by_dow = day_matches(dow, at, true);
    if (dom.field.is_star || dow.field.is_star || options.dom_dow == DomDow::both) return by_dom && by_dow;
    return by_dom || by_dow;
  }
  bool varies() const { return second.varies || minute.varies || hour.varies; }
};

Expression draw_expression(Random& random) {
  Expression made;
  // Seconds that vary are rare, since their every second is compared.
  made.has_seconds = random.chance(0.2);
  made.second = made.has_seconds ? draw_field(random, 0, 59, 0) : Field{"0", {0}, false, false};
  made.minute = draw_field(random, 0, 59, 2);
  // Around the hours at which clocks change.
  made.hour = draw_field(random, 0, random.chance(0.5) ? 23 : 3, 3);
  if (made.hour.is_star) {
    for (int hour = 0; hour < 24; ++hour) made.hour.values.insert(hour);
  } else if (made.hour.text.find_first_of("/-") != std::string::npos) {
    made.hour = draw_field(random, 0, 23, 0);
  }
  made.month = draw_field(random, 1, 12, 8);
  made.dom.field = draw_field(random, 1, 31, 6);
  made.dow.field = draw_field(random, 0, 6, 6);
  if (random.chance(0.15)) {
    made.dom.field = {};
    made.dom.number = static_cast<int>(random.between(0, 30));
    switch (random.below(4)) {
      case 0: made.dom.kind = DayKind::last, made.dom.field.text = "L"; break;
      case 1: made.dom.kind = DayKind::last_minus, made.dom.field.text = fmt::format("L-{}", made.dom.number); break;
      case 2:
        made.dom.kind = DayKind::working_day, made.dom.number += 1;
        made.dom.field.text = fmt::format("{}W", made.dom.number);
        break;
      default:
        made.dom.kind = DayKind::last_working_day;
        made.dom.field.text = made.dom.number == 0 ? "LW" : fmt::format("L-{}W", made.dom.number);
    }
  }
  if (random.chance(0.15)) {
    made.dow.field = {};
    made.dow.number = static_cast<int>(random.between(0, 6));
    made.dow.which = static_cast<int>(random.between(1, 5));
    const bool last = random.chance(0.4);
    made.dow.kind = last ? DayKind::last_such : DayKind::nth;
    made.dow.field.text =
        last ? fmt::format("{}L", made.dow.number) : fmt::format("{}#{}", made.dow.number, made.dow.which);
  }
  made.options.dom_dow = random.chance(0.5) ? DomDow::both : DomDow::either;
  made.options.dst_gap = static_cast<DstGap>(random.below(3));
  made.options.dst_overlap = static_cast<DstOverlap>(random.below(4));
  made.text = fmt::format("{}{} {} {} {} {}", made.has_seconds ? made.second.text + " " : "", made.minute.text,
                          made.hour.text, made.dom.field.text, made.month.text, made.dow.field.text);
  return made;
}

// Seconds of the wall clock as a number that counts like UTC's.
std::int64_t wall_count(const cctz::civil_second& at) { return at - cctz::civil_second(1970, 1, 1); }

Civil civil_at(std::int64_t wall) {
  const cctz::civil_second at = cctz::civil_second(1970, 1, 1) + wall;
  const auto weekday = (static_cast<int>(cctz::get_weekday(cctz::civil_day(at))) + 1) % 7;  // cctz's Monday is 0
  return {static_cast<int>(at.year()), at.month(), at.day(), at.hour(), at.minute(), at.second(), weekday};
}

// Every instant in [from, to) at which the expression comes, by what the policies say of each single second.
std::set<std::int64_t> walk(const Expression& expression, const cctz::time_zone& zone, std::int64_t from,
                            std::int64_t to) {
  std::set<std::int64_t> found;
  DstOverlap overlap = expression.options.dst_overlap;
  if (overlap == DstOverlap::vixie) overlap = expression.varies() ? DstOverlap::both : DstOverlap::first;
  const auto wall_at = [&](std::int64_t at) {
    return wall_count(zone.lookup(cctz::time_point<cctz::seconds>(cctz::seconds(at))).cs);
  };
  const auto comes = [&](std::int64_t wall) { return expression.matches(civil_at(wall)); };
  // Without seconds it is every minute: since 1970 these zones change on whole minutes, by whole minutes.
  const std::int64_t step = expression.has_seconds ? 1 : 60;
  std::int64_t before = wall_at(from - step);
  for (std::int64_t at = from; at < to; at += step) {
    const std::int64_t wall = wall_at(at);
    // A gap: the local times from before + step to wall − step never were.
    for (std::int64_t skipped = before + step; skipped < wall; skipped += step) {
      if (!comes(skipped)) continue;
      if (expression.options.dst_gap == DstGap::next) found.insert(at);
      if (expression.options.dst_gap == DstGap::shift) found.insert(at + skipped - before - step);
    }
    before = wall;
    if (!comes(wall)) continue;
    const auto kind = zone.lookup(cctz::civil_second(1970, 1, 1) + wall);
    if (kind.kind == cctz::time_zone::civil_lookup::REPEATED) {
      const bool is_first = cctz::time_point<cctz::seconds>(cctz::seconds(at)) == kind.pre;
      if ((overlap == DstOverlap::first && !is_first) || (overlap == DstOverlap::second && is_first)) continue;
    }
    found.insert(at);
  }
  // What a gap at the end shifts beyond it is the next window's.
  while (!found.empty() && *found.rbegin() >= to) found.erase(std::prev(found.end()));
  return found;
}

WallTime wall_time(std::int64_t at) { return WallTime{std::chrono::seconds{at}}; }

void check_one(std::uint64_t seed) {
  Random random(seed);
  const Expression expression = draw_expression(random);
  const char* const name = kZones[random.below(std::size(kZones))];
  cctz::time_zone zone;
  ASSERT_TRUE(cctz::load_time_zone(name, &zone));
  // A window of some days, mostly around a change of the clocks.
  std::int64_t middle = random.between(0, 2'500'000'000);  // 1970 to 2049
  cctz::time_zone::civil_transition change;
  if (random.chance(0.9) && zone.next_transition(cctz::time_point<cctz::seconds>(cctz::seconds(middle)), &change)) {
    const auto at = zone.lookup(change.to).trans.time_since_epoch().count();
    if (at < 4'000'000'000) middle = at;
  }
  const std::int64_t most = expression.has_seconds ? kDay / 4 : kDay;
  const std::int64_t from = (middle - random.between(kHour, most)) / 60 * 60,
                     to = from + random.between(kHour, 3 * most);
  if (from < kDay) return;

  const std::string told =
      fmt::format("ARGIOPE_ORACLE_SEED={} ARGIOPE_ORACLE_CASES=1: \"{}\" in {}, gap {}, overlap {}, dom_dow {}", seed,
                  expression.text, name, to_string(expression.options.dst_gap),
                  to_string(expression.options.dst_overlap), to_string(expression.options.dom_dow));
  const auto trigger = Trigger::parse(expression.text, expression.options, *TimeZone::find(name));
  ASSERT_TRUE(trigger) << told << ": " << trigger.error().message;
  const std::set<std::int64_t> wanted = walk(expression, zone, from, to);

  std::set<std::int64_t> forward, backward;
  for (auto at = trigger->next(wall_time(from) - Duration{1}); at && *at < wall_time(to); at = trigger->next(*at)) {
    forward.insert(std::chrono::floor<std::chrono::seconds>(*at).time_since_epoch().count());
  }
  for (auto at = trigger->previous(wall_time(to)); at && *at >= wall_time(from); at = trigger->previous(*at)) {
    backward.insert(std::chrono::floor<std::chrono::seconds>(*at).time_since_epoch().count());
  }
  const auto differ = [&](const std::set<std::int64_t>& got, std::string_view how) {
    if (got == wanted) return;
    std::string text;
    for (const auto at : got) {
      if (!wanted.contains(at)) text += " too much " + format_timestamp(wall_time(at), *TimeZone::find(name));
    }
    for (const auto at : wanted) {
      if (!got.contains(at)) text += " missing " + format_timestamp(wall_time(at), *TimeZone::find(name));
    }
    ADD_FAILURE() << told << ", " << how << ":" << text.substr(0, 600);
  };
  differ(forward, "next");
  differ(backward, "previous");
  // From anywhere, not only from one of its own times.
  for (int i = 0; i < 10; ++i) {
    const std::int64_t at = random.between(from, to - 1);
    const auto next = wanted.upper_bound(at);
    if (next != wanted.end()) EXPECT_EQ(trigger->next(wall_time(at)), wall_time(*next)) << told << " after " << at;
    const auto previous = wanted.lower_bound(at);
    if (previous != wanted.begin()) {
      EXPECT_EQ(trigger->previous(wall_time(at)), wall_time(*std::prev(previous))) << told << " before " << at;
    }
  }
}

TEST(Oracle, AgreesWithTimeWalkedStepByStepOnRandomExpressionsZonesAndChangesOfTheClocks) {
  const std::uint64_t cases = from_environment("ARGIOPE_ORACLE_CASES", 3'000);
  const std::uint64_t first = from_environment("ARGIOPE_ORACLE_SEED", 1);
  fmt::print("oracle: seeds {} to {}\n", first, first + cases - 1);
  for (std::uint64_t seed = first; seed < first + cases && !testing::Test::HasFatalFailure(); ++seed) {
    check_one(seed);
    if (testing::Test::HasFailure() && seed > first + 20) break;
  }
}

// Dates that come once in many years, and ISO weeks: every day of 1970 to 2199 is looked at. Weeks are counted from the
// first Thursday of the year on.
TEST(Oracle, AgreesWithDaysWalkedOneByOneOnRareDatesAndIsoWeeks) {
  const auto date_of = [](int day) { return cctz::civil_day(1970, 1, 1) + day; };
  const int last = static_cast<int>(cctz::civil_day(2199, 12, 31) - cctz::civil_day(1970, 1, 1));
  std::vector<int> week_of;  // of each day
  for (int day = 0; day <= last; ++day) {
    const cctz::civil_day thursday =
        cctz::next_weekday(cctz::prev_weekday(date_of(day) + 1, cctz::weekday::monday), cctz::weekday::thursday);
    week_of.push_back(1 + static_cast<int>(thursday - cctz::civil_day(thursday.year(), 1, 1)) / 7);
  }
  const std::uint64_t first_seed = from_environment("ARGIOPE_ORACLE_SEED", 1);
  for (std::uint64_t seed = first_seed; seed < first_seed + 60; ++seed) {
    Random random(seed * 1'000'003);
    CronFields fields{{"hour", "12"}};
    const int week = random.chance(0.5) ? (random.chance(0.5) ? 53 : static_cast<int>(random.between(1, 53))) : 0;
    const int weekday = random.chance(0.7) ? static_cast<int>(random.between(0, 6)) : -1;
    const int month = random.chance(0.6) ? static_cast<int>(random.between(1, 12)) : 0;
    const int day_of_month = random.chance(week == 0 ? 1 : 0.3) ? static_cast<int>(random.between(25, 31)) : 0;
    fields.emplace_back("day_of_week", weekday < 0 ? "*" : std::to_string(weekday));
    if (week != 0) fields.emplace_back("week", std::to_string(week));
    if (month != 0) fields.emplace_back("month", std::to_string(month));
    if (day_of_month != 0) fields.emplace_back("day", std::to_string(day_of_month));
    std::vector<WallTime> wanted;
    for (int day = 0; day <= last; ++day) {
      const cctz::civil_day date = date_of(day);
      if ((week == 0 || week_of[static_cast<std::size_t>(day)] == week) && (month == 0 || date.month() == month) &&
          (day_of_month == 0 || date.day() == day_of_month) &&
          (weekday < 0 || static_cast<int>(cctz::get_weekday(date)) == weekday)) {
        wanted.push_back(wall_time(day * kDay + 12 * kHour));
      }
    }
    const auto expression = CronExpression::from_fields(fields);
    ASSERT_TRUE(expression);
    const Trigger trigger = Trigger::cron(*expression);
    std::vector<WallTime> forward, backward;
    for (auto at = trigger.next(WallTime::min()); at; at = trigger.next(*at)) forward.push_back(*at);
    for (auto at = trigger.previous(WallTime::max()); at; at = trigger.previous(*at)) backward.push_back(*at);
    std::ranges::reverse(backward);
    EXPECT_EQ(forward, wanted) << "seed " << seed << ": " << expression->text();
    EXPECT_EQ(backward, wanted) << "seed " << seed << ": " << expression->text();
    EXPECT_EQ(expression->never(), wanted.empty()) << expression->text();
  }
}

}  // namespace
}  // namespace argiope
