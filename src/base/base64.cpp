#include "base/internal/base64.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace argiope {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::uint8_t kNoDigit = 0x80;

constexpr std::array<std::uint8_t, 256> values_of_digits() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::uint8_t>(i);
  return values;
}
constexpr auto kValues = values_of_digits();

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (; !bytes.empty(); bytes.remove_prefix(bytes.size() < 3 ? bytes.size() : 3)) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) text += i <= bytes.size() ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const std::size_t digits = text.size() - padding;
  std::string bytes(text.size() / 4 * 3 - padding, '\0');
  std::size_t end = 0;
  for (std::size_t at = 0; at < digits; at += 4) {
    const std::size_t here = std::min<std::size_t>(4, digits - at);
    std::uint32_t group = 0;
    unsigned wrong = 0;
    for (std::size_t i = 0; i < here; ++i) {
      const std::uint8_t value = kValues[static_cast<unsigned char>(text[at + i])];
      wrong |= value;
      group = group << 6 | value;
    }
    if ((wrong & kNoDigit) != 0) return std::nullopt;
    group <<= 6 * (4 - here);
    const std::size_t count = here - 1;  // of bytes
    if ((group & ((1u << (8 * (3 - count))) - 1)) != 0) return std::nullopt;
    for (std::size_t i = 0; i < count; ++i) bytes[end++] = static_cast<char>(group >> (16 - 8 * i) & 0xff);
  }
  return bytes;
}

}  // namespace argiope
