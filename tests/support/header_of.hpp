#pragma once

#include <algorithm>
#include <string_view>

#include "argiope/web/http_server.hpp"

namespace argiope {

// Empty where the answer has no such header.
inline std::string_view header_of(const ServerResponse& response, std::string_view name) {
  const auto found = std::ranges::find(response.headers, name, [](const auto& header) { return header.first; });
  return found == response.headers.end() ? std::string_view{} : found->second;
}

}  // namespace argiope
