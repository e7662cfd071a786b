// Dates in HTTP headers (RFC 9110, 5.6.7) and Retry-After (10.2.3).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"

namespace argiope {

// IMF-fixdate, RFC 850 or asctime; nullopt for anything else. Of the two-digit years of RFC 850,
// 70 to 99 are read as 19xx and the others as 20xx. Years before 1678 and after 2261 are the beginning and the end of
// those.
std::optional<WallTime> parse_http_date(std::string_view text);
// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string format_http_date(WallTime time);

// The longest wait a server can ask for; a longer one is cut to it.
inline constexpr Duration kLongestRetryAfter = std::chrono::hours{24};
// Seconds or a date, also one of the year 9999; and as servers write them that do not keep to RFC 9110: "120.0",
// "120s", dates with another zone or without one, dates by ISO 8601. nullopt for 0, for a date in the past, and when
// there is nothing usable.
std::optional<Duration> parse_retry_after(std::string_view value, WallTime now);

}  // namespace argiope
