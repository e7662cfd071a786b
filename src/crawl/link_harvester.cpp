#include "crawl/link_harvester.hpp"

#include <utility>

#include "crawl/page_in_utf8.hpp"

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

LinkHarvester::Summary LinkHarvester::scan(const Url& page, const HttpResponse& response) {
  const CharsetDecision charset = detect_charset(response.body, response.headers.content_type);
  const std::string_view html = page_in_utf8(response.body, charset, transcoded_);
  ScanOptions options;
  options.agent = agent_;
  options.max_links = max_links_;
  scan_links(html, options, scan_);

  Summary summary;
  summary.links = scan_.links.size();
  summary.dropped = scan_.dropped;
  summary.noindex = scan_.robots.noindex;
  summary.nofollow = scan_.robots.nofollow;
  links_.begin(page, scan_.base_href, charset.name);
  return summary;
}

}  // namespace argiope
