// Amounts as people say them.
#pragma once

#include <string>

namespace argiope {

// "12.3 MB", "417 B".
std::string human_bytes(double bytes);
// "1h2m", "4.2s".
std::string human_duration(double seconds);

}  // namespace argiope
