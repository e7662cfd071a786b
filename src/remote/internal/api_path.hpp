// Paths of the API's resources, as its clients write them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/printable.hpp"

namespace argiope {

// Whether a name has to stand behind "=" in a path: where it would be resolved, be a word of the API, or lose its own
// "=".
inline bool needs_mark_in_path(std::string_view name) noexcept {
  return name == "." || name == ".." || name == "change" || name.starts_with('=');
}

// "/v1/queues/mail/pause"; `what` may be empty. `kind`: "job", "queue" or "schedule".
// Errors: not_found for no name at all.
inline Result<std::string> path_of(std::string_view kind, std::string_view name, std::string_view what = {}) {
  if (name.empty())
    return fail(Errc::not_found, fmt::format("{} {}: there is no such {}", kind, in_quotes(name), kind));
  return fmt::format("/v1/{}s/{}{}{}{}", kind, needs_mark_in_path(name) ? "=" : "", percent_encode(name),
                     what.empty() ? "" : "/", what);
}

}  // namespace argiope
