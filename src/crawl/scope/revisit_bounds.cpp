#include "crawl/scope/internal/revisit_bounds.hpp"

#include <fmt/format.h>

#include <string>

#include "argiope/base/clock.hpp"
#include "base/internal/printable.hpp"

namespace argiope {

Result<RevisitBounds> parse_revisit_bounds(std::string_view text) {
  const std::size_t dots = text.find("..");
  const auto wrong = [&](std::string_view why) {
    return fail(Errc::invalid_input, fmt::format("{}: {}; write it as MIN..MAX, as in 10m..7d", in_quotes(text), why));
  };
  if (dots == std::string_view::npos) return wrong("it has no \"..\"");
  const auto least = parse_duration(text.substr(0, dots));
  const auto most = parse_duration(text.substr(dots + 2));
  if (!least || !most) return wrong("it takes two spans of time");
  if (*least > *most) return wrong("the first is the shorter one");
  return RevisitBounds{*least, *most};
}

}  // namespace argiope
