// How people write the beginning of a path.
#pragma once

#include <string>
#include <string_view>

#include "argiope/base/error.hpp"

namespace argiope {

// "/docs/", as URLs spell it.
// Errors: invalid_input quoting the text and saying what is right.
Result<std::string> parse_path_prefix(std::string_view text);

}  // namespace argiope
