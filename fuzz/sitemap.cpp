// Sitemaps and feeds: any bytes, as they are and as text behind a small limit. Whatever comes, the counts agree with
// what is told.
#include "web/html/internal/sitemap.hpp"

#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace argiope;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const std::size_t most : {std::size_t{100'000}, std::size_t{3}}) {
    const SitemapLimits limits{
        .most_bytes = 1024 * 1024, .most_entries = most, .most_links = 2 * most, .most_url_bytes = 2000};
    std::size_t told = 0;
    const SitemapReport report = read_sitemap(body, "text/xml", limits, [&](const SitemapEntry& entry) {
      ++told;
      require(entry.url.size() <= limits.most_url_bytes);
      if (entry.modified) require(latest_of(*entry.modified) >= entry.modified->at);
    });
    require(told == report.links);
    require(report.entries <= limits.most_entries && report.links <= limits.most_links);
    require(report.kind != SitemapKind::none || told == 0);
    require(!report.cut || !report.trouble.empty());
  }
  return 0;
}
