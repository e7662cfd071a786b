#include "crawl/page/internal/page_text.hpp"

#include "crawl/page/page_in_utf8.hpp"

namespace argiope {

void PageText::begin(std::string_view body, std::string_view content_type) noexcept {
  body_ = body;
  content_type_ = content_type;
  charset_.reset();
  utf8_.reset();
}

const CharsetDecision& PageText::charset() {
  if (!charset_) charset_ = detect_charset(body_, content_type_);
  return *charset_;
}

std::string_view PageText::utf8() {
  if (!utf8_) utf8_ = page_in_utf8(body_, charset(), transcoded_);
  return *utf8_;
}

}  // namespace argiope
