// How people write RevisitBounds: "10m..7d".
#pragma once

#include <string_view>

#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"

namespace argiope {

// Errors: invalid_input, quoting the text.
Result<RevisitBounds> parse_revisit_bounds(std::string_view text);

}  // namespace argiope
