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

LinkHarvester::Summary LinkHarvester::scan(const Url& page, PageText& text, PageReferences* references) {
  html_ = text.utf8();
  ScanOptions options;
  options.agent = agent_;
  options.max_links = max_links_;
  if (references != nullptr) {
    scan_links_and_references(html_, options, scan_, *references);
  } else {
    scan_links(html_, options, scan_);
  }

  Summary summary;
  summary.links = scan_.links.size();
  summary.dropped = scan_.dropped;
  summary.noindex = scan_.robots.noindex;
  summary.nofollow = scan_.robots.nofollow;
  links_.begin(page, scan_.base_href, text.charset().name);
  return summary;
}

bool LinkHarvester::find_canonical(const Url& page, std::string_view header, Url& canonical) const {
  const auto found = std::ranges::find(scan_.links, LinkKind::canonical, &ScannedLink::kind);
  const UrlStatus status = found != scan_.links.end() ? links_.resolve(found->url, canonical)
                           : !header.empty()          ? parse_into(canonical, header, &page)
                                                      : UrlStatus::no_host;
  if (status != UrlStatus::ok) return false;
  canonical.strip_credentials();
  canonical.strip_fragment();
  return true;
}

}  // namespace argiope
