#include "web/html/internal/html_entities.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "web/text/internal/ascii.hpp"
#include "web/text/internal/code_points.hpp"

namespace argiope {
namespace {

struct NamedReference {
  std::string_view name;
  bool legacy;  // also recognised without the semicolon
  char32_t first;
  char32_t second;
};

constexpr NamedReference kReferences[] = {
#include "../../../tools/html_entities.inc"
};

constexpr char32_t kReplacementCharacter = 0xFFFD;

// The meaning of &#128; to &#159;: windows-1252, as the standard's "numeric character reference end state" lists it.
constexpr char32_t kC1[32] = {0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
                              0x2039, 0x0152, 0x8D,   0x017D, 0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
                              0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

// The numeric reference at the start of `text`, which begins "&#". Returns its length, 0 when it is none.
std::size_t append_numeric(std::string_view text, std::vector<char>& out) {
  std::size_t at = 2;
  const bool hex = at < text.size() && to_lower(text[at]) == 'x';
  if (hex) ++at;
  const std::size_t digits = at;
  char32_t value = 0;
  for (; at < text.size(); ++at) {
    const int digit = hex_value(text[at]);
    if (digit < 0 || (!hex && digit > 9)) break;
    // Saturates above the last code point, so that no number of digits overflows.
    value = std::min<char32_t>(value * (hex ? 16 : 10) + static_cast<char32_t>(digit), 0x110000);
  }
  if (at == digits) return 0;
  if (at < text.size() && text[at] == ';') ++at;
  if (value == 0 || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) value = kReplacementCharacter;
  if (value >= 0x80 && value <= 0x9F) value = kC1[value - 0x80];
  append_utf8(value, out);
  return at;
}

// The named reference at the start of `text`, which begins "&". Returns its length, 0 when it is none.
std::size_t append_named(std::string_view text, std::vector<char>& out) {
  const NamedReference* low = std::begin(kReferences);
  const NamedReference* high = std::end(kReferences);
  const NamedReference* found = nullptr;
  std::size_t found_length = 0;
  // Invariant: [low, high) are the names longer than, and beginning with, the `depth` characters behind the ampersand.
  for (std::size_t depth = 0; low != high && depth + 1 < text.size();) {
    const auto before = [depth](const NamedReference& r, char c) { return r.name[depth] < c; };
    const auto after = [depth](char c, const NamedReference& r) { return c < r.name[depth]; };
    low = std::lower_bound(low, high, text[depth + 1], before);
    high = std::upper_bound(low, high, text[depth + 1], after);
    ++depth;
    if (low == high || low->name.size() != depth) continue;
    const bool closed = depth + 1 < text.size() && text[depth + 1] == ';';
    if (closed || low->legacy) {
      found = low;
      found_length = depth + (closed ? 2 : 1);
    }
    if (closed) break;
    ++low;
  }
  if (found == nullptr) return 0;
  // In attributes a name without semicolon that seems to go on is text: "?a=b&copy=c".
  if (text[found_length - 1] != ';' && found_length < text.size() &&
      (text[found_length] == '=' || is_alnum(text[found_length]))) {
    return 0;
  }
  append_utf8(found->first, out);
  if (found->second != 0) append_utf8(found->second, out);
  return found_length;
}

std::size_t append_reference(std::string_view text, std::vector<char>& out) {
  if (text.starts_with("&amp;")) {  // most of those in URLs
    out.push_back('&');
    return 5;
  }
  return text.starts_with("&#") ? append_numeric(text, out) : append_named(text, out);
}

}  // namespace

void append_attribute_value(std::string_view raw, std::vector<char>& out) {
  for (std::size_t at = 0; at < raw.size();) {
    std::size_t used = 1;
    if (raw[at] != '&' && raw[at] != '\0' && raw[at] != '\r') {
      out.push_back(raw[at]);
    } else if (raw[at] == '&') {
      used = append_reference(raw.substr(at), out);
      if (used == 0) {
        out.push_back('&');
        used = 1;
      }
    } else if (raw[at] == '\0') {
      append_utf8(kReplacementCharacter, out);
    } else {
      out.push_back('\n');
      if (at + 1 < raw.size() && raw[at + 1] == '\n') used = 2;
    }
    at += used;
  }
}

bool append_plain_references(std::string_view raw, std::vector<char>& out) {
  for (std::size_t at = 0; at < raw.size();) {
    const std::size_t next = std::min(raw.find('&', at), raw.size());
    out.insert(out.end(), raw.begin() + static_cast<std::ptrdiff_t>(at),
               raw.begin() + static_cast<std::ptrdiff_t>(next));
    if (next == raw.size()) return true;
    if (next + 1 < raw.size() && (raw[next + 1] == ' ' || raw[next + 1] == '\n')) {
      out.push_back('&');
      at = next + 1;
      continue;
    }
    const std::size_t before = out.size();
    const std::size_t used = append_reference(raw.substr(next), out);
    if (used == 0 || raw[next + used - 1] != ';' || out[before] == '\r') return false;
    at = next + used;
  }
  return true;
}

}  // namespace argiope
