// 304 is an answer to those who asked whether something has changed: to others it says nothing of the page.
#pragma once

#include <algorithm>
#include <string_view>

#include "argiope/web/http.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

inline bool asks_whether_changed(const HttpRequest& request) {
  return std::ranges::any_of(request.headers, [](const auto& field) {
    return equals_lower(field.first, "if-none-match") || equals_lower(field.first, "if-modified-since");
  });
}

inline constexpr std::string_view kUnaskedNotModified = "HTTP 304, though it was not asked whether it has changed";

}  // namespace argiope
