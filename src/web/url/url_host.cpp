#include "web/url/url_host.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include "argiope/web/url.hpp"
#include "base/internal/utf8.hpp"
#include "web/text/internal/ascii.hpp"
#include "web/text/internal/lower_case.hpp"
#include "web/url/idna.hpp"

namespace argiope {
namespace {

constexpr bool is_forbidden_domain_byte(unsigned char c) noexcept {
  constexpr std::string_view kForbiddenMarks = "#%/:<>?@[\\]^|";
  return c <= 0x20 || c == 0x7f || kForbiddenMarks.find(static_cast<char>(c)) != std::string_view::npos;
}

enum ByteClass : std::uint8_t { kPlain, kUpper, kForbidden, kBeyondAscii };

constexpr auto kHostBytes = [] {
  std::array<ByteClass, 256> table{};
  for (int c = 0; c < 256; ++c) {
    const auto byte = static_cast<unsigned char>(c);
    table[byte] = byte >= 0x80                     ? kBeyondAscii
                  : is_forbidden_domain_byte(byte) ? kForbidden
                  : byte >= 'A' && byte <= 'Z'     ? kUpper
                                                   : kPlain;
  }
  return table;
}();

// --- IPv4

std::string_view last_label(std::string_view domain) noexcept {
  if (domain.ends_with('.')) domain.remove_suffix(1);
  return domain.substr(domain.rfind('.') + 1);
}

// One part of an IPv4 address: decimal, 0 octal or 0x hexadecimal; too large a number saturates.
std::optional<std::uint64_t> parse_ipv4_number(std::string_view text) noexcept {
  if (text.empty()) return std::nullopt;
  int base = 10;
  if (text.size() >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() >= 2 && text[0] == '0') {
    base = 8;
    text.remove_prefix(1);
  }
  if (text.empty()) return 0;
  std::uint64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (end != text.data() + text.size() || ec == std::errc::invalid_argument) return std::nullopt;
  return ec == std::errc::result_out_of_range ? ~std::uint64_t{0} : value;
}

bool ends_in_a_number(std::string_view domain) noexcept {
  const std::string_view last = last_label(domain);
  if (last.empty()) return false;
  if (std::ranges::all_of(last, is_digit)) return true;
  const bool hexadecimal = last.size() >= 2 && last[0] == '0' && (last[1] == 'x' || last[1] == 'X');
  return hexadecimal && parse_ipv4_number(last).has_value();
}

bool parse_ipv4(std::string_view domain, std::string& out) {
  if (domain.ends_with('.')) domain.remove_suffix(1);
  std::array<std::uint64_t, 4> parts{};
  std::size_t count = 0;
  for (bool more = true; more;) {
    if (count == parts.size()) return false;
    const std::size_t dot = domain.find('.');
    more = dot != std::string_view::npos;
    const auto number = parse_ipv4_number(domain.substr(0, dot));
    if (!number) return false;
    parts[count++] = *number;
    if (more) domain.remove_prefix(dot + 1);
  }
  // The last part fills all bytes that are left.
  if (parts[count - 1] >= std::uint64_t{1} << (8 * (5 - count))) return false;
  std::uint64_t address = parts[count - 1];
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (parts[i] > 255) return false;
    address |= parts[i] << (8 * (3 - i));
  }
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += std::to_string(address >> shift & 255);
    if (shift > 0) out += '.';
  }
  return true;
}

// --- IPv6

class Ipv6Parser {
 public:
  explicit Ipv6Parser(std::string_view text) : text_(text) {}

  bool parse() {
    if (text_.starts_with(':')) {
      if (!text_.starts_with("::")) return false;
      at_ = 2;
      compress_ = ++piece_;
    }
    while (at_ < text_.size()) {
      if (piece_ == 8) return false;
      if (text_[at_] == ':') {
        if (compress_ >= 0) return false;
        ++at_;
        compress_ = ++piece_;
        continue;
      }
      if (!parse_piece()) return false;
    }
    if (compress_ >= 0) {
      // Moves what stands behind the "::" to the end.
      for (int swaps = piece_ - compress_, to = 7; swaps > 0 && to != 0; --swaps, --to) {
        std::swap(pieces[static_cast<std::size_t>(to)], pieces[static_cast<std::size_t>(compress_ + swaps - 1)]);
      }
      return true;
    }
    return piece_ == 8;
  }

