// Charset detection, conversion and query encoding on any bytes: the first byte of the input picks an encoding, the
// next line is the Content-Type, the rest the page. Whatever comes in, UTF-8 of bounded length comes out.
#include "argiope/web/detail/charset.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "web/text/internal/content_type.hpp"

namespace {

constexpr const char* kEncodings[] = {
    "utf-8",       "windows-1252", "iso-8859-16",  "x-user-defined", "koi8-u",    "utf-16le",      "utf-16be",
    "gbk",         "gb18030",      "big5",         "euc-jp",         "shift_jis", "euc-kr",        "iso-2022-jp",
    "replacement", "iso-8859-8-i", "windows-1258", "windows-874",    "macintosh", "x-mac-cyrillic"};

void require_readable(std::string_view bytes, std::string_view encoding) {
  const argiope::Result<std::string> utf8 = argiope::to_utf8(bytes, encoding);
  require(utf8.has_value());
  require(argiope::is_valid_utf8(*utf8));
  require(utf8->size() <= 3 * std::max<std::size_t>(bytes.size(), 1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const char* encoding = kEncodings[data[0] % std::size(kEncodings)];
  const std::string_view header = input.substr(0, input.find('\n'));
  const std::string_view page = input.substr(std::min(header.size() + 1, input.size()));

  const argiope::CharsetDecision decision = argiope::detect_charset(page, header);
  require(argiope::encoding_of_label(decision.name) == decision.name);
  require(decision.bom_length <= page.size());
  require_readable(page.substr(decision.bom_length), decision.name);
  require_readable(page, encoding);
  std::string query;
  argiope::encode_query(page, encoding, query);
  // An unwritable character of at most 4 bytes becomes at most 16.
  require(query.size() <= 16 * page.size() + 16);
  argiope::is_html(header);
  argiope::sniff_is_html(page);
  return 0;
}
