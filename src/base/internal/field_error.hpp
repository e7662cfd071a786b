// How every reader of a form says which part of it is wrong.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "argiope/base/error.hpp"
#include "base/internal/printable.hpp"

namespace argiope::detail {

// `minute "61": 0 to 59`
inline std::unexpected<Error> bad_field(std::string_view field, std::string_view part, std::string_view why) {
  return fail(Errc::invalid_input, fmt::format("{} {}: {}", field, in_quotes(part), why));
}

}  // namespace argiope::detail
