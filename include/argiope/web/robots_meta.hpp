// What a page asks of crawlers in its X-Robots-Tag headers and robots meta elements.
#pragma once

#include <string_view>

namespace argiope {

struct RobotsDirectives {
  bool noindex = false;
  bool nofollow = false;
};

// Reads one comma-separated list ("noindex, nofollow", "none"), without regard to case, into `directives`; what it does
// not know is skipped.
void add_robots_directives(std::string_view list, RobotsDirectives& directives) noexcept;

// The X-Robots-Tag fields of one response, a line each. A field may begin with "agent:"; it counts when that is `agent`.
RobotsDirectives parse_robots_tag(std::string_view fields, std::string_view agent) noexcept;

}  // namespace argiope
