// JSON as pages have it: what is mended is read, or is no JSON, and mending what is strict changes nothing that it
// says.
#include "web/html/internal/lenient_json.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string mended = mended_json(text);
  require(mended.size() <= 3 * size + 8);
  const auto strict = JsonText::parse(text), lenient = JsonText::parse(mended), either = parse_lenient_json(text);
  require(!strict || lenient);
  require(either.has_value() == (strict || lenient));
  if (!strict) return 0;
  JsonErrors errors;
  require(strict->root(errors).json() == lenient->root(errors).json());
  return 0;
}
