#include "cli/crawl/sitemap_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/internal/printable.hpp"
#include "cli/crawl/seed_list.hpp"

namespace argiope {
namespace {

// "sitemap.xml" is a file to its writer, and would be a host.
Result<void> check_is_whole(const std::string& text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::string_view host = std::string_view(text).substr(0, slash);
  const bool has_host = host.contains('.') || host.starts_with("localhost") || host.starts_with('[');
  if (text.contains("://") || (has_host && slash + 1 < text.size())) return {};
  return fail(Errc::invalid_input,
              fmt::format("--sitemap {}: write the whole URL, as in https://example.org/sitemap.xml", in_quotes(text)));
}

}  // namespace

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
    if (auto whole = check_is_whole(text); !whole) return whole;
    auto url = parse_seed(text);
    if (!url) return fail(Errc::invalid_input, fmt::format("--sitemap: {}", url.error().message));
    options.sitemap_urls.push_back(std::move(*url));
  }
  if (!options.seeds.empty()) return {};
  for (const Url& url : options.sitemap_urls) {
    Url front = *Url::parse("/", &url);
    if (std::ranges::find(options.seeds, front.href(), &Url::href) == options.seeds.end())
      options.seeds.push_back(std::move(front));
  }
  return {};
}

}  // namespace argiope
