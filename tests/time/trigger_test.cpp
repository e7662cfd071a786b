#include "argiope/time/trigger.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "argiope/base/random.hpp"
#include "argiope/time/time_zone.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

WallTime at(std::string_view text) { return parse_timestamp(text).value(); }
TimeZone zone(std::string_view name) { return TimeZone::find(name).value(); }
std::chrono::year_month_day date(int year, unsigned month, unsigned day) {
  return std::chrono::year{year} / static_cast<int>(month) / static_cast<int>(day);
}

// The first `count` times, as text.
std::string first_of(const Trigger& trigger, int count, WallTime after = WallTime::min()) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    const auto next = trigger.next(after);
    if (!next) return out + (i > 0 ? " " : "") + "no more";
    out += (i > 0 ? " " : "") + format_timestamp(*next, trigger.zone());
    after = *next;
  }
  return out;
}

Trigger read(std::string_view text) {
  auto trigger = Trigger::parse(text);
  if (!trigger) throw std::runtime_error(trigger.error().message);
  return *trigger;
}

std::string error_of(std::string_view text) {
  const auto trigger = Trigger::parse(text);
  return trigger ? "" : trigger.error().message;
}

TEST(DateTrigger, ComesOnce) {
  const Trigger once = Trigger::at(at("2026-01-01T00:00:00Z"));
  EXPECT_EQ(first_of(once, 2), "2026-01-01T00:00:00Z no more");
  EXPECT_EQ(once.previous(at("2026-01-02")), at("2026-01-01"));
  EXPECT_EQ(once.previous(at("2026-01-01")), std::nullopt);
  // Asked as APScheduler asks, it is due however late it is; whether it still runs is the misfire policy's business.
  EXPECT_EQ(once.next_fire_time(std::nullopt, at("2030-01-01")), at("2026-01-01"));
  EXPECT_EQ(once.next_fire_time(at("2026-01-01"), at("2030-01-01")), std::nullopt);
}

TEST(IntervalTrigger, CountsFromItsAnchorAndNeverDrifts) {
  const Trigger every = Trigger::every(7min, at("2026-01-01T00:00:30Z")).value();
  EXPECT_EQ(first_of(every, 2), "2026-01-01T00:00:30Z 2026-01-01T00:07:30Z");
  EXPECT_EQ(every.next(at("2026-01-01T00:07:29Z")), at("2026-01-01T00:07:30Z"));
  EXPECT_EQ(every.next(at("2026-01-01T00:07:30Z")), at("2026-01-01T00:14:30Z"));
  const WallTime far = at("2026-01-01T00:00:30Z") + 7min * 10'000'000;
  EXPECT_EQ(every.next(far - 1ns), far);
  EXPECT_EQ(every.previous(far + 1ns), far);
  EXPECT_EQ(every.previous(far), far - 7min);
  EXPECT_EQ(every.previous(at("2026-01-01T00:00:30Z")), std::nullopt);
}

TEST(IntervalTrigger, IsElapsedTimeWhateverTheClocksDo) {
  const Trigger every = read(R"({"type":"interval","hours":24,"anchor":"2026-03-28T12:00","zone":"Europe/Berlin"})");
  EXPECT_EQ(format_timestamp(*every.next(at("2026-03-29")), zone("Europe/Berlin")), "2026-03-29T13:00:00+02:00");
}

TEST(IntervalTrigger, HasALowestIntervalAndEndsWithTime) {
  EXPECT_TRUE(Trigger::every(1ms, WallTime{}));
  EXPECT_FALSE(Trigger::every(999us, WallTime{}));
  EXPECT_FALSE(Trigger::every(-1h, WallTime{}));
  const Trigger daily = Trigger::every(24h, WallTime{}).value();
  EXPECT_EQ(daily.next(WallTime::max()), std::nullopt);
  EXPECT_EQ(daily.next(WallTime::min()), WallTime{});
  EXPECT_TRUE(daily.previous(WallTime::max()));
}