  std::array<std::uint16_t, 8> pieces{};

 private:
  bool parse_piece() {
    std::uint32_t value = 0;
    std::size_t length = 0;
    while (length < 4 && at_ < text_.size() && hex_value(text_[at_]) >= 0) {
      value = value * 16 + static_cast<std::uint32_t>(hex_value(text_[at_]));
      ++at_;
      ++length;
    }
    if (at_ < text_.size() && text_[at_] == '.') {
      if (length == 0) return false;
      at_ -= length;
      return piece_ <= 6 && parse_inner_ipv4();
    }
    if (at_ < text_.size()) {
      if (text_[at_] != ':') return false;
      if (++at_ == text_.size()) return false;
    }
    pieces[static_cast<std::size_t>(piece_++)] = static_cast<std::uint16_t>(value);
    return true;
  }

  // Four decimal numbers without leading zeros, up to the end of the text.
  bool parse_inner_ipv4() {
    int seen = 0;
    while (at_ < text_.size()) {
      if (seen > 0) {
        if (text_[at_] != '.' || seen == 4) return false;
        ++at_;
      }
      int value = -1;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
        if (value == 0) return false;
        value = std::max(value, 0) * 10 + (text_[at_++] - '0');
        if (value > 255) return false;
      }
      if (value < 0) return false;
      std::uint16_t& piece = pieces[static_cast<std::size_t>(piece_)];
      piece = static_cast<std::uint16_t>(piece * 256 + value);
      if (++seen == 2 || seen == 4) ++piece_;
    }
    return seen == 4;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int piece_ = 0;
  int compress_ = -1;
};

void append_ipv6(const std::array<std::uint16_t, 8>& pieces, std::string& out) {
  // The first longest run of at least two zero pieces is written "::".
  std::size_t best = 8, best_length = 1;
  for (std::size_t i = 0; i < 8;) {
    std::size_t end = i;
    while (end < 8 && pieces[end] == 0) ++end;
    if (end - i > best_length) {
      best = i;
      best_length = end - i;
    }
    i = std::max(end, i + 1);
  }
  out += '[';
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == best) {
      out += i == 0 ? "::" : ":";
      i += best_length - 1;
      continue;
    }
    char digits[4];
    out.append(digits, std::to_chars(digits, digits + 4, pieces[i], 16).ptr);
    if (i < 7) out += ':';
  }
  out += ']';
}

// Percent-decoding, IDNA and the check of the result, for the few names that need them.
bool parse_unusual_domain(std::string_view input, std::string& domain) {
  const std::string decoded = to_valid_utf8(percent_decode(input));
  const bool ascii = std::ranges::all_of(decoded, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  domain = in_lower_case(decoded);
  // An ASCII name is only lower-cased, whatever its "xn--" labels hold (UTS 46, IgnoreInvalidPunycode).
  if (!ascii && (decoded.size() > kMaxInternationalHostLength || !domain_to_ascii(decoded, domain))) return false;
  return !domain.empty() &&
         std::ranges::none_of(domain, [](char c) { return is_forbidden_domain_byte(static_cast<unsigned char>(c)); });
}

}  // namespace

bool parse_host(std::string_view input, std::string& out) {
  if (input.front() == '[') {
    if (input.back() != ']' || input.size() < 2) return false;
    Ipv6Parser parser(input.substr(1, input.size() - 2));
    if (!parser.parse()) return false;
    append_ipv6(parser.pieces, out);
    return true;
  }
  const std::size_t start = out.size();
  bool unusual = false;
  for (const char c : input) {
    const ByteClass byte_class = kHostBytes[static_cast<unsigned char>(c)];
    if (byte_class == kForbidden && c != '%') return false;
    if (byte_class == kBeyondAscii || c == '%') {
      unusual = true;
      break;
    }
    out += byte_class == kUpper ? static_cast<char>(c + 32) : c;
  }
  if (unusual) {
    std::string domain;
    if (!parse_unusual_domain(input, domain)) return false;
    out.resize(start);
    out += domain;
  }
  const std::string_view domain = std::string_view{out}.substr(start);
  if (!ends_in_a_number(domain)) return true;
  const std::string copy(domain);
  out.resize(start);
  return parse_ipv4(copy, out);
}

}  // namespace argiope
