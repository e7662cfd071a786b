#include "argiope/web/detail/robots_meta.hpp"

#include <algorithm>

#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

// Directives that have a colon and a value, and so look like names.
constexpr std::string_view kValued[] = {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"};

// Whether text before a colon names a crawler; "25 Jun 2030 15" does not, of "25 Jun 2030 15:00:00".
bool names_agent(std::string_view text) noexcept {
  return !text.empty() && std::ranges::none_of(text, is_space) &&
         std::ranges::none_of(kValued, [&](std::string_view valued) { return equals_lower(text, valued); });
}

void add_field(RobotsDirectives& directives, std::string_view field, std::string_view agent) noexcept {
  bool for_us = true;
  for_each_token(
      field, [](char c) { return c == ','; },
      [&](std::string_view part) {
        const std::size_t colon = part.find(':');
        if (colon != std::string_view::npos) {
          const std::string_view name = trim_space(part.substr(0, colon));
          if (!names_agent(name)) return;
          for_us = name == "*" || equals_ignoring_case(name, agent);
          part.remove_prefix(colon + 1);
        }
        if (for_us) directives.add(part);
      });
}

}  // namespace

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
  for_each_token(
      fields, [](char c) { return c == '\n'; }, [&](std::string_view field) { add_field(directives, field, agent); });
  return directives;
}

}  // namespace argiope
