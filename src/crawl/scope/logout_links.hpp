// Links that end a login. No page says which they are, but their names do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "web/url/internal/url_patterns.hpp"

namespace argiope {

// Whether a URL, as Url spells it, reads as one that logs out: by a segment of its path, or by a name or a value of its
// query. The words are in docs/crawl-sessions.md. Parses nothing, allocates nothing.
bool reads_as_logout(std::string_view href) noexcept;

// The logout links, which a crawl that has logged in does not follow.
//
// Threads: any.
class LogoutGuard {
 public:
  // Patterns of `include` that name a logout themselves let theirs through; one that covers everything does not.
  // Throws std::invalid_argument when a pattern is none.
  explicit LogoutGuard(const std::vector<std::string>& include);

  bool bars(std::string_view href) const { return reads_as_logout(href) && !let_through_.match(href); }

 private:
  UrlPatterns let_through_;
};

}  // namespace argiope
