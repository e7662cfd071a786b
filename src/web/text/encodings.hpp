// The encodings of the WHATWG Encoding Standard: names, labels, and which of ICU's converters is meant. Private to the
// charset code.
#pragma once

#include <string_view>

namespace argiope {

struct Encoding {
  std::string_view name;
  // ICU's names, literals; empty where ICU has no such converter and transcode.cpp knows what to do.
  std::string_view decoder;
  std::string_view encoder;
  // Separated by spaces, lower case.
  std::string_view labels;
};

// "Get an encoding": null when `label` is none.
const Encoding* find_encoding(std::string_view label) noexcept;

// Those the rest of the code asks for by name.
extern const Encoding& kUtf8;
extern const Encoding& kWindows1252;
extern const Encoding& kUtf16le;
extern const Encoding& kUtf16be;

bool is_utf16(const Encoding& encoding) noexcept;
bool is_ascii_compatible(const Encoding& encoding) noexcept;

}  // namespace argiope
