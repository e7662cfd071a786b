#include "argiope/crawl/page.hpp"

#include <algorithm>
#include <optional>

#include "argiope/web/detail/charset.hpp"
#include "crawl/page/internal/page_view.hpp"
#include "crawl/page/internal/refresh_field.hpp"

namespace argiope {
namespace {

// The view that a page has, or else one of its own.
class ViewOfPage {
 public:
  explicit ViewOfPage(const Page& page) : view_(page.view) {
    if (view_ != nullptr) return;
    view_ = &own_.emplace(page.url, page.response.body, page.response.headers.content_type);
    view_->read_as({.note_places = true});
  }
  PageView* operator->() const noexcept { return view_; }

 private:
  std::optional<PageView> own_;
  PageView* view_;
};

// Text of pages that say they are UTF-8 may be none.
std::string valid(std::string_view text) { return to_utf8(text, "UTF-8").value_or(std::string(text)); }

}  // namespace

bool Page::is_html() const noexcept { return ViewOfPage(*this)->is_html(); }

std::string Page::text() const { return valid(ViewOfPage(*this)->text()); }

std::vector<PageLink> Page::links() const {
  std::vector<PageLink> links;
  Url target;
  if (find_refresh(url, response.headers.refresh, target))
    links.push_back({std::string(target.href()), LinkKind::refresh, false, {}});
  const ViewOfPage page(*this);
  if (!page->is_html()) return links;
  const ScanResult& scan = page->scan();
  const std::size_t most = std::min(scan.links.size(), ScanOptions{}.max_links);
  for (std::size_t i = 0; i < most; ++i) {
    const ScannedLink& link = scan.links[i];
    if (page->resolver().resolve(link.url, target) != UrlStatus::ok) continue;
    links.push_back({std::string(target.href()), link.kind, link.nofollow,
                     scan.behind[i] == 0 ? std::string{} : valid(link_text(page->text(), scan.behind[i]))});
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