TEST(CalendarTrigger, LeavesOutAMonthWithoutTheDay) {
  const Trigger monthly = Trigger::calendar({.months = 1, .start = date(2026, 1, 31)}).value();
  EXPECT_EQ(first_of(monthly, 3), "2026-01-31T00:00:00Z 2026-03-31T00:00:00Z 2026-05-31T00:00:00Z");
  const Trigger leap = Trigger::calendar({.years = 1, .start = date(2096, 2, 29)}).value();
  EXPECT_EQ(first_of(leap, 2), "2096-02-29T00:00:00Z 2104-02-29T00:00:00Z");
  EXPECT_EQ(leap.previous(at("2103-01-01")), at("2096-02-29"));
}

TEST(CalendarTrigger, StaysAtItsTimeOfDay) {
  const Trigger daily =
      Trigger::calendar({.days = 1, .hour = 9, .start = date(2026, 3, 28), .zone = zone("Europe/Berlin")}).value();
  EXPECT_EQ(first_of(daily, 2), "2026-03-28T09:00:00+01:00 2026-03-29T09:00:00+02:00");
}

TEST(CalendarTrigger, HasTheDaylightSavingPolicies) {
  CalendarInterval interval{
      .days = 1, .hour = 2, .minute = 30, .start = date(2026, 3, 29), .zone = zone("Europe/Berlin")};
  EXPECT_EQ(first_of(*Trigger::calendar(interval), 1), "2026-03-29T03:00:00+02:00");
  interval.dst_gap = DstGap::shift;
  EXPECT_EQ(first_of(*Trigger::calendar(interval), 1), "2026-03-29T03:30:00+02:00");
  interval.dst_gap = DstGap::skip;
  EXPECT_EQ(first_of(*Trigger::calendar(interval), 1), "2026-03-30T02:30:00+02:00");
  interval.start = date(2026, 10, 25);
  EXPECT_EQ(first_of(*Trigger::calendar(interval), 2), "2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00");
  interval.dst_overlap = DstOverlap::both;
  EXPECT_EQ(first_of(*Trigger::calendar(interval), 2), "2026-10-25T02:30:00+02:00 2026-10-25T02:30:00+01:00");
}

TEST(CalendarTrigger, RefusesWhatMakesNoSense) {
  EXPECT_FALSE(Trigger::calendar({.start = date(2026, 1, 1)}));
  EXPECT_FALSE(Trigger::calendar({.days = 1, .start = date(2026, 2, 30)}));
  EXPECT_FALSE(Trigger::calendar({.days = 1, .hour = 24, .start = date(2026, 1, 1)}));
  EXPECT_FALSE(Trigger::calendar({.days = -1, .start = date(2026, 1, 1)}));
}

// APScheduler's own algorithm, date by date.
std::vector<int> dates_of(const CalendarInterval& interval, int until) {
  const auto number = [](std::chrono::year_month_day day) {
    return std::chrono::sys_days{day}.time_since_epoch().count();
  };
  std::vector<int> found;
  int day = number(interval.start);
  while (day <= until) {
    found.push_back(day);
    const std::chrono::year_month_day last{std::chrono::sys_days{std::chrono::days{day}}};
    int month = static_cast<int>(unsigned{last.month()}), year = int{last.year()};
    for (;;) {
      month += interval.months;
      year += interval.years + (month - 1) / 12;
      month = (month - 1) % 12 + 1;
      const auto next = std::chrono::year{year} / month / last.day();
      if (next.ok()) {
        day = number(next) + interval.days + 7 * interval.weeks;
        break;
      }
      if (year > 2100) return found;
    }
  }
  return found;
}

