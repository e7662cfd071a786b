// Walking over UTF-8 that may be broken.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace argiope {

// The length of the well-formed character at the front of `text` (not empty), or 0 when the first byte begins none.
inline std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80;   // no overlong forms
    const unsigned high = first == 0xed ? 0x9f : 0xbf;  // no surrogates
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xf4 ? 0x8f : 0xbf;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

// The code point of one whole, well-formed character.
inline char32_t code_point_of(std::string_view character) noexcept {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first;
  char32_t point = first & (0x7fu >> character.size());
  for (const char c : character.substr(1)) point = point << 6 | (static_cast<unsigned char>(c) & 0x3fu);
  return point;
}

inline bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// The same text with U+FFFD for what is not UTF-8.
inline std::string to_valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    valid += length == 0 ? std::string_view{"\xef\xbf\xbd"} : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return valid;
}

// How many characters there are: bytes that continue none.
inline std::size_t characters_in(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

// The front of `text`: at most `most` bytes, and shorter where the cut would go through a well-formed character.
inline std::string_view cut_between_characters(std::string_view text, std::size_t most) noexcept {
  if (text.size() <= most) return text;
  for (std::size_t back = 1; back < 4 && back <= most; ++back) {
    const std::size_t length = utf8_length(text.substr(most - back));
    if (length == 0) continue;
    return text.substr(0, length > back ? most - back : most);
  }
  return text.substr(0, most);
}

}  // namespace argiope
