#include "argiope/web/robots_meta.hpp"

#include "web/ascii.hpp"

namespace argiope {

void RobotsDirectives::add(std::string_view list) noexcept {
  const auto separates = [](char c) { return c == ',' || is_space(c); };
  for_each_token(list, separates, [this](std::string_view word) {
    const bool none = equals_lower(word, "none");
    noindex = noindex || none || equals_lower(word, "noindex");
    nofollow = nofollow || none || equals_lower(word, "nofollow");
  });
}

RobotsDirectives parse_robots_tag(std::string_view fields, std::string_view agent) noexcept {
  RobotsDirectives directives;
  for_each_token(fields, [](char c) { return c == '\n'; }, [&](std::string_view field) {
    const std::size_t colon = field.find(':');
    if (colon < field.find(',')) {
      const std::string_view name = trim_space(field.substr(0, colon));
      if (equals_ignoring_case(name, agent)) {
        field.remove_prefix(colon + 1);
      } else if (!equals_lower(name, "unavailable_after") && !starts_with_lower(name, "max-")) {
        return;  // for another crawler; those two have a colon too, and name nobody
      }
    }
    directives.add(field);
  });
  return directives;
}

}  // namespace argiope
