// The URL parser: any bytes, alone and against a base; what it accepts must parse to itself again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "argiope/web/url.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  static const Url base = *Url::parse("http://user:pw@host.example:81/a/b/c?q#f");
  for (const Url* against : {static_cast<const Url*>(nullptr), &base}) {
    const auto url = Url::parse(input, against);
    if (!url) continue;
    const auto again = Url::parse(url->href());
    if (!again || again->href() != url->href()) std::abort();
  }
  return 0;
}
