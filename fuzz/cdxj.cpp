// A line of an index of archives, and the key of a URL.
#include "warc/internal/cdxj.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "web/url/internal/surt.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string key = surt_key(text);
  require(key.find_first_of(" \n\r\t") == std::string::npos);
  const auto line = parse_cdxj(text);
  if (!line) return 0;
  std::string written;
  append_cdxj(written, *line);
  require(written.ends_with("}\n") && written.find('\n') == written.size() - 1);
  // What is no UTF-8 or has a strange timestamp may be told otherwise, but once.
  const auto again = parse_cdxj(std::string_view(written).substr(0, written.size() - 1));
  if (!again) return 0;
  std::string twice;
  append_cdxj(twice, *again);
  require(twice == written);
  return 0;
}
