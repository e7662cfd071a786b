// The kind of an answer's body, and its text for scanners, mostly as it stands.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "argiope/web/detail/charset.hpp"
#include "argiope/web/http.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {

inline bool is_style_sheet(const HttpResponse& response) noexcept {
  return equals_lower(parse_content_type(response.headers.content_type).type, "text/css");
}

// `body` without its byte order mark, in UTF-8: itself, where that is what it is or all is ASCII, else `transcoded`.
// Text that is no UTF-8 in a page that says it is stays as it is.
inline std::string_view page_in_utf8(std::string_view body, const CharsetDecision& charset, std::string& transcoded) {
  body.remove_prefix(charset.bom_length);
  if (charset.name == "UTF-8" || (charset.ascii_compatible && is_ascii(body))) return body;
  auto text = to_utf8(body, charset.name);
  if (!text) return body;
  transcoded = std::move(*text);
  return transcoded;
}

}  // namespace argiope
