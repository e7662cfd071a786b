#include "crawl/page/internal/link_harvester.hpp"

#include <algorithm>
#include <utility>

namespace argiope {

LinkHarvester::LinkHarvester(std::string agent, std::size_t max_links)
    : agent_(std::move(agent)), max_links_(max_links), known_(kKnownLinks) {}

std::string_view LinkHarvester::without_fragment(std::string_view text) noexcept {
  return text.substr(0, text.find('#'));
}

std::string_view LinkHarvester::directory_of(const Url& url) noexcept {
  // All that a relative reference other than "" and "?…" is resolved against.
  std::string_view text = url.href();
  text = text.substr(0, text.find_first_of("?#"));
  return text.substr(0, text.rfind('/') + 1);
}

LinkHarvester::Summary LinkHarvester::summary_of(PageView& page) const {
  const ScanResult& scan = page.scan();
  Summary summary;
  summary.links = links_of(page).size();
  summary.dropped = scan.dropped + scan.links.size() - summary.links;
  summary.noindex = scan.robots.noindex;
  summary.nofollow = scan.robots.nofollow;
  return summary;
}

bool LinkHarvester::find_canonical(PageView& page, std::string_view header, Url& canonical) const {
  const auto links = links_of(page);
  const auto found = std::ranges::find(links, LinkKind::canonical, &ScannedLink::kind);
  const UrlStatus status = found != links.end() ? page.resolver().resolve(found->url, canonical)
                           : !header.empty()    ? parse_into(canonical, header, &page.url())
                                                : UrlStatus::no_host;
  if (status != UrlStatus::ok) return false;
  canonical.strip_credentials();
  canonical.strip_fragment();
  return true;
}

}  // namespace argiope
