#include "argiope/web/detail/charset.hpp"

#include <uchardet/uchardet.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/internal/utf8.hpp"
#include "web/text/encodings.hpp"
#include "web/text/internal/content_type.hpp"
#include "web/text/meta_prescan.hpp"

namespace argiope {
namespace {

using Source = CharsetDecision::Source;

// The bytes that uchardet gets to see, from a little before the first byte that is not ASCII.
constexpr std::size_t kGuessBytes = 4 * 1024;  // a third of a millisecond
constexpr std::size_t kGuessLead = 256;

CharsetDecision decide(const Encoding& encoding, Source source, std::size_t bom_length = 0) noexcept {
  return {encoding.name, source, bom_length, is_ascii_compatible(encoding)};
}

// The place of the first byte above 0x7F, or the size.
std::size_t ascii_prefix(std::string_view bytes) noexcept {
  std::size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) {
    std::uint64_t words[4];
    std::memcpy(words, bytes.data() + at, sizeof words);
    if (((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080u) != 0) break;
  }
  while (at < bytes.size() && static_cast<unsigned char>(bytes[at]) < 0x80) ++at;
  return at;
}

// The length of the longest prefix that is valid UTF-8.
std::size_t valid_prefix(std::string_view bytes) noexcept {
  std::size_t at = ascii_prefix(bytes);
  while (at < bytes.size()) {
    const std::size_t length = utf8_length(bytes.substr(at));
    if (length == 0) break;
    at += length;
    // Text in another script has a lone space here and there, one in Latin script long runs of ASCII.
    if (length == 1) at += ascii_prefix(bytes.substr(at));
  }
  return at;
}

// Whether all is UTF-8 but perhaps for a last character that was cut off.
bool is_utf8_cut_short(std::string_view bytes) noexcept {
  const std::string_view rest = bytes.substr(valid_prefix(bytes));
  if (rest.empty()) return true;
  const auto first = static_cast<unsigned char>(rest.front());
  const std::size_t whole = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  return first >= 0xC2 && first <= 0xF4 && rest.size() < whole && std::ranges::all_of(rest.substr(1), continues);
}

// The guess of uchardet on bytes that are not UTF-8; null when it has no idea or a useless one.
const Encoding* guess_encoding(std::string_view bytes) {
  const std::size_t first = ascii_prefix(bytes);
  bytes = bytes.substr(first - std::min(first, kGuessLead)).substr(0, kGuessBytes);
  const std::unique_ptr<uchardet, decltype(&uchardet_delete)> detector(uchardet_new(), &uchardet_delete);
  if (uchardet_handle_data(detector.get(), bytes.data(), bytes.size()) != 0) return nullptr;
  uchardet_data_end(detector.get());
  std::string_view name = uchardet_get_charset(detector.get());
  if (name == "UHC") name = "EUC-KR";
  if (name == "MAC-CYRILLIC") name = "x-mac-cyrillic";
  const Encoding* const encoding = find_encoding(name);
  return encoding != nullptr && is_ascii_compatible(*encoding) ? encoding : nullptr;
}

}  // namespace

CharsetDecision detect_charset(std::string_view bytes, std::string_view content_type) {
  if (bytes.starts_with("\xEF\xBB\xBF")) return decide(kUtf8, Source::bom, 3);
  if (bytes.starts_with("\xFE\xFF")) return decide(kUtf16be, Source::bom, 2);
  if (bytes.starts_with("\xFF\xFE")) return decide(kUtf16le, Source::bom, 2);
  if (const Encoding* said = find_encoding(parse_content_type(content_type).charset)) {
    return decide(*said, Source::header);
  }
  if (const Encoding* said = prescan_encoding(bytes)) return decide(*said, Source::meta);
  if (is_utf8_cut_short(bytes)) return decide(kUtf8, Source::guess);
  if (const Encoding* guessed = guess_encoding(bytes)) return decide(*guessed, Source::guess);
  return decide(kWindows1252, Source::fallback);
}

std::string_view encoding_of_label(std::string_view label) noexcept {
  const Encoding* const encoding = find_encoding(label);
  return encoding != nullptr ? encoding->name : std::string_view{};
}

bool is_ascii(std::string_view bytes) noexcept { return ascii_prefix(bytes) == bytes.size(); }

bool is_valid_utf8(std::string_view bytes) noexcept { return valid_prefix(bytes) == bytes.size(); }

}  // namespace argiope
