// The one notation of spans, for options, files and what is printed.
#include <gtest/gtest.h>

#include "argiope/base/clock.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

TEST(DurationText, IsReadInUnitsFromWeeksToNanoseconds) {
  EXPECT_EQ(parse_duration("90s"), Duration{90s});
  EXPECT_EQ(parse_duration("1h30m"), Duration{90min});
  EXPECT_EQ(parse_duration("1.5h"), Duration{90min});
  EXPECT_EQ(parse_duration("2w 3d"), Duration{17 * 24h});
  EXPECT_EQ(parse_duration("250ms"), Duration{250ms});
  EXPECT_EQ(parse_duration(" 1us500ns "), Duration{1500ns});
  EXPECT_EQ(parse_duration("2 h 10 min"), Duration{130min}) << "as reports write it";
  EXPECT_EQ(parse_duration("5min30s"), Duration{330s});
  EXPECT_FALSE(parse_duration("5mi"));
}

TEST(DurationText, ABareNumberIsSeconds) {
  EXPECT_EQ(parse_duration("90"), Duration{90s});
  EXPECT_EQ(parse_duration("0.25"), Duration{250ms});
  EXPECT_EQ(parse_duration(".5"), Duration{500ms});
  EXPECT_EQ(parse_duration("1e3"), Duration{1000s});
  EXPECT_EQ(parse_span("3200000000"), Duration{3'200'000'000s});
}

TEST(DurationText, WhatIsNoSpanIsRefused) {
  for (const char* text :
       {"",      " ",   "s",   "-5s", "-5",   "+5",       "1.s",  "5 parsecs", "1e9s", "99999999w",      "1e12",
        "1e999", "nan", "NaN", "inf", "-inf", "infinity", "0x10", "1h-30m",    "1,5s", "9999999999999s", "200000d"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
    EXPECT_FALSE(parse_span(text)) << text;
  }
  EXPECT_EQ(parse_span("soon").error().message,
            "duration \"soon\": a time such as 90s, 1h30m or 500ms, or a number of seconds, up to 200 years");
}

TEST(DurationText, NothingIsASpanButNoDuration) {
  for (const char* text : {"0", "0s", "0.0", "0h0m"}) {
    EXPECT_EQ(parse_span(text), Duration{}) << text;
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(DurationText, ComesBack) {
  for (const Duration duration :
       {Duration{1ns}, Duration{90s}, Duration{25h}, Duration{1'234'567'891ns}, Duration{500 * 24h}}) {
    EXPECT_EQ(parse_duration(format_duration(duration)), duration) << format_duration(duration);
  }
  EXPECT_EQ(format_duration(90min), "1h30m");
  EXPECT_EQ(format_duration(0s), "0s");
}

TEST(DurationText, IsShortForPeople) {
  EXPECT_EQ(format_roughly(0s), "0ms");
  EXPECT_EQ(format_roughly(10us), "<1ms");
  EXPECT_EQ(format_roughly(12'345us), "12ms");
  EXPECT_EQ(format_roughly(1'234ms), "1.23s");
  EXPECT_EQ(format_roughly(59s), "59s");
  EXPECT_EQ(format_roughly(61s), "1m1s");
  EXPECT_EQ(format_roughly(2h + 5s), "2h");
  EXPECT_EQ(format_roughly(76h + 20min), "3d4h");
  EXPECT_EQ(format_roughly(800 * 24h), "800d");
}

}  // namespace
}  // namespace argiope
