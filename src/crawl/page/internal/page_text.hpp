// The text of an answer's body, for all who read it: its charset, and itself in UTF-8, each made when it is first asked
// for, and once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "argiope/web/detail/charset.hpp"

namespace argiope {

// Lifetime: refers to the bytes of its last begin(), which stay as and where they are meanwhile. What it gives is valid
//           until begin(), or until the last one that holds it has let go.
// Threads:  any, but for begin().
class PageText {
 public:
  PageText() = default;
  PageText(const PageText&) = delete;
  PageText& operator=(const PageText&) = delete;

  // From here on it is the text of this body. The caller holds it.
  void begin(std::string_view body, std::string_view content_type);
  // One more holds it.
  void hold();
  // One fewer does. After the last one no memory is left of the text; it is made again if it is asked for.
  void let_go();

  std::string_view body() const noexcept { return body_; }
  std::string_view content_type() const noexcept { return content_type_; }
  const CharsetDecision& charset();
  // The body without its byte order mark, in UTF-8: itself where that is what it is, or all is ASCII. Text that is no
  // UTF-8 in a page that says it is stays as it is.
  std::string_view utf8();

  // How often it was made, since begin(). For tests.
  std::uint32_t times_made() const;

 private:
  const CharsetDecision& charset_now();  // with the mutex held

  std::string_view body_;
  std::string_view content_type_;
  mutable std::mutex mutex_;
  std::size_t holders_ = 0;
  std::optional<CharsetDecision> charset_;
  std::optional<std::string_view> utf8_;
  std::string transcoded_;
  std::uint32_t times_made_ = 0;
};

}  // namespace argiope
