// The words of pages on any bytes: reading them ends, a reader's memory is bounded and carries nothing from page to
// page, and a page in capitals says the same.
#include "web/html/internal/page_words.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  static PageWordReader used;
  const std::string html(reinterpret_cast<const char*>(data), size);
  const PageWords words = used.read(html);
  const PageWords again = PageWordReader().read(html);
  require(words.count == again.count && words.digest == again.digest && words.simhash == again.simhash);
  require(words.count <= size);
  require(words.count > 1 || words.simhash == 0);
  // But for sources and CDATA, nothing depends on the case of letters.
  if (html.find("src") != std::string::npos || html.find("SRC") != std::string::npos ||
      html.find("CDATA") != std::string::npos)
    return 0;
  std::string lower = html;
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
  if (lower.find("src") != std::string::npos || lower.find("cdata") != std::string::npos) return 0;
  require(used.read(lower).digest == words.digest);
  return 0;
}
