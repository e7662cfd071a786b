// Files of `argiope crawl --config`: any bytes. What is refused is refused in one line that begins with the file's
// name; what is accepted keeps to its bounds, and a crawl can be made of it.
#include "config/internal/crawl_file.hpp"

#include <cstdint>
#include <string_view>

#include "argiope/crawl/detail/scope.hpp"
#include "fuzz/require.hpp"

using namespace argiope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = parse_crawl_file({reinterpret_cast<const char*>(data), size}, "file");
  if (!read) {
    require(read.error().message.starts_with("file:") && read.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const CrawlFileOption& option : read->options) {
    require(option.kind == CrawlFileOption::Kind::list || option.values.size() == 1);
  }
  for (const HostSettings& host : read->hosts) {
    require(!host.match.empty());
    require(!host.rate || *host.rate > 0);
    require(!host.delay || *host.delay >= Duration::zero());
    require(!host.timeout || *host.timeout > Duration::zero());
    require(!host.max_depth || *host.max_depth <= 1'000'000);
  }
  CrawlOptions options;
  options.seeds.push_back(*Url::parse("http://a.test/"));
  options.hosts = read->hosts;
  const Scope scope(options);
  require(scope.place_of("http://a.test/", 0) == Exclusion::none);
  (void)scope.place_of("http://a.test/docs/x.pdf?y=1", 7);
  return 0;
}
