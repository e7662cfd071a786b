// Instants as text: RFC 3339, with the offset of a zone.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/time/time_zone.hpp"

namespace argiope {

// "2026-03-29T03:00:00+02:00"; with "Z" in UTC and where an offset has seconds, as it had before there were time zones.
// Fractions of a second only where there are some, in three, six or nine digits.
std::string format_timestamp(WallTime time, const TimeZone& zone = {});

// RFC 3339; also without an offset (then `zone` says what it means: the first of two such times, and the first instant
// after a gap), without seconds, without a time (midnight), and with a space for the T. Errc::invalid_input says what
// is wrong: `time "2026-02-30": there is no such date`.
Result<WallTime> parse_timestamp(std::string_view text, const TimeZone& zone = {});

}  // namespace argiope
