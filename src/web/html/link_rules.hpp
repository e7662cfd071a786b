// Lists of words: shared by all that read pages.
#pragma once

#include <string_view>

#include "web/text/internal/ascii.hpp"

namespace argiope {

constexpr bool has_word(std::string_view list, std::string_view lower) {
  bool found = false;
  for_each_token(list, is_space, [&](std::string_view word) { found = found || equals_lower(word, lower); });
  return found;
}

}  // namespace argiope
