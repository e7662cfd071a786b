// URLs that are the page themselves.
#pragma once

#include <string_view>

#include "web/text/internal/ascii.hpp"

namespace argiope {

inline constexpr std::string_view kDataScheme = "data:";

// Whether a URL is a `data:` one.
inline bool is_data_url(std::string_view url) noexcept { return starts_with_lower(url, kDataScheme); }

}  // namespace argiope
