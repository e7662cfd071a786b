// The names of statuses.
#pragma once

#include <string_view>

namespace argiope {

// "Not Found"; "Unknown" for a status without a name.
std::string_view reason_phrase(int status) noexcept;

}  // namespace argiope
