// Texts in lower case, whatever the locale: the letters of ASCII alone.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "web/text/internal/ascii.hpp"

namespace argiope {

inline std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), to_lower);
  return lower;
}

}  // namespace argiope