TEST(CalendarTrigger, AgreesWithDatesCountedOneByOne) {
  Random random(5);
  for (int i = 0; i < 400; ++i) {
    CalendarInterval interval;
    if (random.chance(0.5)) interval.months = static_cast<int>(random.between(0, 14));
    if (random.chance(0.2)) interval.years = static_cast<int>(random.between(0, 3));
    if (random.chance(0.5) || interval.months + interval.years == 0) {
      interval.days = static_cast<int>(random.between(1, random.chance(0.1) ? 900 : 40));
    }
    if (random.chance(0.2)) interval.weeks = 1;
    interval.hour = 12;
    interval.start = std::chrono::sys_days{std::chrono::days{random.between(0, 20'000)}};
    const Trigger trigger = Trigger::calendar(interval).value();
    constexpr int kUntil = 45'000;  // 2093
    const std::vector<int> days = dates_of(interval, kUntil);
    const auto noon = [](int day) { return WallTime{std::chrono::days{day} + std::chrono::hours{12}}; };
    for (std::size_t k = 0; k + 1 < days.size(); ++k) {
      ASSERT_EQ(trigger.next(noon(days[k])), noon(days[k + 1])) << trigger.to_json();
      ASSERT_EQ(trigger.previous(noon(days[k + 1])), noon(days[k])) << trigger.to_json();
    }
    for (int k = 0; k < 20; ++k) {
      const int day = static_cast<int>(random.between(0, days.back() - 1));
      const auto next = std::ranges::upper_bound(days, day);
      ASSERT_EQ(trigger.next(noon(day)), noon(*next)) << trigger.to_json();
    }
  }
}

TEST(CombinedTrigger, OrComesWithAnyPart) {
  const Trigger either = Trigger::any_of({read("0 12 * * mon"), read("0 9 * * tue"), read("0 12 5 1 *")}).value();
  EXPECT_EQ(first_of(either, 3, at("2026-01-01")), "2026-01-05T12:00:00Z 2026-01-06T09:00:00Z 2026-01-12T12:00:00Z");
  EXPECT_EQ(either.previous(at("2026-01-06T09:00:00Z")), at("2026-01-05T12:00:00Z"));
  EXPECT_FALSE(Trigger::any_of({}));
}

TEST(CombinedTrigger, AndComesWhenAllPartsDo) {
  const Trigger both = Trigger::all_of({read("0 * * * *"), read("*/45 8-10 * * *")}).value();
  EXPECT_EQ(first_of(both, 3, at("2026-01-01")), "2026-01-01T08:00:00Z 2026-01-01T09:00:00Z 2026-01-01T10:00:00Z");
  EXPECT_EQ(both.previous(at("2026-01-01T08:00:00Z")), at("2025-12-31T10:00:00Z"));
  EXPECT_EQ(first_of(*Trigger::all_of({read("0 8 * * *"), read("0 9 * * *")}), 1), "no more");
  EXPECT_FALSE(Trigger::all_of({}));
  EXPECT_FALSE(Trigger::all_of({read("* * * * *")}, -1s));
}

TEST(CombinedTrigger, AndHasAThreshold) {
  const Trigger near = Trigger::all_of({read("0 0 12 * * *"), read("30 0 12 * * *")}, 30s).value();
  EXPECT_EQ(first_of(near, 2, at("2026-01-01")), "2026-01-01T12:00:00Z 2026-01-02T12:00:00Z");
  EXPECT_EQ(near.previous(at("2026-01-02T12:00:00Z")), at("2026-01-01T12:00:00Z"));
  EXPECT_EQ(first_of(*Trigger::all_of({read("0 0 12 * * *"), read("30 0 12 * * *")}, 29s), 1), "no more");
}

// APScheduler 4's AndTrigger, which remembers what it has used.
std::vector<std::int64_t> used_up_in_turn(const std::vector<std::vector<std::int64_t>>& parts, std::int64_t threshold) {
  std::vector<std::size_t> index(parts.size(), 0);
  std::vector<std::int64_t> found;
  for (;;) {
    std::int64_t earliest = INT64_MAX, latest = INT64_MIN;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (index[i] == parts[i].size()) return found;
      earliest = std::min(earliest, parts[i][index[i]]);
      latest = std::max(latest, parts[i][index[i]]);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i][index[i]] - earliest <= threshold) ++index[i];
    }
    if (latest - earliest <= threshold) found.push_back(earliest);
  }
}

