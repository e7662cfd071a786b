// The wishes of a page to crawlers in its X-Robots-Tag headers and robots meta elements. Neither is a standard; the
// grammar is that of Google's documentation.
#pragma once

#include <string_view>

namespace argiope {

struct RobotsDirectives {
  bool noindex = false;
  bool nofollow = false;

  // Adds what a list says ("noindex, nofollow", "none"): tokens separated by commas or spaces, case-insensitive; `none`
  // is both. Others are ignored. This is the whole content of <meta name=robots>.
  void add(std::string_view list) noexcept;
};

// The X-Robots-Tag fields of one response, a line each. "name:" before a directive makes it and those behind it in the
// same field count only when the name is `agent`, case-insensitive, or "*"; what stands before any name is for
// everybody.
RobotsDirectives parse_robots_tag(std::string_view fields, std::string_view agent) noexcept;

}  // namespace argiope
