// Dates of sitemaps and feeds: W3C's profile of ISO 8601 in all its precisions, and RFC 822's in all the forms that are
// met.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "argiope/base/clock.hpp"

namespace argiope {

struct FeedDate {
  enum class Precision : std::uint8_t { year, month, day, moment };
  WallTime at{};  // the beginning of what is meant; without a zone in UTC
  Precision precision = Precision::moment;
  friend bool operator==(const FeedDate&, const FeedDate&) = default;
};

// "1997", "1997-07", "1997-07-16", "1997-07-16T19:20+01:00", "…T19:20:30+01:00", "…T19:20:30.45+01:00" (W3C, "Date and
// Time Formats"). A space may stand for the "T", and the zone may be left out or have no colon. nullopt for anything
// else, and for what is before 1970 or after 2261.
std::optional<FeedDate> parse_w3c_date(std::string_view text) noexcept;

// "Sat, 07 Sep 2002 00:00:01 GMT" (RFC 822 with RFC 5322's years): the weekday, the seconds and the zone may be
// missing; years of two digits are 1970 to 2069; a zone of letters that is not known is UTC, as RFC 5322 says.
std::optional<FeedDate> parse_rfc822_date(std::string_view text) noexcept;

// Either.
std::optional<FeedDate> parse_feed_date(std::string_view text) noexcept;

// The last moment at which what has this date may have changed: of a day its end; of months and years, which say next
// to nothing, their beginning.
WallTime latest_of(const FeedDate& date) noexcept;

}  // namespace argiope
