// Converting between the standard's encodings and UTF-8: ICU's converters, and a table or two for what ICU lacks.
#include <unicode/ucnv.h>
#include <unicode/ucnv_cb.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "argiope/web/detail/charset.hpp"
#include "base/internal/printable.hpp"
#include "web/text/encodings.hpp"

namespace argiope {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
// The converter that writes UTF-8 is another than the one that reads it: converter() tells them apart by these.
constexpr std::string_view kReadUtf8 = "UTF-8";
constexpr std::string_view kWriteUtf8 = "utf-8";

// "%26%23NNN%3B": the character reference of a character that a query cannot hold.
std::string escaped(char32_t c) {
  std::array<char, 12> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), static_cast<std::uint32_t>(c)).ptr;
  return "%26%23" + std::string(digits.begin(), end) + "%3B";
}

extern "C" {

// Whatever cannot be read is U+FFFD: by itself ICU writes U+001A for some bytes of some encodings.
void argiope_replace_unreadable(const void*, UConverterToUnicodeArgs* args, const char*, std::int32_t,
                                UConverterCallbackReason reason, UErrorCode* status) {
  if (reason > UCNV_IRREGULAR) return;
  *status = U_ZERO_ERROR;
  constexpr char16_t kCharacter = 0xFFFD;
  ucnv_cbToUWriteUChars(args, &kCharacter, 1, 0, status);
}

void argiope_escape_unwritable(const void*, UConverterFromUnicodeArgs* args, const char16_t*, std::int32_t, UChar32 c,
                               UConverterCallbackReason reason, UErrorCode* status) {
  if (reason > UCNV_IRREGULAR) return;
  *status = U_ZERO_ERROR;
  const std::string text = escaped(static_cast<char32_t>(c));
  const std::u16string wide(text.begin(), text.end());  // through the converter, for it may have to shift to ASCII
  const char16_t* from = wide.data();
  ucnv_cbFromUWriteUChars(args, &from, from + wide.size(), 0, status);
}

}  // extern "C"

struct CloseConverter {
  void operator()(UConverter* converter) const noexcept { ucnv_close(converter); }
};
using Converter = std::unique_ptr<UConverter, CloseConverter>;

// This thread's converter of ICU's name `name`, a literal of ours; null when ICU lacks its data. UTF-8 and UTF-16 are
// built into ICU's code.
// Opening one takes microseconds, and a site's pages are all alike.
UConverter* converter(std::string_view name) {
  thread_local std::vector<std::pair<std::string_view, Converter>> open;
  const auto known = std::ranges::find(open, name, [](const auto& entry) { return entry.first; });
  if (known != open.end()) return known->second.get();
  UErrorCode status = U_ZERO_ERROR;
  Converter made(ucnv_open(name.data(), &status));
  if (U_FAILURE(status)) return nullptr;
  ucnv_setToUCallBack(made.get(), &argiope_replace_unreadable, nullptr, nullptr, nullptr, &status);
  ucnv_setFromUCallBack(made.get(), &argiope_escape_unwritable, nullptr, nullptr, nullptr, &status);
  return open.emplace_back(name, std::move(made)).second.get();
}

// Appends `bytes`, read by `source`, as `target` writes them.
void convert(UConverter* target, UConverter* source, std::string_view bytes, std::string& out) {
  std::array<UChar, 4096> pivot;
  UChar* pivot_from = pivot.data();
  UChar* pivot_to = pivot.data();
  const char* from = bytes.data();
  const char* const from_end = from + bytes.size();
  std::size_t written = out.size();
  out.resize(written + bytes.size() + bytes.size() / 8 + 64);
  for (UBool reset = true;; reset = false) {
    UErrorCode status = U_ZERO_ERROR;
    char* to = out.data() + written;
    ucnv_convertEx(target, source, &to, out.data() + out.size(), &from, from_end, pivot.data(), &pivot_from, &pivot_to,
                   pivot.data() + pivot.size(), reset, true, &status);
    written = static_cast<std::size_t>(to - out.data());
    if (status != U_BUFFER_OVERFLOW_ERROR) break;
    out.resize(out.size() + out.size() / 2);
  }
  out.resize(written);
}

