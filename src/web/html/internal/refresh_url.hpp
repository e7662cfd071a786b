// The meaning of a refresh: one rule for the element `meta` and for the header field.
#pragma once

#include <string_view>

#include "web/text/internal/ascii.hpp"

namespace argiope {

// The URL in the content of a `meta http-equiv=refresh`, or in a Refresh field (HTML standard, "shared declarative
// refresh steps"), as it is written there; empty when there is none, which means the page itself. A view into
// `content`.
inline std::string_view refresh_url(std::string_view content) {
  const auto skip = [&content](auto what) {
    while (!content.empty() && what(content.front())) content.remove_prefix(1);
  };
  const auto take = [&content](char lower) {
    const bool hit = !content.empty() && to_lower(content.front()) == lower;
    if (hit) content.remove_prefix(1);
    return hit;
  };
  skip(is_space);
  if (content.empty() || !(is_digit(content.front()) || content.front() == '.')) return {};
  skip([](char c) { return is_digit(c) || c == '.'; });
  if (content.empty() || !(is_space(content.front()) || content.front() == ';' || content.front() == ',')) return {};
  skip(is_space);
  if (!take(';')) take(',');
  skip(is_space);
  const std::string_view whole = content;
  if (take('u')) {
    if (!take('r') || !take('l')) return whole;
    skip(is_space);
    if (!take('=')) return whole;
    skip(is_space);
  }
  if (content.empty()) return {};
  const char quote = content.front();
  if (quote != '"' && quote != '\'') return content;
  content.remove_prefix(1);
  return content.substr(0, content.find(quote));
}

}  // namespace argiope
