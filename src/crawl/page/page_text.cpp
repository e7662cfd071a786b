#include "crawl/page/internal/page_text.hpp"

namespace argiope {

void PageText::begin(std::string_view body, std::string_view content_type) {
  const std::lock_guard lock(mutex_);
  body_ = body;
  content_type_ = content_type;
  holders_ = 1;
  charset_.reset();
  utf8_.reset();
  times_made_ = 0;
}

void PageText::hold() {
  const std::lock_guard lock(mutex_);
  ++holders_;
}

void PageText::let_go() {
  const std::lock_guard lock(mutex_);
  if (--holders_ > 0) return;
  utf8_.reset();
  transcoded_ = std::string{};
}

const CharsetDecision& PageText::charset_now() {
  if (!charset_) charset_ = detect_charset(body_, content_type_);
  return *charset_;
}

const CharsetDecision& PageText::charset() {
  const std::lock_guard lock(mutex_);
  return charset_now();
}

std::string_view PageText::utf8() {
  const std::lock_guard lock(mutex_);
  if (!utf8_) {
    ++times_made_;
    utf8_ = in_utf8(body_, charset_now(), transcoded_);
  }
  return *utf8_;
}

std::uint32_t PageText::times_made() const {
  const std::lock_guard lock(mutex_);
  return times_made_;
}

}  // namespace argiope
