// Dates as Set-Cookie fields have them: whatever servers write, read as browsers read it (RFC 6265, 5.1.1). Dates of
// other fields follow a grammar: internal/http_date.hpp.
#pragma once

#include <optional>
#include <string_view>

#include "argiope/base/clock.hpp"

namespace argiope {

// nullopt for what is no date. One that lies beyond what a WallTime can hold is the nearest that it can.
// Cost: linear in the text.
std::optional<WallTime> parse_cookie_date(std::string_view text);

}  // namespace argiope
