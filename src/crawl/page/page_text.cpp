#include "crawl/page/internal/page_text.hpp"

#include <utility>

#include "web/text/internal/ascii.hpp"

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
  if (utf8_) return *utf8_;
  ++times_made_;
  const CharsetDecision& found = charset_now();
  std::string_view bytes = body_;
  bytes.remove_prefix(found.bom_length);
  utf8_ = bytes;
  if (found.name == "UTF-8" || (found.ascii_compatible && is_ascii(bytes))) return *utf8_;
  if (auto text = to_utf8(bytes, found.name)) {
    transcoded_ = std::move(*text);
    utf8_ = transcoded_;
  }
  return *utf8_;
}

std::uint32_t PageText::times_made() const {
  const std::lock_guard lock(mutex_);
  return times_made_;
}

}  // namespace argiope
