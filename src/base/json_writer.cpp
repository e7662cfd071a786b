#include "base/internal/json_writer.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>

#include "base/internal/base64.hpp"
#include "base/internal/rfc3339.hpp"
#include "base/internal/utf8.hpp"

namespace argiope {
namespace {

// Characters of one byte that a JSON string holds as they are.
constexpr auto kPlain = [] {
  std::array<bool, 256> plain{};
  for (int c = 0x20; c < 0x80; ++c) plain[static_cast<std::size_t>(c)] = c != '"' && c != '\\';
  return plain;
}();

std::size_t plain_length(std::string_view text) noexcept {
  std::size_t length = 0;
  while (length < text.size() && kPlain[static_cast<unsigned char>(text[length])]) ++length;
  return length;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (;;) {
    const std::size_t plain = plain_length(text);
    out.append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const auto byte = static_cast<unsigned char>(text.front());
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text.front();
    } else if (byte < 0x20) {
      constexpr char kDigits[] = "0123456789abcdef";
      out += "\\u00";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 0xf];
    } else {
      out.append(text.data(), length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

void JsonWriter::null() { raw("null"); }

void JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
}

void JsonWriter::fixed(double number, int digits) {
  separate();
  fmt::format_to(std::back_inserter(out_), "{:.{}f}", number, digits);
}

void JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(out_, name);
  out_ += ':';
}

void JsonWriter::bytes(std::string_view name, std::string_view bytes) {
  key(name);
  const std::size_t before = out_.size();
  append_json_string(out_, bytes);
  // Only what is not UTF-8 is replaced; text that has U+FFFD of its own is looked at once more.
  if (std::string_view(out_).find("\xef\xbf\xbd", before) == std::string_view::npos || is_utf8(bytes)) return;
  std::string longer(name);
  longer += "_base64";
  key(longer);
  text(to_base64(bytes));
}

void JsonWriter::text(std::string_view text) {
  separate();
  append_json_string(out_, text);
}

void JsonWriter::flag(bool flag) { raw(flag ? "true" : "false"); }

void JsonWriter::integer(std::int64_t number) {
  const fmt::format_int text(number);
  raw({text.data(), text.size()});
}

void JsonWriter::natural(std::uint64_t number) {
  const fmt::format_int text(number);
  raw({text.data(), text.size()});
}

void JsonWriter::number(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  fmt::format_to(std::back_inserter(out_), "{}", number);
}

void JsonWriter::time(WallTime time) {
  if (time == WallTime{}) return null();
  separate();
  out_ += '"';
  append_rfc3339(out_, time);
  out_ += '"';
}

}  // namespace argiope
