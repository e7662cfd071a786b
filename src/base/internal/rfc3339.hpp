// Times as people and JSON write them: RFC 3339, "2026-01-31T12:00:05.250Z".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"

namespace argiope {

// In UTC, rounded down to milliseconds, which are left out when they are zero.
std::string to_rfc3339(WallTime time);
void append_rfc3339(std::string& out, WallTime time);
// The same with the milliseconds always there, so that every time is as long as the next.
std::string to_rfc3339_ms(WallTime time);

// Any offset, and fractions of a second of any length (digits below a nanosecond are dropped). A space or a small
// letter may stand for "T", as the RFC allows. A leap second counts as the second after it.
// nullopt for anything else, and for times before 1970 or after what a WallTime holds (2262).
std::optional<WallTime> parse_rfc3339(std::string_view text) noexcept;

}  // namespace argiope
