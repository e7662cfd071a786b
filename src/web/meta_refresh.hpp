// The URL in the content of a `meta http-equiv=refresh`. Private to the web module.
#pragma once

#include <string_view>

namespace argiope {

// HTML standard, "shared declarative refresh steps". Empty when there is none, which means the page itself; else a part of
// `content`.
std::string_view refresh_url(std::string_view content) noexcept;

}  // namespace argiope
