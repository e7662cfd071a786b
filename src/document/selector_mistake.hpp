// What the parsers of selectors say of a mistake, in CSS and in XPath.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/utf8.hpp"

namespace argiope {

// Thrown inside a parser alone.
struct SelectorMistake {
  std::size_t at;  // in bytes
  std::string why;

  // `css "a[": a name is missing, at character 3`.
  std::unexpected<Error> in(std::string_view language, std::string_view text) const {
    return fail(Errc::invalid_input, fmt::format("{} {}: {}, at character {}", language, in_quotes(text), why,
                                                 characters_in(text.substr(0, at)) + 1));
  }
};

}  // namespace argiope
