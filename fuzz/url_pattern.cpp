// Patterns of URLs: any pattern on any URL; and a URL is matched by itself, whatever is in it. The first line of the
// input is the pattern, the second one the URL.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "argiope/web/url.hpp"
#include "web/url/internal/url_patterns.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\n'), input.size());
  auto url = Url::parse(input.substr(std::min(end + 1, size)));
  if (!url || url->scheme() == "file") return 0;
  url->strip_fragment();
  url->strip_credentials();
  if (const auto patterns = UrlPatterns::compile({std::string(input.substr(0, end))}))
    (void)patterns->match(url->href());

  std::string itself;
  for (const char c : url->href()) {
    const bool is_address = c == '[' && itself.find("://") + 3 == itself.size();
    if (std::string_view("*?[{}\\").contains(c) && !is_address) itself += '\\';
    itself += c;
  }
  if (itself.size() > UrlPatterns::kMostPatternBytes) return 0;
  const auto patterns = UrlPatterns::compile({itself});
  // One that is too large as an expression is refused, and no crash.
  if (patterns && !patterns->match(url->href())) std::abort();
  return 0;
}
