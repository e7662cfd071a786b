// Of header fields, what reading and writing of messages share.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "web/text/internal/ascii.hpp"

namespace argiope {

// RFC 9110, 5.6.2.
inline bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_alnum(c) || std::string_view("!#$%&'*+-.^_`|~").contains(c);
  });
}

inline void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace argiope
