// The Link field on any bytes: what it names stands between its brackets.
#include "web/html/internal/link_header.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  const std::string_view value(reinterpret_cast<const char*>(data), size);
  static const Url page = Url::parse("http://site.example/folder/page?one#two").value();
  const std::string_view target = canonical_in_link_header(value, page);
  if (target.empty()) return 0;
  require(target.data() >= value.data() && target.data() + target.size() <= value.data() + value.size());
  require(target.find('>') == std::string_view::npos);
  require(value.substr(0, static_cast<std::size_t>(target.data() - value.data())).find('<') != std::string_view::npos);
  return 0;
}
