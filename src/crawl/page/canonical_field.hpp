// The canonical URL that a response names in its header.
#pragma once

#include <string>
#include <string_view>

#include "argiope/web/http.hpp"
#include "argiope/web/url.hpp"
#include "web/html/internal/link_header.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/uri_text.hpp"

namespace argiope {

// As browsers read it, of the first Link field that names one; empty without. Needs HttpRequest::keep_fields.
inline std::string canonical_field(const Url& page, const HttpResponse& response) {
  for (const auto& [name, value] : response.fields) {
    if (!equals_lower(name, "link")) continue;
    if (const std::string_view canonical = canonical_in_link_header(value, page); !canonical.empty()) {
      return reference_of_bytes(canonical);
    }
  }
  return {};
}

}  // namespace argiope
