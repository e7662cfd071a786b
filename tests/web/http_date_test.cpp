#include "web/http/internal/http_date.hpp"

#include <gtest/gtest.h>

namespace argiope {
namespace {

using namespace std::chrono_literals;

// RFC 9110, 5.6.7: the same instant in the three formats.
constexpr WallTime kInstant{784111777s};

TEST(Rfc9110Date, IsReadInAllThreeFormats) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), kInstant);
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT"), kInstant);
  EXPECT_EQ(parse_http_date("Sun Nov  6 08:49:37 1994"), kInstant);
}

TEST(Rfc9110Date, IsWrittenInTheFirst) {
  EXPECT_EQ(format_http_date(kInstant), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(parse_http_date(format_http_date(WallTime{1767225600s})), WallTime{1767225600s});
}

TEST(Rfc9110Date, OfAYearThatCannotBeCountedIsTheLastOrTheFirst) {
  using namespace std::chrono;
  EXPECT_EQ(parse_http_date("Fri, 31 Dec 9999 23:59:59 GMT"), WallTime{sys_days{2261y / 12 / 31}});
  EXPECT_EQ(parse_http_date("Mon, 01 Jan 0001 00:00:00 GMT"), WallTime{sys_days{1678y / 1 / 1}});
}

TEST(Rfc9110Date, IsNothingElse) {
  for (const char* text :
       {"", "tomorrow", "Sun, 06 Nov 1994 08:49:37", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:00:00 GMT",
        "Sun, 31 Feb 9994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT.", ",", "Sun, "}) {
    EXPECT_EQ(parse_http_date(text), std::nullopt) << text;
  }
}

TEST(Rfc9110RetryAfter, IsSecondsOrADateAndBounded) {
  EXPECT_EQ(parse_retry_after("120", kInstant), 120s);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:50:37 GMT", kInstant), 60s);
  EXPECT_EQ(parse_retry_after("0", kInstant), std::nullopt) << "the caller's own wait counts";
  EXPECT_EQ(parse_retry_after("000", kInstant), std::nullopt);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:00:00 GMT", kInstant), std::nullopt);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1678 08:00:00 GMT", kInstant), std::nullopt);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", kInstant - 1ms), 1s) << "never less than a second";
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 2260 08:00:00 GMT", kInstant), kLongestRetryAfter);
  EXPECT_EQ(parse_retry_after("99999999999999999999999", kInstant), kLongestRetryAfter);
  EXPECT_EQ(parse_retry_after("-5", kInstant), std::nullopt);
  EXPECT_EQ(parse_retry_after("Fri, 31 Dec 9999 23:59:59 GMT", kInstant), kLongestRetryAfter);
  EXPECT_EQ(parse_retry_after("Mon, 01 Jan 0001 00:00:00 GMT", kInstant), std::nullopt);
  EXPECT_EQ(parse_retry_after("", kInstant), std::nullopt);
}

TEST(RetryAfter, IsReadAsServersWriteIt) {
  for (const char* value : {" 60 ", "60.0", "60s", "60 Seconds", "60, 60", "59.5", "Sun, 06 Nov 1994 08:50:37 UTC",
                            "Sun, 06 Nov 1994 08:50:37", "Sun, 06 Nov 1994 09:50:37 +0100", "06 Nov 1994 08:50:37 GMT",
                            "1994-11-06T08:50:37Z", "1994-11-06T09:50:37+01:00", "1994-11-06 08:50:37"}) {
    EXPECT_EQ(parse_retry_after(value, kInstant), 60s) << value;
  }
  EXPECT_EQ(parse_retry_after("0.2", kInstant), 1s);
  for (const char* value : {"0.0", "0s", "-60", "60 minutes", "60 apples", "soon", "60-70", "0x60"}) {
    EXPECT_EQ(parse_retry_after(value, kInstant), std::nullopt) << value;
  }
}

}  // namespace
}  // namespace argiope
