// Of header fields, what reading and writing of messages share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "web/text/internal/ascii.hpp"

namespace argiope {

constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }
constexpr std::string_view trim_blanks(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Those that no value may have: all but tabs (RFC 9110, 5.5).
constexpr bool is_control(char c) noexcept { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }
inline bool has_controls(std::string_view text) noexcept { return std::ranges::any_of(text, is_control); }

// RFC 9110, 5.6.2.
constexpr bool is_token_char(char c) noexcept { return is_alnum(c) || std::string_view("!#$%&'*+-.^_`|~").contains(c); }
inline bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, is_token_char);
}
// Takes the token at the front off; empty: there is none.
inline std::string_view take_token(std::string_view& text) noexcept {
  const auto* const end = std::ranges::find_if_not(text, is_token_char);
  const std::string_view token = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(token.size());
  return token;
}
// Takes off the quoted string that `text` begins with (RFC 9110, 5.6.4): what is within its quotes, with all
// backslashes. One without an end is all that is there.
inline std::string_view take_quoted(std::string_view& text) noexcept {
  std::size_t end = 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  const std::string_view quoted = text.substr(1, end - 1);
  text.remove_prefix(std::min(end + 1, text.size()));
  return quoted;
}

// A list (RFC 9110, 5.6.1), with those of its elements that are empty.
template <class Visit>
void for_each_element(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view element = trim_blanks(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    visit(element);
  }
}

inline void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace argiope
