#include "argiope/time/time_zone.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

using namespace std::chrono_literals;

WallTime at(std::string_view text) { return parse_timestamp(text).value(); }
LocalTime local(std::string_view text) { return LocalTime{at(std::string(text) + "Z").time_since_epoch()}; }
TimeZone zone(std::string_view name) { return TimeZone::find(name).value(); }

TEST(TimeZone, IsUtcUnlessFoundByName) {
  EXPECT_EQ(TimeZone{}.name(), "UTC");
  EXPECT_EQ(zone("UTC"), TimeZone{});
  EXPECT_EQ(TimeZone{}.next_transition(at("2026-01-01")), std::nullopt);
}

TEST(TimeZone, KnowsTheOldNamesToo) {
  EXPECT_EQ(zone("US/Eastern").to_local(at("2026-07-01T12:00:00Z")),
            zone("America/New_York").to_local(at("2026-07-01T12:00:00Z")));
}

TEST(TimeZone, NamesAnUnknownZoneInTheError) {
  for (const char* name : {"Mars/Olympus", "", "PST8", "/etc/passwd", "../zone.tab", "Fixed/UTC+01:00:00", "localtime",
                           "europe/berlin", "right/UTC", "zone.tab"}) {
    const auto found = TimeZone::find(name);
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().code, Errc::not_found);
    EXPECT_NE(found.error().message.find(std::string("\"") + name + "\""), std::string::npos) << found.error().message;
  }
}

TEST(TimeZone, TellsWhatTheClockShows) {
  const TimeZone berlin = zone("Europe/Berlin");
  EXPECT_EQ(berlin.to_local(at("2026-01-01T12:00:00Z")), local("2026-01-01T13:00:00"));
  EXPECT_EQ(berlin.offset_at(at("2026-07-01")), 2h);
  EXPECT_EQ(berlin.abbreviation_at(at("2026-07-01")), "CEST");
  EXPECT_EQ(zone("Asia/Kolkata").offset_at(at("2026-07-01")), 5h + 30min);
}

TEST(TimeZone, FindsTheOneInstantOfAnOrdinaryLocalTime) {
  const auto found = zone("Europe/Berlin").resolve(local("2026-07-01T12:00:00"));
  EXPECT_EQ(found.kind, TimeZone::LocalKind::unique);
  EXPECT_EQ(found.first, at("2026-07-01T10:00:00Z"));
}

TEST(TimeZone, SaysThatALocalTimeNeverComes) {
  const auto found = zone("Europe/Berlin").resolve(local("2026-03-29T02:30:00"));
  EXPECT_EQ(found.kind, TimeZone::LocalKind::gap);
  EXPECT_EQ(found.first, at("2026-03-29T03:30:00+02:00"));
  EXPECT_EQ(found.second, at("2026-03-29T01:30:00+01:00"));
  EXPECT_EQ(found.transition, at("2026-03-29T03:00:00+02:00"));
  EXPECT_EQ(zone("Europe/Berlin").resolve(local("2026-03-29T02:00:00")).kind, TimeZone::LocalKind::gap);
  EXPECT_EQ(zone("Europe/Berlin").resolve(local("2026-03-29T03:00:00")).kind, TimeZone::LocalKind::unique);
  EXPECT_EQ(zone("Europe/Berlin").resolve(local("2026-03-29T01:59:59")).kind, TimeZone::LocalKind::unique);
}

TEST(TimeZone, SaysThatALocalTimeComesTwice) {
  const auto found = zone("Europe/Berlin").resolve(local("2026-10-25T02:30:00"));
  EXPECT_EQ(found.kind, TimeZone::LocalKind::overlap);
  EXPECT_EQ(found.first, at("2026-10-25T02:30:00+02:00"));
  EXPECT_EQ(found.second, at("2026-10-25T02:30:00+01:00"));
  EXPECT_EQ(found.transition, at("2026-10-25T02:00:00+01:00"));
  EXPECT_EQ(zone("Europe/Berlin").resolve(local("2026-10-25T03:00:00")).kind, TimeZone::LocalKind::unique);
  EXPECT_EQ(zone("Europe/Berlin").resolve(local("2026-10-25T01:59:59")).kind, TimeZone::LocalKind::unique);
}

TEST(TimeZone, KnowsChangesOfHalfAnHourAndOfADay) {
  EXPECT_EQ(zone("Australia/Lord_Howe").resolve(local("2026-10-04T02:15:00")).kind, TimeZone::LocalKind::gap);
  EXPECT_EQ(zone("Australia/Lord_Howe").resolve(local("2026-10-04T02:30:00")).kind, TimeZone::LocalKind::unique);
  // Samoa crossed the date line and had no 30 December 2011.
  const auto samoa = zone("Pacific/Apia").resolve(local("2011-12-30T12:00:00"));
  EXPECT_EQ(samoa.kind, TimeZone::LocalKind::gap);
  EXPECT_EQ(samoa.transition, at("2011-12-31T00:00:00+14:00"));
}

TEST(TimeZone, HasPeriodsOfOneOffsetEndToEnd) {
  const TimeZone berlin = zone("Europe/Berlin");
  const auto summer = berlin.period_at(at("2026-07-01"));
  EXPECT_EQ(summer.begin, at("2026-03-29T01:00:00Z"));
  EXPECT_EQ(summer.end, at("2026-10-25T01:00:00Z"));
  EXPECT_EQ(summer.offset, 2h);
  EXPECT_EQ(summer.offset_before, 1h);
  EXPECT_EQ(summer.offset_after, 1h);
  EXPECT_EQ(berlin.period_at(summer.begin).begin, summer.begin);
  EXPECT_EQ(berlin.period_at(summer.begin - 1ns).end, summer.begin);
}

TEST(TimeZone, KnowsTheNextChangeEvenAfter2037) {
  const auto change = zone("America/New_York").next_transition(at("2190-01-01"));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->at, at("2190-03-14T03:00:00-04:00"));
  EXPECT_EQ(change->from, -5h);
  EXPECT_EQ(change->to, -4h);
}

TEST(TimeZone, AgreesWithItselfAboutEveryChangeOfEveryKind) {
  for (const char* name : {"Europe/Berlin", "America/New_York", "Africa/Casablanca", "Asia/Gaza", "Pacific/Chatham",
                           "Antarctica/Troll", "America/Caracas", "Europe/Dublin"}) {
    const TimeZone where = zone(name);
    int changes = 0;
    for (auto change = where.next_transition(at("1971-01-01")); change && change->at < at("2100-01-01");
         change = where.next_transition(change->at), ++changes) {
      EXPECT_EQ(where.offset_at(change->at), change->to);
      EXPECT_EQ(where.offset_at(change->at - 1ns), change->from);
      for (const Duration away : {Duration{-1h}, Duration{-1s}, Duration{0}, Duration{1s}, Duration{1h}}) {
        const WallTime time = change->at + away;
        const auto back = where.resolve(where.to_local(time));
        EXPECT_TRUE(back.first == time || back.second == time) << name << " " << format_timestamp(time);
        EXPECT_NE(back.kind, TimeZone::LocalKind::gap);
      }
    }
    EXPECT_GT(changes, 0) << name;
  }
}

}  // namespace
}  // namespace argiope
