#include "argiope/web/robots_meta.hpp"

#include <algorithm>

namespace argiope {
namespace {

constexpr char to_lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return to_lower(x) == to_lower(y); });
}

std::string_view trim(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// Takes what stands before `separator` off the front of `rest`.
std::string_view next_part(std::string_view& rest, char separator) noexcept {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return part;
}

}  // namespace

void add_robots_directives(std::string_view list, RobotsDirectives& directives) noexcept {
  while (!list.empty()) {
    const std::string_view word = trim(next_part(list, ','));
    const bool none = equals_ignoring_case(word, "none");
    if (none || equals_ignoring_case(word, "noindex")) directives.noindex = true;
    if (none || equals_ignoring_case(word, "nofollow")) directives.nofollow = true;
  }
}

RobotsDirectives parse_robots_tag(std::string_view fields, std::string_view agent) noexcept {
  RobotsDirectives directives;
  while (!fields.empty()) {
    std::string_view field = next_part(fields, '\n');
    const std::size_t colon = field.find(':');
    // "unavailable_after: …" and the "max-…:" directives have a colon too, and name nobody.
    if (colon != std::string_view::npos && colon < field.find(',')) {
      const std::string_view name = trim(field.substr(0, colon));
      if (equals_ignoring_case(name, agent)) {
        field.remove_prefix(colon + 1);
      } else if (!equals_ignoring_case(name, "unavailable_after") && !equals_ignoring_case(name.substr(0, 4), "max-")) {
        continue;
      }
    }
    add_robots_directives(field, directives);
  }
  return directives;
}

}  // namespace argiope
