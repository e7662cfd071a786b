// The kinds of links by their names in reports and databases.
#pragma once

#include <optional>
#include <string_view>

#include "argiope/web/link_scanner.hpp"

namespace argiope {

// nullopt: no kind has that name.
inline std::optional<LinkKind> link_kind_named(std::string_view name) noexcept {
  for (int i = 0; i <= static_cast<int>(LinkKind::resource); ++i) {
    const auto kind = static_cast<LinkKind>(i);
    if (name == to_string(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace argiope
