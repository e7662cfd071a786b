#include "crawl/link_harvester.hpp"

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

LinkHarvester::Summary LinkHarvester::scan(const Url& page, const HttpResponse& response) {
  std::string_view html = response.body;
  const CharsetDecision charset = detect_charset(html, response.headers.content_type);
  html.remove_prefix(charset.bom_length);
  encoding_ = charset.name;
  const bool in_place = charset.name == "UTF-8" || (charset.ascii_compatible && is_ascii(html));
  if (!in_place) {
    if (auto text = to_utf8(html, charset.name)) {
      transcoded_ = std::move(*text);
      html = transcoded_;
    }
  }
  ScanOptions options;
  options.agent = agent_;
  options.max_links = max_links_;
  scan_links(html, options, scan_);

  Summary summary;
  summary.links = scan_.links.size();
  summary.dropped = scan_.dropped;
  summary.noindex = scan_.robots.noindex;
  summary.nofollow = scan_.robots.nofollow;
  base_ = &page;
  if (!scan_.base_href.empty() && parse_into(base_url_, scan_.base_href, &page) == UrlStatus::ok) base_ = &base_url_;
  return summary;
}

UrlStatus LinkHarvester::parse_link(std::string_view text) {
  // The URL Standard encodes the query of a link in the document's own encoding.
  const UrlStatus status = parse_into(resolved_, text, base_, encoding_ == "UTF-8" ? nullptr : &query_encoder_);
  if (status == UrlStatus::ok) {
    resolved_.strip_fragment();
    resolved_.strip_credentials();  // a page's word for them counts for nothing
  }
  return status;
}

}  // namespace argiope
