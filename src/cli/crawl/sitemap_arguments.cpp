#include "cli/crawl/sitemap_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/internal/printable.hpp"
#include "cli/crawl/seed_list.hpp"

namespace argiope {

// clang-format off
void SitemapArguments::add_to(CLI::App& command, const char* group) {
  command.add_flag("--sitemaps", sitemaps, "Also follow what sitemaps list: those that robots.txt names, else /sitemap.xml and /sitemap_index.xml; and ask again about known pages that have changed by their word")
      ->group(group);
  command.add_flag("--feeds", feeds, "Also follow what the RSS and Atom feeds list that pages announce")->group(group);
  command.add_option("--sitemap", urls, "Also follow what this sitemap, index or feed lists, on hosts that are followed (repeatable)")
      ->group(group)->type_name("URL")->allow_extra_args(false);
}
// clang-format on

Result<void> SitemapArguments::apply(CrawlOptions& options) const {
  options.sitemaps = sitemaps;
  options.feeds = feeds;
  for (const std::string& text : urls) {
    auto url = parse_seed(text);
    if (!url) return fail(Errc::invalid_input, fmt::format("--sitemap: {}", url.error().message));
    options.sitemap_urls.push_back(std::move(*url));
  }
  if (!options.seeds.empty()) return {};
  for (const Url& url : options.sitemap_urls) {
    Url front = *Url::parse("/", &url);
    if (std::ranges::find(options.seeds, front.href(), &Url::href) == options.seeds.end()) options.seeds.push_back(std::move(front));
  }
  return {};
}

}  // namespace argiope
