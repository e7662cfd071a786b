#include "base/internal/json_writer.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
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

// Whether some of eight bytes may not be plain; never no where one is not.
bool may_need_escapes(const char* bytes) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kTops = 0x8080808080808080;
  std::uint64_t eight = 0;
  std::memcpy(&eight, bytes, sizeof eight);
  // The top bit of a byte that is below `than`, and sometimes of others behind it.
  const auto below = [](std::uint64_t of, std::uint64_t than) { return (of - than * kOnes) & ~of; };
  const std::uint64_t quotes = eight ^ '"' * kOnes, backslashes = eight ^ '\\' * kOnes;
  return ((eight | below(eight, 0x20) | below(quotes, 1) | below(backslashes, 1)) & kTops) != 0;
}

std::size_t plain_length(std::string_view text) noexcept {
  std::size_t length = 0;
  while (length + 8 <= text.size() && !may_need_escapes(text.data() + length)) length += 8;
  while (length < text.size() && kPlain[static_cast<unsigned char>(text[length])]) ++length;
  return length;
}

// The letter of a control character that has one, else 0.
constexpr char letter_of(unsigned char control) noexcept {
  switch (control) {
    case '\b': return 'b';
    case '\t': return 't';
    case '\n': return 'n';
    case '\f': return 'f';
    case '\r': return 'r';
    default: return 0;
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text, JsonEscapes escapes) {
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
    } else if (const char letter = letter_of(byte); letter != 0 && escapes == JsonEscapes::letters) {
      out += '\\';
      out += letter;
    } else if (byte < 0x20) {
      constexpr char kHexDigits[] = "0123456789abcdef";
      out += "\\u00";
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 0xf];
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

void JsonWriter::real(double number) {
  if (!std::isfinite(number)) return null();
  const std::size_t before = out_.size();
  this->number(number);
  if (out_.find_first_of(".e", before) == std::string::npos) out_ += ".0";
}

void JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(out_, name, escapes_);
  out_ += ':';
}

void JsonWriter::bytes(std::string_view name, std::string_view bytes) {
  key(name);
  const std::size_t before = out_.size();
  append_json_string(out_, bytes, escapes_);
  // Only what is not UTF-8 is replaced; text that has U+FFFD of its own is looked at once more.
  if (std::string_view(out_).find("\xef\xbf\xbd", before) == std::string_view::npos || is_utf8(bytes)) return;
  std::string longer(name);
  longer += "_base64";
  key(longer);
  text(to_base64(bytes));
}

void JsonWriter::text(std::string_view text) {
  separate();
  append_json_string(out_, text, escapes_);
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
