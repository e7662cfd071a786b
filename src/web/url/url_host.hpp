// The URL Standard's host parser: domains, IPv4 in all its disguises, IPv6.
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// Appends the serialised host of a special URL; false when the standard says failure. `input` is not empty.
bool parse_host(std::string_view input, std::string& out);

}  // namespace argiope
