#include <gtest/gtest.h>

#include <string>

#include "argiope/time/time_zone.hpp"
#include "argiope/time/trigger.hpp"

namespace argiope {
namespace {

// The next `count` times in UTC, as "2026-01-01T00:00:00Z …".
std::string next_of(std::string_view expression, std::string_view after, int count, const CronOptions& options = {},
                    std::string_view zone = "UTC") {
  const TimeZone where = TimeZone::find(zone).value();
  const auto trigger = Trigger::parse(expression, options, where);
  if (!trigger) return trigger.error().message;
  std::string out;
  WallTime at = parse_timestamp(after, where).value();
  for (int i = 0; i < count; ++i) {
    const auto next = trigger->next(at);
    if (!next) return out + (out.empty() ? "" : " ") + "no more";
    at = *next;
    out += (i > 0 ? " " : "") + format_timestamp(at, where);
  }
  return out;
}

std::string error_of(std::string_view expression, const CronOptions& options = {}) {
  const auto parsed = CronExpression::parse(expression, options);
  return parsed ? "" : parsed.error().message;
}

CronOptions dialect(CronDialect name) { return CronOptions::of(name); }

TEST(Cron, HasFiveFieldsAndIfWantedSecondsBeforeAndAYearAfterThem) {
  EXPECT_EQ(next_of("30 5 * * *", "2026-01-01T00:00:00Z", 1), "2026-01-01T05:30:00Z");
  EXPECT_EQ(next_of("15 30 5 * * *", "2026-01-01T00:00:00Z", 1), "2026-01-01T05:30:15Z");
  EXPECT_EQ(next_of("15 30 5 1 1 * 2030", "2026-01-01T00:00:00Z", 2), "2030-01-01T05:30:15Z no more");
}

TEST(Cron, TakesNamesListsRangesAndSteps) {
  EXPECT_EQ(next_of("0 0 1 feb,Nov *", "2026-01-01T00:00:00Z", 2), "2026-02-01T00:00:00Z 2026-11-01T00:00:00Z");
  EXPECT_EQ(next_of("0 8-18/5 * * *", "2026-01-01T00:00:00Z", 3),
            "2026-01-01T08:00:00Z 2026-01-01T13:00:00Z 2026-01-01T18:00:00Z");
  EXPECT_EQ(next_of("50/5 0 * * *", "2026-01-01T00:00:00Z", 3),
            "2026-01-01T00:50:00Z 2026-01-01T00:55:00Z 2026-01-02T00:50:00Z");
}

TEST(Cron, TakesNamesInFullInItsOwnDialect) {
  EXPECT_EQ(CronExpression::parse("0 0 * january-March Monday,friday-Sunday").value().first_at_or_after(LocalTime{}),
            CronExpression::parse("0 0 * 1-3 1,5-7").value().first_at_or_after(LocalTime{}));
  EXPECT_TRUE(CronExpression::parse("0 0 * * Wednesday#2"));
  EXPECT_FALSE(CronExpression::parse("0 0 * * Mond"));
  EXPECT_FALSE(CronExpression::parse("0 0 * * MONDAY")) << "as Cronos has it";
  EXPECT_FALSE(CronExpression::parse("0 0 * * Monday", CronOptions::of(CronDialect::vixie)));
  EXPECT_FALSE(CronExpression::parse("0 0 0 ? * Monday", CronOptions::of(CronDialect::quartz)));
}

TEST(Cron, TheLastWeekdayIsWrittenEitherWay) {
  const auto first = [](std::string_view text) {
    return CronExpression::parse(text).value().first_at_or_after(LocalTime{std::chrono::days{20'000}});
  };
  EXPECT_EQ(first("0 0 * * L5"), first("0 0 * * 5L"));
  EXPECT_EQ(first("0 0 * * Lfri"), first("0 0 * * friL"));
  EXPECT_TRUE(CronExpression::parse("0 0 * * 5#3,L5"));
  EXPECT_FALSE(CronExpression::parse("0 0 * * L8"));
  EXPECT_FALSE(CronExpression::parse("0 0 0 ? * L5", CronOptions::of(CronDialect::quartz)));
}

TEST(Cron, RangesMayWrapAround) {
  EXPECT_EQ(next_of("0 0 * * fri-mon", "2026-01-01T00:00:00Z", 5),
            "2026-01-02T00:00:00Z 2026-01-03T00:00:00Z 2026-01-04T00:00:00Z 2026-01-05T00:00:00Z 2026-01-09T00:00:00Z");
  EXPECT_EQ(next_of("0 22-1 * * *", "2026-01-01T00:30:00Z", 3),
            "2026-01-01T01:00:00Z 2026-01-01T22:00:00Z 2026-01-01T23:00:00Z");
}

TEST(Cron, AStepOnAWeekdayRangeIsKept) {
  EXPECT_EQ(next_of("0 0 * * mon-fri/2", "2026-01-04T00:00:00Z", 3),
            "2026-01-05T00:00:00Z 2026-01-07T00:00:00Z 2026-01-09T00:00:00Z");
}

TEST(Cron, SundayIsZeroAndSeven) {
  for (const char* sunday : {"0 0 * * 0", "0 0 * * 7", "0 0 * * sun", "0 0 * * 7-7"}) {
    EXPECT_EQ(next_of(sunday, "2026-01-01T00:00:00Z", 1), "2026-01-04T00:00:00Z") << sunday;
  }
  EXPECT_EQ(next_of("0 0 * * 6-7", "2026-01-01T00:00:00Z", 2), "2026-01-03T00:00:00Z 2026-01-04T00:00:00Z");
}

TEST(Cron, DaysCountFromTheEndOfTheMonth) {
  EXPECT_EQ(next_of("0 0 L * *", "2026-01-31T00:00:00Z", 2), "2026-02-28T00:00:00Z 2026-03-31T00:00:00Z");
  EXPECT_EQ(next_of("0 0 L-3 * *", "2026-01-01T00:00:00Z", 2), "2026-01-28T00:00:00Z 2026-02-25T00:00:00Z");
  EXPECT_EQ(next_of("0 0 28-L 2 *", "2024-01-01T00:00:00Z", 3),
            "2024-02-28T00:00:00Z 2024-02-29T00:00:00Z 2025-02-28T00:00:00Z");
}

TEST(Cron, FindsTheWorkingDayNearestToADay) {
  EXPECT_EQ(next_of("0 0 1W 8 *", "2026-01-01T00:00:00Z", 1), "2026-08-03T00:00:00Z");  // a Saturday
  EXPECT_EQ(next_of("0 0 15W 8 *", "2026-01-01T00:00:00Z", 1), "2026-08-14T00:00:00Z");
  EXPECT_EQ(next_of("0 0 LW 5 *", "2026-01-01T00:00:00Z", 1), "2026-05-29T00:00:00Z");
}

TEST(Cron, FindsTheNthAndTheLastWeekday) {
  EXPECT_EQ(next_of("0 0 * * fri#3", "2026-01-01T00:00:00Z", 2), "2026-01-16T00:00:00Z 2026-02-20T00:00:00Z");
  EXPECT_EQ(next_of("0 0 * * 5L", "2026-01-01T00:00:00Z", 2), "2026-01-30T00:00:00Z 2026-02-27T00:00:00Z");
  EXPECT_EQ(next_of("0 0 * * mon#5", "2026-01-01T00:00:00Z", 1), "2026-03-30T00:00:00Z");
}

TEST(Cron, EitherDayFieldIsEnoughUnlessBothAreAskedFor) {
  CronOptions both;
  both.dom_dow = DomDow::both;
  EXPECT_EQ(next_of("0 0 13 * fri", "2026-01-01T00:00:00Z", 2), "2026-01-02T00:00:00Z 2026-01-09T00:00:00Z");
  EXPECT_EQ(next_of("0 0 13 * fri", "2026-01-01T00:00:00Z", 2, both), "2026-02-13T00:00:00Z 2026-03-13T00:00:00Z");
  // Vixie cron: a field that begins with a star restricts the other one.
  EXPECT_EQ(next_of("0 0 */2 * fri", "2026-01-01T00:00:00Z", 1), "2026-01-02T00:00:00Z");
  EXPECT_EQ(next_of("0 0 */2 * fri", "2026-01-01T00:00:00Z", 1, dialect(CronDialect::vixie)), "2026-01-09T00:00:00Z");
}

TEST(Cron, MacrosMeanTheSameInEveryDialect) {
  for (const CronDialect name :
       {CronDialect::argiope, CronDialect::vixie, CronDialect::quartz, CronDialect::apscheduler}) {
    EXPECT_EQ(next_of("@weekly", "2026-01-01T00:00:00Z", 1, dialect(name)), "2026-01-04T00:00:00Z") << to_string(name);
    EXPECT_EQ(next_of("@yearly", "2026-01-01T00:00:00Z", 1, dialect(name)), "2027-01-01T00:00:00Z");
  }
}

TEST(Cron, ADateThatDoesNotExistNeverComes) {
  for (const char* never : {"0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 L-30 2 *"}) {
    EXPECT_TRUE(CronExpression::parse(never)->never()) << never;
    EXPECT_EQ(next_of(never, "1970-01-01T00:00:00Z", 1), "no more");
    EXPECT_EQ(Trigger::parse(never)->previous(WallTime::max()), std::nullopt);
  }
  EXPECT_FALSE(CronExpression::parse("0 0 29 2 *")->never());
}

TEST(Cron, RareDatesAreFoundHoweverFar) {
  CronOptions both;
  both.dom_dow = DomDow::both;
  EXPECT_EQ(next_of("0 0 29 2 mon", "2072-03-01T00:00:00Z", 1, both), "2112-02-29T00:00:00Z");
  EXPECT_EQ(next_of("59 59 23 31 12 * 2199", "1970-01-01T00:00:00Z", 2), "2199-12-31T23:59:59Z no more");
}

TEST(Cron, ErrorsPointAtThePart) {
  EXPECT_EQ(error_of("61 * * * *"), "minute \"61\": 0 to 59");
  EXPECT_EQ(error_of("0 5,24 * * *"), "hour \"24\": 0 to 23");
  EXPECT_EQ(error_of("* * * foo *"), "month \"foo\": 1 to 12, or jan to dec");
  EXPECT_EQ(error_of("* * * * 8"), "day-of-week \"8\": 0 to 7, or sun to sat");
  EXPECT_EQ(error_of("* * * * mon#6"), "day-of-week \"mon#6\": a weekday, #, and 1 to 5");
  EXPECT_EQ(error_of("*/0 * * * *"), "minute \"*/0\": a step of 1 to 59");
  EXPECT_EQ(error_of("* * 40W * *"), "day-of-month \"40W\": W follows one day, 1 to 31, or L");
  EXPECT_EQ(error_of("0 0 0 1 1 * 1969"), "year \"1969\": 1970 to 2199");
  EXPECT_NE(error_of("* * *").find("3 fields where there should be 5 to 7"), std::string::npos);
  EXPECT_NE(error_of("@reboot").find("@hourly"), std::string::npos);
  EXPECT_NE(error_of("TZ=Mars/Olympus * * * * *").find("Mars/Olympus"), std::string::npos);
  EXPECT_NE(error_of(std::string(5000, '*')).find("at most 4096"), std::string::npos);
}

TEST(Cron, AZoneMayStandBeforeTheExpression) {
  EXPECT_EQ(next_of("CRON_TZ=Asia/Tokyo 0 9 * * *", "2026-01-01T00:00:00Z", 1), "2026-01-02T00:00:00Z");
  EXPECT_EQ(CronExpression::parse("TZ=Asia/Tokyo 0 9 * * *")->zone()->name(), "Asia/Tokyo");
}

TEST(CronOfQuartz, CountsWeekdaysFromSundayOneAndWantsAQuestionMark) {
  const CronOptions quartz = dialect(CronDialect::quartz);
  EXPECT_EQ(next_of("0 0 12 ? * 2", "2026-01-01T00:00:00Z", 1, quartz), "2026-01-05T12:00:00Z");
  EXPECT_EQ(next_of("0 0 12 ? * L", "2026-01-01T00:00:00Z", 1, quartz), "2026-01-03T12:00:00Z");
  EXPECT_EQ(next_of("0 0 12 ? * 6L", "2026-01-01T00:00:00Z", 1, quartz), "2026-01-30T12:00:00Z");
  EXPECT_NE(error_of("0 0 12 * * *", quartz).find("must be ?"), std::string::npos);
  EXPECT_NE(error_of("0 0 12 ? * ?", quartz).find("must be ?"), std::string::npos);
  EXPECT_NE(error_of("0 12 ? * 2", quartz).find("6 or 7"), std::string::npos);
}

TEST(CronOfQuartz, LStandsAloneAmongWeekdays) {
  const CronOptions quartz = CronOptions::of(CronDialect::quartz);
  for (const char* wrong : {"0 43 9 ? * SAT,SUN,L", "0 43 9 ? * 6,7,L", "0 43 9 ? * L,2", "0 43 9 ? * 2,5L"}) {
    EXPECT_FALSE(CronExpression::parse(wrong, quartz)) << wrong;
  }
  EXPECT_TRUE(CronExpression::parse("0 43 9 ? * 5L", quartz));
  EXPECT_TRUE(CronExpression::parse("0 43 9 ? * L", quartz));
}

TEST(CronOfApscheduler, TakesKeywordsAndCountsWeekdaysFromMondayZero) {
  const CronOptions apscheduler = dialect(CronDialect::apscheduler);
  EXPECT_EQ(next_of("day_of_week=0 hour=12", "2026-01-01T00:00:00Z", 1, apscheduler), "2026-01-05T12:00:00Z");
  EXPECT_EQ(next_of("day='last fri, 1st mon', hour = 5", "2026-01-01T00:00:00Z", 2, apscheduler),
            "2026-01-05T05:00:00Z 2026-01-30T05:00:00Z");
  EXPECT_EQ(next_of("day=last sun hour=5", "2026-01-01T00:00:00Z", 1, apscheduler), "2026-01-25T05:00:00Z");
  EXPECT_EQ(next_of("week=53 day_of_week=fri", "2026-01-02T00:00:00Z", 1, apscheduler), "2027-01-01T00:00:00Z");
  EXPECT_EQ(error_of("hour=25", apscheduler), "hour \"25\": 0 to 23");
  EXPECT_EQ(error_of("hours=2", apscheduler),
            "field \"hours\": year, month, day, week, day_of_week, hour, minute or second");
  EXPECT_EQ(error_of("hour=2 hour=3", apscheduler), "hour \"3\": the field is there twice");
  EXPECT_FALSE(CronExpression::from_fields({{"day", "last-3"}}));  // never `last` with the rest lost
}

TEST(CronOfApscheduler, FromCrontabNamesTheWeekdays) {
  const CronFields wanted{{"hour", "5"}, {"minute", "0"}, {"day", "*"}, {"month", "*"}, {"day_of_week", "mon-fri"}};
  EXPECT_EQ(fields_of_crontab("0 5 * * 1-5"), wanted);
  EXPECT_FALSE(fields_of_crontab("0 5 * *"));
  EXPECT_FALSE(fields_of_crontab("0 25 * * *"));
}

TEST(CronOfSystemd, HasANormalForm) {
  const auto normal = [](std::string_view text) {
    const auto parsed = CronExpression::parse(text, CronOptions::of(CronDialect::systemd));
    return parsed ? parsed->text() : parsed.error().message;
  };
  EXPECT_EQ(normal("weekly"), "Mon *-*-* 00:00:00");
  EXPECT_EQ(normal("Sat..Sun 9:5"), "Sat,Sun *-*-* 09:05:00");
  EXPECT_EQ(normal(normal("Mon,Wed..Fri *-*~3 */2:00 Europe/Berlin")), "Mon,Wed..Fri *-*~03 00/2:00:00 Europe/Berlin");
  EXPECT_EQ(normal("*-13-01"), "month \"13\": 1 to 12");
}

TEST(CronOfSystemd, CountsDaysFromTheEndAndFractionsOfSeconds) {
  const CronOptions systemd = dialect(CronDialect::systemd);
  EXPECT_EQ(next_of("*-02~03", "2026-01-01T00:00:00Z", 1, systemd), "2026-02-26T00:00:00Z");
  EXPECT_EQ(next_of("*-*-* 00:00:59/0.4", "2026-01-01T00:00:00Z", 4, systemd),
            "2026-01-01T00:00:59Z 2026-01-01T00:00:59.400Z 2026-01-01T00:00:59.800Z 2026-01-02T00:00:59Z");
}

TEST(CronOfSystemd, RangesEndWithTheLastOfTheirSteps) {
  const CronOptions systemd = CronOptions::of(CronDialect::systemd);
  const auto normal = [&](std::string_view text) { return CronExpression::parse(text, systemd).value().text(); };
  EXPECT_EQ(normal("*-*~1..6/2"), "*-*~01..05/2 00:00:00");
  const auto day = [&](std::string_view text) {
    // January 2026 has 31 days.
    const auto found =
        CronExpression::parse(text, systemd)
            .value()
            .first_at_or_after(LocalTime{std::chrono::sys_days{std::chrono::year{2026} / 1 / 20}.time_since_epoch()});
    return found.value().time_since_epoch() / std::chrono::hours{24} -
           std::chrono::sys_days{std::chrono::year{2025} / 12 / 31}.time_since_epoch().count();
  };
  EXPECT_EQ(day("*-*~1..6/2"), 27) << "the fifth, third and first day from the end";
  EXPECT_EQ(day("*-*~2..5"), 27);
  for (const char* wrong : {"00:00:00.0..00.9", "*-*~5/5", "*-*~3/7", "2016~11-22", "*-*~29"}) {
    EXPECT_FALSE(CronExpression::parse(wrong, systemd)) << wrong;
  }
  EXPECT_TRUE(CronExpression::parse("*-*~5/4", systemd));
  EXPECT_TRUE(CronExpression::parse("*-*~7/1", systemd));
  EXPECT_TRUE(CronExpression::parse("00:00:1.0..3.8", systemd));
}

TEST(CronDaylightSaving, RunsWhatTheClockLeavesOutAtTheFirstInstantAfterIt) {
  EXPECT_EQ(next_of("30 2 * * *", "2026-03-28T12:00:00+01:00", 2, {}, "Europe/Berlin"),
            "2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00");
  // Once, however much is left out, and however it meets the times after it.
  EXPECT_EQ(next_of("*/20 2,3 * * *", "2026-03-29T00:00:00+01:00", 2, {}, "Europe/Berlin"),
            "2026-03-29T03:00:00+02:00 2026-03-29T03:20:00+02:00");
}

TEST(CronDaylightSaving, ShiftsOrSkipsItInstead) {
  CronOptions options;
  options.dst_gap = DstGap::shift;
  EXPECT_EQ(next_of("30 2,3 * * *", "2026-03-28T12:00:00+01:00", 2, options, "Europe/Berlin"),
            "2026-03-29T03:30:00+02:00 2026-03-30T02:30:00+02:00");
  EXPECT_EQ(next_of("30 2 * * *", "2026-03-29T03:10:00+02:00", 1, options, "Europe/Berlin"),
            "2026-03-29T03:30:00+02:00");
  options.dst_gap = DstGap::skip;
  EXPECT_EQ(next_of("30 2 * * *", "2026-03-28T12:00:00+01:00", 1, options, "Europe/Berlin"),
            "2026-03-30T02:30:00+02:00");
  // Never again, where only the skipped hour would do.
  options.dom_dow = DomDow::both;
  EXPECT_EQ(next_of("30 2 25-31 3 sun", "2026-01-01T00:00:00Z", 1, options, "Europe/Berlin"), "no more");
}

TEST(CronDaylightSaving, RunsFixedTimesOnceAndFollowsElapsedTimeOtherwise) {
  EXPECT_EQ(next_of("30 2 * * *", "2026-10-24T12:00:00+02:00", 2, {}, "Europe/Berlin"),
            "2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00");
  EXPECT_EQ(next_of("30 * * * *", "2026-10-25T02:00:00+02:00", 3, {}, "Europe/Berlin"),
            "2026-10-25T02:30:00+02:00 2026-10-25T02:30:00+01:00 2026-10-25T03:30:00+01:00");
  CronOptions second;
  second.dst_overlap = DstOverlap::second;
  EXPECT_EQ(next_of("30 * * * *", "2026-10-25T01:30:00+02:00", 2, second, "Europe/Berlin"),
            "2026-10-25T02:30:00+01:00 2026-10-25T03:30:00+01:00");
}

TEST(CronDaylightSaving, FindsADayThatBeginsAfterMidnightAndADayThatIsNot) {
  EXPECT_EQ(next_of("0 0 * * *", "2026-04-23T12:00:00+02:00", 2, {}, "Africa/Cairo"),
            "2026-04-24T01:00:00+03:00 2026-04-25T00:00:00+03:00");
  EXPECT_EQ(next_of("0 12 * * *", "2011-12-29T12:00:00-10:00", 2, {}, "Pacific/Apia"),
            "2011-12-31T00:00:00+14:00 2011-12-31T12:00:00+14:00");
}

TEST(CronOptionNames, AreReadAndListed) {
  EXPECT_EQ(parse_cron_dialect("quartz"), CronDialect::quartz);
  EXPECT_EQ(parse_cron_dialect("kron").error().message,
            "dialect \"kron\": argiope, vixie, quartz, apscheduler or systemd");
  EXPECT_EQ(parse_dom_dow("and"), DomDow::both);
  EXPECT_EQ(parse_dst_gap("jump").error().message, "dst_gap \"jump\": next, shift or skip");
  EXPECT_EQ(parse_dst_overlap("both"), DstOverlap::both);
}

}  // namespace
}  // namespace argiope
