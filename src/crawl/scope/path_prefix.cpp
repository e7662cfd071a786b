#include "crawl/scope/internal/path_prefix.hpp"

#include <fmt/format.h>

#include "argiope/web/url.hpp"
#include "base/internal/printable.hpp"

namespace argiope {

Result<std::string> parse_path_prefix(std::string_view text) {
  if (text.starts_with('/') && text.find_first_of("?#") == std::string_view::npos) {
    if (const auto url = Url::parse(fmt::format("http://h{}", text))) return std::string(url->pathname());
  }
  const auto whole = Url::parse(text);
  const std::string advice = whole && !whole->host().empty()
                                 ? fmt::format("; --include {}** names a host, too", printable(text))
                                 : std::string(" and has no query");
  return fail(Errc::invalid_input, fmt::format("{}: a path begins with /{}", in_quotes(text), advice));
}

}  // namespace argiope
