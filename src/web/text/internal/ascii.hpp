// ASCII as the HTML and Encoding Standards mean it: independent of any locale.
#pragma once

#include <algorithm>
#include <string_view>

namespace argiope {

constexpr char to_lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }
constexpr bool is_alpha(char c) noexcept { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_alnum(char c) noexcept { return is_alpha(c) || is_digit(c); }
// Tab, LF, FF, CR, space.
constexpr bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r'; }
// -1 when `c` is no hexadecimal digit.
constexpr int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// `lower` is in lower case already.
constexpr bool equals_lower(std::string_view text, std::string_view lower) noexcept {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) { return to_lower(a) == b; });
}
constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return to_lower(x) == to_lower(y); });
}
constexpr bool starts_with_lower(std::string_view text, std::string_view lower) noexcept {
  return equals_lower(text.substr(0, lower.size()), lower);
}

constexpr std::string_view trim_space(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Calls `visit` with each token of a list separated by the characters for which `separates` holds; none is empty.
template <class Separates, class Visit>
constexpr void for_each_token(std::string_view list, Separates separates, Visit visit) {
  std::size_t at = 0;
  while (at < list.size()) {
    if (separates(list[at])) {
      ++at;
      continue;
    }
    const std::size_t start = at;
    while (at < list.size() && !separates(list[at])) ++at;
    visit(list.substr(start, at - start));
  }
}

}  // namespace argiope
