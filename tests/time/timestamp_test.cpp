#include <gtest/gtest.h>

#include "argiope/base/random.hpp"
#include "argiope/time/time_zone.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

TEST(Timestamp, IsWrittenWithTheZonesOffset) {
  const WallTime time{std::chrono::seconds{1'774'746'000}};
  EXPECT_EQ(format_timestamp(time), "2026-03-29T01:00:00Z");
  EXPECT_EQ(format_timestamp(time, *TimeZone::find("Europe/Berlin")), "2026-03-29T03:00:00+02:00");
  EXPECT_EQ(format_timestamp(time, *TimeZone::find("America/St_Johns")), "2026-03-28T22:30:00-02:30");
  EXPECT_EQ(format_timestamp(time + 5ms), "2026-03-29T01:00:00.005Z");
  EXPECT_EQ(format_timestamp(time + 5us), "2026-03-29T01:00:00.000005Z");
  EXPECT_EQ(format_timestamp(time + 5ns), "2026-03-29T01:00:00.000000005Z");
}

TEST(Timestamp, OfAnOffsetWithSecondsIsUtc) {
  EXPECT_EQ(format_timestamp(parse_timestamp("1901-01-01T00:00:00Z").value(), *TimeZone::find("Africa/Monrovia")),
            "1901-01-01T00:00:00Z");
}

TEST(Timestamp, IsReadWithAndWithoutAnOffset) {
  const TimeZone berlin = *TimeZone::find("Europe/Berlin");
  const WallTime time = parse_timestamp("2026-03-29T01:00:00Z").value();
  for (const char* text : {"2026-03-29T03:00:00+02:00", "2026-03-29 03:00:00+0200", "2026-03-29t01:00:00z",
                           "2026-03-28T22:30-02:30", "2026-03-29T03:00:00", "2026-03-29T02:10", " 2026-03-29T03 "}) {
    EXPECT_EQ(parse_timestamp(text, berlin).value_or(WallTime{}), time) << text;  // 02:10 is in the gap
  }
  EXPECT_EQ(parse_timestamp("2026-10-25T02:30:00", berlin).value(),
            parse_timestamp("2026-10-25T02:30:00+02:00").value());
  EXPECT_EQ(parse_timestamp("2026-03-29").value(), parse_timestamp("2026-03-29T00:00:00Z").value());
  EXPECT_EQ(parse_timestamp("2026-03-29T01:00:00.25Z"), time + 250ms);
}

TEST(Timestamp, SaysWhatIsWrong) {
  for (const char* text :
       {"", "tomorrow", "2026", "2026-3-1", "2026-02-30", "2026-13-01", "2026-00-01", "2026-01-00",
        "2026-01-01T24:00:00Z", "2026-01-01T00:60Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00+25:00", "2026-01-01T00:00:00Zzz", "1600-01-01", "2300-01-01", "2026-01-01T"}) {
    const auto time = parse_timestamp(text);
    ASSERT_FALSE(time) << text;
    EXPECT_EQ(time.error().code, Errc::invalid_input);
    EXPECT_NE(time.error().message.find(std::string("time \"") + text + "\""), std::string::npos)
        << time.error().message;
  }
  EXPECT_EQ(parse_timestamp("2026-02-30").error().message, "time \"2026-02-30\": there is no such date");
}

TEST(Timestamp, ComesBackFromItsText) {
  Random random(1);
  const TimeZone zones[] = {TimeZone{}, *TimeZone::find("Europe/Berlin"), *TimeZone::find("Asia/Kolkata")};
  for (int i = 0; i < 2000; ++i) {
    const WallTime time{Duration{random.between(0, 8'000'000'000'000'000'000)}};
    const TimeZone& zone = zones[random.below(3)];
    EXPECT_EQ(parse_timestamp(format_timestamp(time, zone)).value_or(WallTime{}), time);
  }
}

}  // namespace
}  // namespace argiope