// ISO-8859-16 from 0xA0 on (Encoding Standard, index iso-8859-16); below, bytes are code points.
constexpr char16_t kIso8859_16[96] = {
    0x00A0, 0x0104, 0x0105, 0x0141, 0x20AC, 0x201E, 0x0160, 0x00A7, 0x0161, 0x00A9, 0x0218, 0x00AB, 0x0179, 0x00AD,
    0x017A, 0x017B, 0x00B0, 0x00B1, 0x010C, 0x0142, 0x017D, 0x201D, 0x00B6, 0x00B7, 0x017E, 0x010D, 0x0219, 0x00BB,
    0x0152, 0x0153, 0x0178, 0x017C, 0x00C0, 0x00C1, 0x00C2, 0x0102, 0x00C4, 0x0106, 0x00C6, 0x00C7, 0x00C8, 0x00C9,
    0x00CA, 0x00CB, 0x00CC, 0x00CD, 0x00CE, 0x00CF, 0x0110, 0x0143, 0x00D2, 0x00D3, 0x00D4, 0x0150, 0x00D6, 0x015A,
    0x0170, 0x00D9, 0x00DA, 0x00DB, 0x00DC, 0x0118, 0x021A, 0x00DF, 0x00E0, 0x00E1, 0x00E2, 0x0103, 0x00E4, 0x0107,
    0x00E6, 0x00E7, 0x00E8, 0x00E9, 0x00EA, 0x00EB, 0x00EC, 0x00ED, 0x00EE, 0x00EF, 0x0111, 0x0144, 0x00F2, 0x00F3,
    0x00F4, 0x0151, 0x00F6, 0x015B, 0x0171, 0x00F9, 0x00FA, 0x00FB, 0x00FC, 0x0119, 0x021B, 0x00FF};

// The two single-byte encodings that ICU does not have: what character `byte` (above 0x7F) is.
char16_t own_character(const Encoding& encoding, unsigned byte) noexcept {
  if (encoding.name == "x-user-defined") return static_cast<char16_t>(0xF780 + (byte - 0x80));
  return byte < 0xA0 ? static_cast<char16_t>(byte) : kIso8859_16[byte - 0xA0];
}

void decode_own(const Encoding& encoding, std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      out += c;
      continue;
    }
    const char16_t character = own_character(encoding, byte);
    if (character >= 0x800) out += static_cast<char>(0xE0 | character >> 12);
    out += static_cast<char>(character >= 0x800 ? 0x80 | (character >> 6 & 0x3F) : 0xC0 | character >> 6);
    out += static_cast<char>(0x80 | (character & 0x3F));
  }
}

void encode_own(const Encoding& encoding, std::string_view utf8, std::string& out) {
  std::string wide;  // UTF-16LE
  convert(converter("UTF-16LE"), converter(kReadUtf8), utf8, wide);
  const auto unit = [&wide](std::size_t i) -> char32_t {
    return static_cast<unsigned char>(wide[i]) | static_cast<unsigned>(static_cast<unsigned char>(wide[i + 1])) << 8;
  };
  for (std::size_t i = 0; i + 1 < wide.size(); i += 2) {
    char32_t c = unit(i);
    if (c >= 0xD800 && c <= 0xDBFF && i + 3 < wide.size()) {
      i += 2;
      c = 0x10000 + ((c - 0xD800) << 10) + (unit(i) - 0xDC00);
    }
    unsigned byte = 0x80;
    while (byte <= 0xFF && own_character(encoding, byte) != c) ++byte;
    if (c < 0x80 || byte <= 0xFF) {
      out += static_cast<char>(c < 0x80 ? c : byte);
    } else {
      out += escaped(c);
    }
  }
}

}  // namespace

Result<std::string> to_utf8(std::string_view bytes, std::string_view encoding) {
  const Encoding* const from = find_encoding(encoding);
  if (from == nullptr) return fail(Errc::unsupported, "no encoding of that name: " + in_quotes(encoding));
  std::string out;
  if (bytes.empty()) return out;
  if (!from->decoder.empty()) {
    UConverter* const source = converter(from->decoder);
    if (source == nullptr) return fail(Errc::unsupported, "ICU lacks its data for " + std::string(from->name));
    convert(converter(kWriteUtf8), source, bytes, out);
  } else if (from->name == "replacement") {
    out = kReplacement;
  } else {
    decode_own(*from, bytes, out);
  }
  return out;
}

std::string_view in_utf8(std::string_view bytes, const CharsetDecision& charset, std::string& transcoded) {
  bytes.remove_prefix(charset.bom_length);
  if (charset.name == "UTF-8" || (charset.ascii_compatible && is_ascii(bytes))) return bytes;
  auto text = to_utf8(bytes, charset.name);
  if (!text) return bytes;
  transcoded = std::move(*text);
  return transcoded;
}

void encode_query(std::string_view utf8, std::string_view encoding, std::string& out) {
  const Encoding* const to = find_encoding(encoding);
  if (to == nullptr || to->encoder == kReadUtf8 || is_ascii(utf8)) {
    out += utf8;
  } else if (to->encoder.empty()) {
    encode_own(*to, utf8, out);
  } else if (UConverter* const target = converter(to->encoder); target != nullptr) {
    convert(target, converter(kReadUtf8), utf8, out);
  } else {
    out += utf8;
  }
}

}  // namespace argiope
