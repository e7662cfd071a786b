// Writing JSON without a tree: strings quoted as RFC 8259 wants them.
#pragma once

#include <string>
#include <string_view>

namespace argiope {

// Appends `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, so the result is always valid.
void append_json_string(std::string& out, std::string_view text);

}  // namespace argiope
