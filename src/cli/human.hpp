// Amounts and texts as people read them.
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// "12.3 MB", "417 B".
std::string human_bytes(double bytes);
// "1h2m", "4.2s".
std::string human_duration(double seconds);
// The first sentence of a text, without its full stop, on one line.
std::string first_sentence(std::string_view text);

}  // namespace argiope