TEST(CombinedTrigger, AgreesWithTimesUsedUpInTurn) {
  Random random(9);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t threshold = random.chance(0.5) ? 0 : random.between(1, 20);
    std::vector<Trigger> triggers;
    std::vector<std::vector<std::int64_t>> parts;
    for (std::int64_t count = random.between(2, 3); count > 0; --count) {
      // Longer than the threshold: then no run of groups reaches back to the first times, where the two begin apart.
      const std::int64_t every = random.between(threshold * 2 + 1, 90), anchor = random.between(0, 100);
      triggers.push_back(Trigger::every(std::chrono::seconds{every}, WallTime{std::chrono::seconds{anchor}}).value());
      parts.emplace_back();
      for (std::int64_t time = anchor; time < 20'000; time += every) parts.back().push_back(time);
    }
    const Trigger all = Trigger::all_of(triggers, std::chrono::seconds{threshold}).value();
    std::vector<std::int64_t> wanted = used_up_in_turn(parts, threshold);
    std::erase_if(wanted, [](std::int64_t time) { return time >= 19'000; });
    std::vector<std::int64_t> got, backward;
    const auto seconds = [](WallTime time) {
      return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
    };
    const WallTime end{std::chrono::seconds{19'000}};
    for (auto time = all.next(WallTime{} - 1ns); time && *time < end; time = all.next(*time))
      got.push_back(seconds(*time));
    ASSERT_EQ(got, wanted) << all.to_json();
    for (auto time = all.previous(end); time; time = all.previous(*time)) backward.push_back(seconds(*time));
    std::ranges::reverse(backward);
    ASSERT_EQ(backward, wanted) << all.to_json();
    for (int k = 0; k < 10; ++k) {
      const std::int64_t from = random.between(0, 18'000);
      const auto next = std::ranges::upper_bound(wanted, from);
      if (next == wanted.end()) continue;
      ASSERT_EQ(all.next(WallTime{std::chrono::seconds{from}}), WallTime{std::chrono::seconds{*next}});
    }
  }
}

// Of two intervals that meet once in 236 years, or never: no walk finds that.
TEST(CombinedTrigger, IntervalsThatMeetRarelyAreSolvedAtOnce) {
  const auto each = [](std::int64_t seconds, std::int64_t anchor) {
    return Trigger::every(std::chrono::seconds{seconds}, WallTime{std::chrono::seconds{anchor}}).value();
  };
  const Trigger rare = Trigger::all_of({each(86'399, 0), each(86'400, 3)}, 0s).value();
  const auto found = rare.search(WallTime{});
  ASSERT_TRUE(found.decided && found.time);
  const auto second = std::chrono::floor<std::chrono::seconds>(*found.time).time_since_epoch().count();
  EXPECT_EQ(second % 86'399, 0);
  EXPECT_EQ(second % 86'400, 3);
  EXPECT_EQ(second, 86'397LL * 86'399);
  const Trigger never = Trigger::all_of({each(60, 0), each(60, 30)}, 1s).value();
  EXPECT_TRUE(never.search(WallTime{}).decided);
  EXPECT_FALSE(never.next(WallTime{}));
}

TEST(CombinedTrigger, IntervalsAreSolvedAsTheyAreWalked) {
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t one = random.between(1, 400), two = random.between(1, 400), from = random.between(0, 800);
    const std::int64_t first = random.between(0, 500), second = random.between(0, 500);
    const std::int64_t threshold = random.chance(0.5) ? 0 : random.between(0, 9);
    const auto each = [](std::int64_t seconds, std::int64_t anchor) {
      return Trigger::every(std::chrono::seconds{seconds}, WallTime{std::chrono::seconds{anchor}}).value();
    };
    const Trigger both =
        Trigger::all_of({each(one, first), each(two, second)}, std::chrono::seconds{threshold}).value();
    // Far apart groups only: what overlaps is another test's.
    if (threshold > 0 && std::min(one, two) <= 2 * threshold) continue;
    std::optional<std::int64_t> wanted;
    for (std::int64_t time = first; time < 400'000 && !wanted; time += one) {
      for (std::int64_t near = time - threshold; near <= time + threshold; ++near) {
        const std::int64_t earliest = std::min(near, time);
        if (near >= second && (near - second) % two == 0 && earliest > from) wanted = earliest;
        if (wanted) break;
      }
    }
    const auto found = both.next(WallTime{std::chrono::seconds{from}});
    ASSERT_EQ(found.has_value(), wanted.has_value()) << both.to_json() << ' ' << from;
    if (wanted) ASSERT_EQ(*found, WallTime{std::chrono::seconds{*wanted}}) << both.to_json() << ' ' << from;
  }
}

// However deep it is nested, the leaves are asked so many times and no more.
TEST(CombinedTrigger, TheWorkOfAQuestionIsBoundedWhateverTheNesting) {
  Trigger nested = Trigger::all_of({read("0 8 * * *"), read("0 9 * * *")}).value();
  for (int depth = 0; depth < 6; ++depth) {
    nested = Trigger::all_of({nested, read("*/7 * * * *"), nested}, 30s).value();
  }
  const auto from = std::chrono::steady_clock::now();
  const auto answer = nested.search(at("2026-01-01"));
  const auto before = nested.previous(at("2026-01-01"));
  EXPECT_FALSE(answer.decided);
  EXPECT_FALSE(before);
  EXPECT_GT(answer.clear, at("2026-01-01"));
  EXPECT_EQ(nested.count(at("2026-01-01"), at("2027-01-01"), 1000), 0u);
  // A deadline that only what is unbounded misses.
  EXPECT_LT(std::chrono::steady_clock::now() - from, 10s);
  EXPECT_NE(why_undecided(answer).value_or("").find("\"and\""), std::string::npos);
  EXPECT_TRUE(nested.needs_search());
  EXPECT_FALSE(read("0 8 * * *").needs_search());
}

TEST(CombinedTrigger, ASearchGoesOnWhereItWasCutShort) {
  const Trigger rare = Trigger::all_of({read("0 12 29 2 *"), read("0 12 * * mon"), read("0 12 1-31 * *")}).value();
  const WallTime wanted = rare.next(at("2026-01-01")).value();
  WallTime from = at("2026-01-01");
  std::optional<WallTime> found;
  int parts = 0;
  for (; parts < 10'000 && !found; ++parts) {
    const auto answer = rare.search(from, 8);
    if (answer.decided) {
      found = answer.time;
    } else {
      ASSERT_GT(answer.clear, from);
      ASSERT_LE(answer.clear, wanted);
      from = answer.clear - 1ns;
      if (parts > 0 && answer.clear <= from) break;
    }
  }
  EXPECT_EQ(found, wanted);
  EXPECT_GT(parts, 1);
  // One part of an "or" that needs a search takes nothing from the other.
  const Trigger either =
      Trigger::any_of({Trigger::all_of({read("0 8 * * *"), read("0 9 * * *")}).value(), read("0 7 * * *")}).value();
  EXPECT_EQ(either.next(at("2026-01-01")), at("2026-01-01T07:00:00Z"));
}

TEST(Trigger, HasAStartAndAnEndThatBelongToIt) {
  const Trigger bounded = read("0 12 * * *").starting(at("2026-01-02T12:00:00Z")).ending(at("2026-01-03T12:00:00Z"));
  EXPECT_EQ(first_of(bounded, 3), "2026-01-02T12:00:00Z 2026-01-03T12:00:00Z no more");
  EXPECT_EQ(bounded.previous(WallTime::max()), at("2026-01-03T12:00:00Z"));
  EXPECT_EQ(bounded.previous(at("2026-01-02T12:00:00Z")), std::nullopt);
}

TEST(Trigger, FollowsThePreviousTimeWhenThereIsOne) {
  const Trigger daily = read("0 0 * * *");
  // What was missed is not passed over: that is the misfire policy's to decide.
  EXPECT_EQ(daily.next_fire_time(at("2026-01-03"), at("2026-01-20T05:00:00Z")), at("2026-01-04"));
  EXPECT_EQ(daily.next_fire_time(std::nullopt, at("2026-01-20")), at("2026-01-20"));
  EXPECT_EQ(daily.next_fire_time(std::nullopt, at("2026-01-20T05:00:00Z")), at("2026-01-21"));
  EXPECT_EQ(daily.previous_fire_time(at("2026-01-20")), at("2026-01-19"));
}

TEST(Jitter, PutsOffByTheSameForTheSameSeedAndTime) {
  const Trigger plain = read("*/5 * * * *"), jittered = plain.with_jitter(60s, 42);
  std::set<Duration> seen;
  WallTime time = at("2026-01-01");
  for (int i = 0; i < 500; ++i) {
    time = *plain.next(time);
    const WallTime due = jittered.due_at(time);
    EXPECT_GE(due, time);
    EXPECT_LE(due, time + 60s);
    EXPECT_EQ(due, plain.with_jitter(60s, 42).due_at(time));
    EXPECT_EQ(plain.due_at(time), time);
    seen.insert(due - time);
  }
  EXPECT_GT(seen.size(), 490u);
  EXPECT_LT(*seen.begin(), Duration{3s});
  EXPECT_GT(*seen.rbegin(), Duration{57s});
  EXPECT_NE(jittered.due_at(time), plain.with_jitter(60s, 43).due_at(time));
}

TEST(Jitter, KeepsTheOrderOfTimes) {
  const Trigger wild = read("* * * * *").with_jitter(24h, 1);
  WallTime time = at("2026-01-01");
  for (int i = 0; i < 100; ++i) {
    const WallTime following = *wild.next(time);
    EXPECT_LT(wild.due_at(time), following);
    time = following;
  }
}

TEST(TriggerJson, ComesBackAsItWas) {
  CronOptions options = CronOptions::of(CronDialect::quartz);
  options.dst_gap = DstGap::skip;
  options.step_limit = StepLimit::none;
  options.wrap_ranges = false;
  const Trigger triggers[] = {
      Trigger::at(at("2026-01-01T00:00:00.5Z")),
      Trigger::every(90min, at("2026-01-01")).value().ending(at("2027-01-01")),
      Trigger::calendar({.months = 2, .days = 3, .hour = 4, .start = date(2026, 1, 31), .zone = zone("Europe/Berlin")})
          .value(),
      Trigger::cron(CronExpression::parse("0 0/90 12 ? * 2#1", options).value(), zone("Asia/Tokyo")),
      Trigger::cron(CronExpression::from_fields({{"day", "last fri"}, {"hour", "5"}}).value()),
      Trigger::parse("TZ=Asia/Tokyo 0 9 * * *").value().starting(at("2026-01-01")).with_jitter(30s, UINT64_MAX),
      Trigger::parse("Mon *-*-* 12:00 Europe/Berlin", CronOptions::of(CronDialect::systemd)).value(),
      Trigger::all_of({read("@daily"), Trigger::any_of({read("@hourly"), read("@every 90s")}).value()}, 5s).value(),
  };
  for (const Trigger& trigger : triggers) {
    const std::string form = trigger.to_json();
    const auto back = Trigger::from_json(form);
    ASSERT_TRUE(back) << form << ": " << back.error().message;
    EXPECT_EQ(back->to_json(), form);
    EXPECT_EQ(*back, trigger);
    EXPECT_EQ(first_of(*back, 5, at("2026-01-01")), first_of(trigger, 5, at("2026-01-01"))) << form;
    EXPECT_EQ(Trigger::parse(form).value(), trigger);
  }
  EXPECT_FALSE(triggers[0] == triggers[1]);
  EXPECT_EQ(read("0 5 * * *").to_json(), R"({"type":"cron","expression":"0 5 * * *","zone":"UTC"})");
}

TEST(TriggerJson, SaysWhatIsWrong) {
  for (const auto& [form, part] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"{}", "type"},
           {R"({"type":"weekly"})", "type \"weekly\": date, interval"},
           {R"({"type":"cron"})", "an expression"},
           {R"({"type":"cron","expression":"61 * * * *"})", "minute \"61\": 0 to 59"},
           {R"({"type":"cron","expression":"* * * * *","dst_gab":"skip"})", "member \"dst_gab\""},
           {R"({"type":"cron","expression":"* * * * *","zone":"Mars/Olympus"})", "Mars/Olympus"},
           {R"({"type":"cron","expression":5})", "a string"},
           {R"({"type":"date","time":"2026-02-30"})", "no such date"},
           {R"({"type":"interval"})", "at least 1 ms"},
           {R"({"type":"interval","hours":-1})", "hours \"-1\""},
           {R"({"type":"interval","every":"1h","minutes":30})", "an `every` already"},
           {R"({"type":"cron","fields":5,"expression":"0 9 * * *"})", "fields are an object"},
           {R"({"type":"cron","expression":"0 9 * * *","zone":"UTC","zone":"Asia/Tokyo"})",
            "member \"zone\" is there twice"},
           {R"({"type":"or","triggers":[{"type":"date","time":"2026-01-01","time":"2027-01-01"}]})",
            "member \"time\" is there twice"},
           {R"({"type":"interval","hours":1,"start":"2026-01-02","end":"2026-01-01"})", "end \"2026-01-01\""},
           {R"({"type":"calendar","days":1})", "start_date"},
           {R"({"type":"and"})", "a list of triggers"},
           {R"({"type":"and","triggers":[5]})", "each is an object"},
           {R"({"type":"date","time":"2026-01-01","seed":"x"})", "seed \"x\""},
           {"{\"type\":", "no JSON object"}}) {
    EXPECT_NE(error_of(form).find(part), std::string::npos) << form << " gives: " << error_of(form);
  }
  std::string nested = R"({"type":"cron","expression":"* * * * *"})";
  for (int i = 0; i < 12; ++i) nested = R"({"type":"or","triggers":[)" + nested + "]}";
  EXPECT_NE(error_of(nested), "");
}

TEST(TriggerJson, PartsHaveTheZoneOfWhatTheyArePartsOf) {
  const auto first = [](std::string_view form) {
    auto trigger = Trigger::from_json(form);
    EXPECT_TRUE(trigger) << trigger.error().message;
    return trigger->to_json();
  };
  for (const std::string type : {"or", "and"}) {
    const std::string open = R"({"type":")" + type + R"(","zone":"America/New_York","triggers":[)";
    EXPECT_NE(first(open + R"({"type":"cron","expression":"0 9 * * *"}]})").find(R"("zone":"America/New_York")"),
              std::string::npos);
    EXPECT_NE(first(open + R"({"type":"cron","expression":"0 9 * * *","zone":"Asia/Tokyo"}]})")
                  .find(R"("zone":"Asia/Tokyo")"),
              std::string::npos);
    EXPECT_NE(first(open + R"({"type":"date","time":"2030-01-01T00:00:00"}]})").find("2030-01-01T05:00:00Z"),
              std::string::npos);
    EXPECT_NE(first(open + R"({"type":"or","triggers":[{"type":"cron","expression":"0 9 * * *"}]}]})")
                  .find("America/New_York"),
              std::string::npos);
  }
}

TEST(TriggerJson, AnErrorNamesTheMembersThatLeadToIt) {
  EXPECT_EQ(error_of(R"({"type":"or","triggers":[{"type":"cron","expression":"@daily"},{"type":"and","triggers":[
                {"type":"interval","every":"1h"},{"type":"cron","fields":{"minute":"61"}}]}]})"),
            R"(triggers[1].triggers[1].fields: minute "61": 0 to 59)");
  EXPECT_EQ(error_of(R"({"type":"or","triggers":[{"type":"calendar","days":1,"hour":25,"start_date":"2026-01-01"}]})"),
            R"(triggers[0].hour "25": a whole number, 0 to 23)");
  EXPECT_EQ(error_of(R"({"type":"or","triggers":[]})"), "triggers: or: at least one trigger");
  EXPECT_EQ(error_of(R"({"type":"date","time":"2026-01-01","jitter":"long"})").substr(0, 23),
            R"(jitter: duration "long")");
  EXPECT_EQ(error_of(R"({"type":"date"})"), "date: a time");
  EXPECT_EQ(error_of(R"({"type":"and","threshold":"5s"})"), "and, or: a list of triggers");
  EXPECT_EQ(
      error_of(R"({"type":"and","threshold":"2y","triggers":[{"type":"date","time":"2026-01-01"}]})").substr(0, 24),
      R"(threshold: duration "2y")");
  EXPECT_EQ(error_of("{}"), "a trigger needs a type: date, interval, calendar, cron, and, or");
}

