#include "base/internal/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/internal/utf8.hpp"

namespace argiope {
namespace {

bool is_plain(char c) noexcept { return c >= 0x20 && c < 0x7f; }

// What a terminal or an editor obeys instead of showing it.
constexpr bool is_unseen(char32_t point) noexcept {
  constexpr std::pair<char32_t, char32_t> kUnseen[] = {
      {0x00, 0x1f},      {0x7f, 0x9f},     {0xad, 0xad},  // controls, soft hyphen
      {0x61c, 0x61c},    {0x180e, 0x180e},                // Arabic letter mark, Mongolian vowel separator
      {0x200b, 0x200b},  {0x200e, 0x200f},                // zero-width space, marks of direction
      {0x2028, 0x202e},  {0x2060, 0x206f},                // ends of lines and paragraphs, directions, invisibles
      {0xfeff, 0xfeff},  {0xfff9, 0xfffb},                // byte order mark, annotations
      {0xe0000, 0xe0fff}};                                // tags and selectors
  return std::ranges::any_of(kUnseen, [=](const auto& range) { return point >= range.first && point <= range.second; });
}

void append_escape(std::string& out, char32_t point) {
  switch (point) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  const char* const form = point < 0x80 ? "\\x{:02x}" : point < 0x10000 ? "\\u{:04x}" : "\\U{:08x}";
  fmt::format_to(std::back_inserter(out), fmt::runtime(form), static_cast<std::uint32_t>(point));
}

std::string escaped(std::string_view text, std::size_t most, bool keeps_lines) {
  std::string out;
  out.reserve(std::min(text.size(), most));
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == most) return out + "…";
    const std::size_t length = utf8_length(text);
    if (is_plain(text.front()) || (keeps_lines && text.front() == '\n')) {
      out += text.front();
    } else if (length == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (const char32_t point = code_point_of(text.substr(0, length)); is_unseen(point)) {
      append_escape(out, point);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text, std::size_t most) {
  if (text.size() <= most && std::ranges::all_of(text, is_plain)) return std::string(text);
  return escaped(text, most, false);
}

std::string printable_lines(std::string_view text) { return escaped(text, std::string_view::npos, true); }

std::string in_quotes(std::string_view text, std::size_t most) { return '"' + printable(text, most) + '"'; }

}  // namespace argiope
