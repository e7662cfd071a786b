#include "base/internal/rfc3339.hpp"

#include <gtest/gtest.h>

#include <string>

namespace argiope {
namespace {

using namespace std::chrono_literals;

WallTime at(std::int64_t ms) { return WallTime{std::chrono::milliseconds{ms}}; }

TEST(Rfc3339, ReadsTheExamplesOfTheStandard) {  // RFC 3339, 5.8
  EXPECT_EQ(parse_rfc3339("1985-04-12T23:20:50.52Z"), at(482196050520));
  EXPECT_EQ(parse_rfc3339("1996-12-19T16:39:57-08:00"), at(851042397000));
  EXPECT_EQ(parse_rfc3339("1990-12-31T23:59:60Z"), at(662688000000));
  EXPECT_EQ(parse_rfc3339("1990-12-31T15:59:60-08:00"), at(662688000000));
  EXPECT_FALSE(parse_rfc3339("1937-01-01T12:00:27.87+00:20"));  // before there were times
  EXPECT_EQ(parse_rfc3339("2026-01-01 00:00:00z"), at(1767225600000));
  EXPECT_EQ(parse_rfc3339("2024-02-29T00:00:00+05:30"), at(1709145000000));
}

TEST(Rfc3339, DropsWhatIsBelowANanosecond) {
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00.0000000019Z"), WallTime{1ns});
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00.123456789123456789123456789Z"), WallTime{123456789ns});
}

// A request may have megabytes of them.
TEST(Rfc3339, LooksAtEachDigitOnce) {
  const std::string digits(2'000'000, '1');
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00." + digits + "Z"), WallTime{111111111ns});
  EXPECT_FALSE(parse_rfc3339(digits));
}

TEST(Rfc3339, RefusesWhatIsNoTime) {
  for (const char* text : {"",
                           "now",
                           "2026-01-01",
                           "2026-01-01T00:00:00",
                           "2026-01-01T00:00Z",
                           "2026-1-01T00:00:00Z",
                           "2026-02-29T00:00:00Z",
                           "2026-00-01T00:00:00Z",
                           "2026-13-01T00:00:00Z",
                           "2026-01-32T00:00:00Z",
                           "2026-01-01T24:00:00Z",
                           "2026-01-01T00:60:00Z",
                           "2026-01-01T00:00:61Z",
                           "2026-01-01T00:00:00.Z",
                           "2026-01-01T00:00:00Z ",
                           "2026-01-01T00:00:00+1:00",
                           "2026-01-01T00:00:00+24:00",
                           "2026-01-01T00:00:00+0100",
                           "+026-01-01T00:00:00Z",
                           "1969-12-31T23:59:59Z",
                           "1970-01-01T00:00:00+00:01",
                           "2263-01-01T00:00:00Z",
                           "9999-12-31T23:59:59Z"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
}

TEST(Rfc3339, WritesWhatItReads) {
  EXPECT_EQ(to_rfc3339(at(0)), "1970-01-01T00:00:00Z");
  EXPECT_EQ(to_rfc3339(at(1767225600250)), "2026-01-01T00:00:00.250Z");
  EXPECT_EQ(to_rfc3339(WallTime{999'999ns}), "1970-01-01T00:00:00Z");
  for (const std::int64_t ms : {0LL, 1LL, 1709145000000LL, 9223372035999LL}) {
    EXPECT_EQ(parse_rfc3339(to_rfc3339(at(ms))), at(ms)) << ms;
  }
  EXPECT_EQ(to_rfc3339(WallTime::max()).substr(0, 10), "2262-04-11");
}

}  // namespace
}  // namespace argiope
