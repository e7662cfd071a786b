#include "crawl/page/internal/page_view.hpp"

#include <utility>

#include "web/text/internal/ascii.hpp"
#include "web/text/internal/content_type.hpp"

namespace argiope {

bool is_style_sheet(std::string_view content_type) noexcept {
  return equals_lower(parse_content_type(content_type).type, "text/css");
}

void PageView::begin(const Url& url, std::string_view body, std::string_view content_type) {
  end();
  url_ = &url;
  text_.begin(body, content_type);
  is_begun_ = true;
  made_ = {};
}

void PageView::end() {
  is_scanned_ = has_references_ = false;
  survey_.reset();
  words_.reset();
  if (buffers_ && reading_.pool != nullptr) reading_.pool->give(std::move(buffers_));
  buffers_.reset();
  // What it refers to may be gone.
  reading_ = {};
  if (std::exchange(is_begun_, false)) text_.let_go();
}

bool PageView::is_html() const noexcept { return is_html_page(content_type(), body()); }

bool PageView::is_text_as_it_came() {
  const std::string_view utf8 = text();
  return utf8.data() == body().data() && utf8.size() == body().size();
}

PageBuffers& PageView::buffers() {
  if (!buffers_) buffers_ = reading_.pool != nullptr ? reading_.pool->take() : std::make_unique<PageBuffers>();
  return *buffers_;
}

const ScanResult& PageView::scan() {
  const std::lock_guard lock(scanning_);
  PageBuffers& found = buffers();
  if (is_scanned_) return found.scan;
  ++made_.scans;
  const ScanOptions options{
      .max_links = reading_.max_links, .note_places = reading_.note_places, .agent = reading_.agent};
  if (reading_.find_references) {
    scan_links_and_references(text(), options, found.scan, found.references);
    has_references_ = true;
  } else {
    scan_links(text(), options, found.scan);
  }
  resolver_.begin(*url_, found.scan.base_href, charset().name);
  is_scanned_ = true;
  return found.scan;
}

const PageReferences& PageView::references() {
  if (reading_.find_references) scan();
  PageBuffers& found = buffers();
  if (!std::exchange(has_references_, true)) scan_references(text(), found.references);
  return found.references;
}

const LinkResolver& PageView::resolver() {
  scan();
  return resolver_;
}

const PageSurvey& PageView::survey() {
  if (survey_) return *survey_;
  ++made_.surveys;
  return survey_.emplace(survey_page(text(), {.agent = reading_.agent}));
}

const PageWords& PageView::words() {
  if (words_) return *words_;
  ++made_.words;
  return words_.emplace(buffers().words.read(text()));
}

PageView::Made PageView::made() const {
  Made made = made_;
  made.texts = text_.times_made();
  return made;
}

}  // namespace argiope
