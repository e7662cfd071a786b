// Spans of time as text: one notation for options, files and what is printed.
#pragma once

#include <string>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

// "90s", "1h30m", "1.5h", "2w 3d", "250ms": numbers with the units w, d, h, m (or min), s, ms, us, ns. A bare number is
// seconds: "90", "0.5". From 0 to 200 years.
// Errors: invalid_input, quoting the text.
Result<Duration> parse_span(std::string_view text);
// The same, but more than 0.
Result<Duration> parse_duration(std::string_view text);
// "1h30m", which both read back; "0s" for nothing and less.
std::string format_duration(Duration duration);
// The same to three figures or so, for people: "3d4h", "1m30s", "1.25s", "12ms".
std::string format_roughly(Duration duration);

}  // namespace argiope
