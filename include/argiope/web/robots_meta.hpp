// What a page asks of crawlers in its X-Robots-Tag headers and robots meta elements.
#pragma once

#include <string_view>

namespace argiope {

struct RobotsDirectives {
  bool noindex = false;
  bool nofollow = false;

  // Adds what a list says ("noindex, nofollow", "none"): tokens separated by commas or spaces, case-insensitive; `none`
  // is both. Others are ignored.
  void add(std::string_view list) noexcept;
};

// The X-Robots-Tag fields of one response, a line each. A field may begin with "agent:"; then it counts only when that is
// `agent`, case-insensitive.
RobotsDirectives parse_robots_tag(std::string_view fields, std::string_view agent) noexcept;

}  // namespace argiope
