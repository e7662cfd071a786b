#include "argiope/crawl/page.hpp"

#include "argiope/web/charset.hpp"
#include "web/internal/content_type.hpp"

namespace argiope {

bool Page::is_html() const noexcept {
  const std::string& type = response.headers.content_type;
  return type.empty() ? sniff_is_html(response.body) : argiope::is_html(type);
}

std::string Page::text() const {
  std::string_view bytes = response.body;
  const CharsetDecision charset = detect_charset(bytes, response.headers.content_type);
  bytes.remove_prefix(charset.bom_length);
  return to_utf8(bytes, charset.name).value_or(std::string(bytes));
}

std::vector<PageLink> Page::links() const {
  std::vector<PageLink> links;
  if (!is_html()) return links;
  const std::string html = text();
  const std::string_view encoding = detect_charset(response.body, response.headers.content_type).name;
  ScanResult scan;
  scan_links(html, {.note_places = true}, scan);
  Url base_url;
  const Url* base = &url;
  if (!scan.base_href.empty() && parse_into(base_url, scan.base_href, &url) == UrlStatus::ok) base = &base_url;
  // The URL Standard encodes the query of a link in the document's own encoding.
  const QueryEncoder encode = [&](std::string_view utf8, std::string& out) { encode_query(utf8, encoding, out); };
  for (std::size_t i = 0; i < scan.links.size(); ++i) {
    const ScannedLink& link = scan.links[i];
    Url target;
    if (parse_into(target, link.url, base, encoding == "UTF-8" ? nullptr : &encode) != UrlStatus::ok) continue;
    target.strip_fragment();
    target.strip_credentials();
    links.push_back({std::string(target.href()), link.kind, link.nofollow,
                     scan.behind[i] == 0 ? std::string{} : link_text(html, scan.behind[i])});
  }
  return links;
}

Coro<void> PageHandler::operator()(const Page& page) const {
  if (awaited_) {
    co_await awaited_(page);
  } else if (plain_) {
    plain_(page);
  }
}

}  // namespace argiope