TEST(TriggerJson, IntervalsThatAddUpToMoreThanTimeHoldsAreNoMistakeOfArithmetic) {
  const Trigger long_one =
      read(R"({"type":"interval","weeks":2085,"days":14600,"hours":350400,"minutes":21024000,"seconds":1261440000,
               "milliseconds":1261440000000,"anchor":"2026-01-01"})");
  EXPECT_EQ(long_one.next(at("2026-01-02")), std::nullopt);
}

TEST(TriggerKind, TellsWhatItIsMadeOf) {
  EXPECT_EQ(Trigger::at(at("2026-01-01")).date(), at("2026-01-01"));
  EXPECT_EQ(Trigger::every(90min, at("2026-01-01")).value().ending(at("2027-01-01")).interval(), Duration{90min});
  const Trigger monthly = Trigger::calendar({.months = 2, .start = date(2026, 1, 31)}).value();
  ASSERT_NE(monthly.calendar_interval(), nullptr);
  EXPECT_EQ(monthly.calendar_interval()->months, 2);
  const Trigger any = Trigger::any_of({read("@hourly"), monthly}).value();
  ASSERT_EQ(any.parts().size(), 2u);
  EXPECT_EQ(any.parts()[1], monthly);
  for (const Trigger& none : {any, read("@hourly")}) {
    EXPECT_EQ(none.date(), std::nullopt);
    EXPECT_EQ(none.interval(), std::nullopt);
    EXPECT_EQ(none.calendar_interval(), nullptr);
  }
  EXPECT_TRUE(monthly.parts().empty());
}

