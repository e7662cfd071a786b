// The canonical URL that a response names in its header.
#pragma once

#include <string_view>

#include "argiope/web/http.hpp"
#include "web/internal/ascii.hpp"
#include "web/internal/link_header.hpp"

namespace argiope {

// As it is written, of the first Link field that names one; empty without. Needs HttpRequest::keep_fields.
inline std::string_view canonical_field(const HttpResponse& response) noexcept {
  for (const auto& [name, value] : response.fields) {
    if (!equals_lower(name, "link")) continue;
    if (const std::string_view canonical = canonical_in_link_header(value); !canonical.empty()) return canonical;
  }
  return {};
}

}  // namespace argiope
