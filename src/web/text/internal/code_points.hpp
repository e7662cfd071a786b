// A code point as UTF-8.
#pragma once

#include <cstdint>

namespace argiope {

// Appends the bytes of `c`, which is a character of Unicode, to a string or a vector of char.
template <class Bytes>
void append_utf8(std::uint32_t c, Bytes& out) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xE0 | c >> 12);
    } else {
      put(0xF0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3F));
    }
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

}  // namespace argiope
