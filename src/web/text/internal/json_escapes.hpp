// Escapes of JSON's strings that stand for code units of UTF-16: halves of surrogate pairs, which the parser refuses,
// are mended.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "web/text/internal/ascii.hpp"

namespace argiope {

inline constexpr std::size_t kUnitEscapeBytes = 6;  // of "\u1234"
inline constexpr std::string_view kReplacementEscape = "\\ufffd";

// The code unit of "\u1234" at the front of `text`; nullopt where none is.
constexpr std::optional<unsigned> unit_at_front(std::string_view text) noexcept {
  if (!text.starts_with("\\u") || text.size() < kUnitEscapeBytes) return std::nullopt;
  unsigned unit = 0;
  for (const char c : text.substr(2, 4)) {
    if (hex_value(c) < 0) return std::nullopt;
    unit = unit << 4 | static_cast<unsigned>(hex_value(c));
  }
  return unit;
}

constexpr bool is_high_half(unsigned unit) noexcept { return unit >= 0xd800 && unit < 0xdc00; }
constexpr bool is_low_half(unsigned unit) noexcept { return unit >= 0xdc00 && unit < 0xe000; }

}  // namespace argiope