TEST(TriggerText, AnIntervalBeginsAnIntervalAfterTheAnchor) {
  const Trigger every = Trigger::parse("@every 90s", {}, {}, at("2026-01-01T00:00:10Z")).value();
  EXPECT_EQ(first_of(every, 2), "2026-01-01T00:01:40Z 2026-01-01T00:03:10Z");
  EXPECT_EQ(
      error_of("@every Xm"),
      "duration \"Xm\": a time such as 90s, 1h30m or 500ms, or a number of seconds, more than 0, up to 200 years");
}

TEST(TriggerTest, ATriggerHasAFewHundredPartsAtMost) {
  const auto of_parts = [](std::size_t count) {
    std::string parts;
    for (std::size_t i = 0; i < count; ++i) parts += R"({"type":"cron","expression":"* * * * *"},)";
    parts.pop_back();
    return R"({"type":"or","triggers":[)" + parts + "]}";
  };
  EXPECT_TRUE(Trigger::from_json(of_parts(Trigger::kMostParts)));
  EXPECT_EQ(Trigger::from_json(of_parts(Trigger::kMostParts + 1)).error().code, Errc::too_large);
  // Those of parts count, too.
  const std::string half = of_parts(Trigger::kMostParts / 2);
  const std::string twice = R"({"type":"or","triggers":[)" + half + "," + half + "]}";
  EXPECT_EQ(Trigger::from_json(twice).error().code, Errc::too_large);
}

}  // namespace
}  // namespace argiope
