// Whether a body is text, and in which encoding.
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// A name of the Encoding Standard; empty for what is no text, by its type or, without one, by its first bytes.
std::string page_encoding(std::string_view content_type, std::string_view body);

}  // namespace argiope
