#include "project/results/sink_copy_text.hpp"

#include <algorithm>
#include <cstdint>

#include "base/internal/utf8.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr std::size_t kEscapeBytes = 6;  // \uXXXX

// The number of the escape at the front of `text`, or -1.
int escaped_unit(std::string_view text) {
  if (text.size() < kEscapeBytes || text[0] != '\\' || text[1] != 'u') return -1;
  int unit = 0;
  for (const char c : text.substr(2, 4)) {
    if (hex_value(c) < 0) return -1;
    unit = unit * 16 + hex_value(c);
  }
  return unit;
}

bool is_first_half(int unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool is_second_half(int unit) { return unit >= 0xdc00 && unit < 0xe000; }

}  // namespace

void append_copy_text(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    switch (text[0]) {
      case '\0': out += kReplacement; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default: out += length == 0 ? kReplacement : text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
}

std::string without_null_characters(std::string_view json) {
  std::string out;
  while (!json.empty()) {
    const std::size_t plain = std::min(json.find('\\'), json.size());
    out += json.substr(0, plain);
    json.remove_prefix(plain);
    if (json.empty()) break;
    const int unit = escaped_unit(json);
    std::size_t taken = unit < 0 ? std::min<std::size_t>(2, json.size()) : kEscapeBytes;
    if (is_first_half(unit) && is_second_half(escaped_unit(json.substr(kEscapeBytes)))) {
      taken = 2 * kEscapeBytes;
    } else if (unit == 0 || is_first_half(unit) || is_second_half(unit)) {
      out += "\\ufffd";
      json.remove_prefix(taken);
      continue;
    }
    out += json.substr(0, taken);
    json.remove_prefix(taken);
  }
  return out;
}

}  // namespace argiope
