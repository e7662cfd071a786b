// The text of an answer's body, for all who read it: its charset, and itself in UTF-8, each found out once and when it
// is asked for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "argiope/web/detail/charset.hpp"

namespace argiope {

// Threads: one at a time.
class PageText {
 public:
  PageText() = default;
  PageText(const PageText&) = delete;
  PageText& operator=(const PageText&) = delete;

  // From here on it is the text of this body, which stays as and where it is meanwhile, and so does its type.
  void begin(std::string_view body, std::string_view content_type) noexcept;

  const CharsetDecision& charset();
  // As page_in_utf8() has it. Valid until begin().
  std::string_view utf8();

 private:
  std::string_view body_;
  std::string_view content_type_;
  std::optional<CharsetDecision> charset_;
  std::optional<std::string_view> utf8_;
  std::string transcoded_;
};

}  // namespace argiope
