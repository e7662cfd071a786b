// .netrc: any file. What is taken has names; what is refused is refused in a line that repeats nothing.
#include <cstdint>
#include <string_view>

#include "argiope/web/detail/credentials.hpp"
#include "fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  const auto entries = parse_netrc({reinterpret_cast<const char*>(data), size});
  if (!entries) {
    require(entries.error().message.size() < 300 && entries.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const NetrcEntry& entry : *entries) require(!entry.name.empty());
  return 0;
}
