#include "crawl/extract/numerals.hpp"

#include <algorithm>

#include "base/internal/utf8.hpp"

namespace argiope {
namespace {

// The zeros of scripts, each followed by its other nine digits (Unicode, general category Nd).
constexpr char32_t kZeros[] = {0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6,  0x0a66,  0x0ae6,  0x0b66,  0x0be6,
                               0x0c66, 0x0ce6, 0x0d66, 0x0de6, 0x0e50,  0x0ed0,  0x0f20,  0x1040,  0x1090,
                               0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80,  0x1b50,  0x1c40,  0xa620,  0xa8d0,
                               0xa9d0, 0xaa50, 0xabf0, 0xff10, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6};
constexpr char32_t kArabicDecimalSign = 0x066b;

struct SpelledSign {
  char32_t sign;
  char as;
};
constexpr SpelledSign kSigns[] = {{0x060c, ','}, {0x066c, '\''}, {0x2010, '-'}, {0x2011, '-'}, {0xfe63, '-'},
                                  {0xff08, '('}, {0xff09, ')'},  {0xff0b, '+'}, {0xff0c, ','}, {0xff0d, '-'},
                                  {0xff0e, '.'}, {0xff0f, '/'},  {0xff1a, ':'}};

struct WidthlessRange {
  char32_t first, last;
};
constexpr WidthlessRange kWidthless[] = {{0x061c, 0x061c}, {0x200b, 0x200f}, {0x202a, 0x202e},
                                         {0x2060, 0x2060}, {0x2066, 0x2069}, {0xfeff, 0xfeff}};

void append_ascii_numeral(std::string& out, std::string_view bytes, char decimal) {
  const char32_t character = code_point_of(bytes);
  for (const char32_t zero : kZeros) {
    if (character >= zero && character < zero + 10) return out.push_back(static_cast<char>('0' + (character - zero)));
  }
  if (character == kArabicDecimalSign) return out.push_back(decimal == '\0' ? '.' : decimal);
  const auto sign = std::ranges::find(kSigns, character, &SpelledSign::sign);
  if (sign != std::end(kSigns)) return out.push_back(sign->as);
  if (std::ranges::any_of(
          kWidthless, [&](const WidthlessRange& range) { return character >= range.first && character <= range.last; }))
    return;
  out += bytes;
}

}  // namespace

std::string in_ascii_numerals(std::string_view text, char decimal) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    if (length == 1) {
      out += text[0];
    } else {
      append_ascii_numeral(out, text.substr(0, length), decimal);
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace argiope
