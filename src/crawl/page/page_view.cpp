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
  body_ = body;
  content_type_ = content_type;
  reading_ = {};
  is_html_.reset();
  charset_.reset();
  text_.reset();
  document_.reset();
  made_ = {};
}

void PageView::end() {
  is_scanned_ = has_references_ = false;
  survey_.reset();
  words_.reset();
  if (buffers_ && reading_.pool != nullptr) reading_.pool->give(std::move(buffers_));
  buffers_.reset();
  reading_.pool = nullptr;
}

bool PageView::is_html() {
  if (!is_html_) is_html_ = is_html_page(content_type_, body_);
  return *is_html_;
}

const CharsetDecision& PageView::charset() {
  if (!charset_) charset_ = detect_charset(body_, content_type_);
  return *charset_;
}

std::string_view PageView::text() {
  if (text_) return *text_;
  ++made_.texts;
  const CharsetDecision& found = charset();
  std::string_view bytes = body_;
  bytes.remove_prefix(found.bom_length);
  text_ = bytes;
  if (found.name == "UTF-8" || (found.ascii_compatible && is_ascii(bytes))) return *text_;
  if (auto utf8 = to_utf8(bytes, found.name)) {
    transcoded_ = std::move(*utf8);
    text_ = transcoded_;
  }
  return *text_;
}

bool PageView::is_text_as_it_came() { return text().data() == body_.data() && text().size() == body_.size(); }

PageBuffers& PageView::buffers() {
  if (!buffers_) buffers_ = reading_.pool != nullptr ? reading_.pool->take() : std::make_unique<PageBuffers>();
  return *buffers_;
}

const ScanResult& PageView::scan() {
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

const Result<Document>& PageView::document() {
  if (document_) return *document_;
  ++made_.trees;
  // A page that is too large is refused as it came.
  if (body_.size() > DocumentLimits{}.most_bytes) return document_.emplace(Document::parse(body_, content_type_));
  return document_.emplace(Document::parse_text(std::string(text()), content_type_, charset().name));
}

}  // namespace argiope
