// robots.txt and X-Robots-Tag: any file, then questions about paths. The first line of the input is the path.
#include "argiope/web/robots.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "argiope/web/detail/robots_meta.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\n'), input.size());
  const RobotsRules rules = RobotsRules::parse(input.substr(std::min(end + 1, size)), "argiope");
  if (!rules.allowed("/robots.txt")) std::abort();
  const std::string path = "/" + std::string(input.substr(0, end));
  const bool allowed = rules.allowed(path);
  // A letter is the same letter when it is escaped.
  if (path.size() > 1 && path[1] >= 'a' && path[1] <= 'z') {
    constexpr char kHex[] = "0123456789abcdef";
    const std::string escaped = std::string("/%") + kHex[path[1] >> 4] + kHex[path[1] & 15] + path.substr(2);
    if (rules.allowed(escaped) != allowed) std::abort();
  }
  if (rules.crawl_delay() && *rules.crawl_delay() > RobotsRules::kLongestCrawlDelay) std::abort();
  (void)parse_robots_tag(input, "argiope");
  return 0;
}
