#include "argiope/crawl/page.hpp"

#include "argiope/web/detail/charset.hpp"
#include "crawl/page/internal/link_resolver.hpp"
#include "crawl/page/internal/refresh_field.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {
namespace {

std::string in_utf8(std::string_view bytes, const CharsetDecision& charset) {
  bytes.remove_prefix(charset.bom_length);
  return to_utf8(bytes, charset.name).value_or(std::string(bytes));
}

}  // namespace

bool Page::is_html() const noexcept { return is_html_page(response.headers.content_type, response.body); }

std::string Page::text() const {
  return in_utf8(response.body, detect_charset(response.body, response.headers.content_type));
}

std::vector<PageLink> Page::links() const {
  std::vector<PageLink> links;
  Url target;
  if (find_refresh(url, response.headers.refresh, target))
    links.push_back({std::string(target.href()), LinkKind::refresh, false, {}});
  if (!is_html()) return links;
  const CharsetDecision charset = detect_charset(response.body, response.headers.content_type);
  const std::string html = in_utf8(response.body, charset);
  ScanResult scan;
  scan_links(html, {.note_places = true}, scan);
  LinkResolver resolver;
  resolver.begin(url, scan.base_href, charset.name);
  for (std::size_t i = 0; i < scan.links.size(); ++i) {
    const ScannedLink& link = scan.links[i];
    if (resolver.resolve(link.url, target) != UrlStatus::ok) continue;
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
