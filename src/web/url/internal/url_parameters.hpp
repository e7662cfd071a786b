// The parameters of URLs: "name=value" in the query, between "&", and ";name=value" at the ends of path segments. The
// parameters that sessions and campaigns put there tell nothing of the page; which names those are is a list here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {

// Calls `visit(begin, end, name)` for each parameter of a URL without a fragment, as Url spells it: from the "?", "&"
// or ";" before it to the byte behind it. Names are as written, and never empty.
template <class Visit>
void for_each_parameter(std::string_view href, Visit&& visit) {
  const std::size_t query = std::min(href.find('?'), href.size());
  const std::size_t scheme = std::min(href.find("://"), query);
  const std::size_t path = std::min(href.find('/', std::min(scheme + 3, query)), query);
  const auto piece = [&](std::size_t begin, std::size_t end) {
    const std::string_view text = href.substr(begin + 1, end - begin - 1);
    if (const std::string_view name = text.substr(0, text.find('=')); !name.empty()) visit(begin, end, name);
  };
  for (std::size_t at = href.find(';', path); at < query;) {
    const std::size_t end = std::min(href.find_first_of(";/", at + 1), query);
    piece(at, end);
    at = end < query && href[end] == ';' ? end : href.find(';', end);
  }
  for (std::size_t at = query; at < href.size();) {
    const std::size_t end = std::min(href.find('&', at + 1), href.size());
    piece(at, end);
    at = end;
  }
}

// The URL without those parameters for whose names `drop` holds; empty when that is none of them. It may have to be
// parsed again to be as Url spells it: without ";a=b", "..;a=b" goes up.
template <class Drop>
std::string without_parameters(std::string_view href, Drop&& drop) {
  std::string rest;
  std::size_t kept = 0;  // what stands before it was dealt with
  bool is_any_dropped = false;
  char before = '?';
  const std::size_t query = std::min(href.find('?'), href.size());
  for_each_parameter(href, [&](std::size_t begin, std::size_t end, std::string_view name) {
    const bool goes = drop(name);
    is_any_dropped = is_any_dropped || goes;
    if (begin < query) {
      if (!goes) return;
      rest.append(href.substr(kept, begin - kept));
      kept = end;
      return;
    }
    if (kept < query) rest.append(href.substr(kept, query - kept));
    kept = href.size();
    if (!goes) rest.append(1, std::exchange(before, '&')).append(href.substr(begin + 1, end - begin - 1));
  });
  if (!is_any_dropped) return {};
  if (kept < query) rest.append(href.substr(kept, query - kept));
  return rest;
}

// Names of parameters: as they are written in any case, or their beginning before a "*".
class ParameterNames {
 public:
  ParameterNames() = default;
  // Each of `words` is a name, a beginning ("utm_*"), or one of the lists "tracking" and "sessions".
  // Errors: invalid_input naming the word.
  static Result<ParameterNames> parse(std::span<const std::string> words);

  bool contains(std::string_view name) const noexcept;
  bool empty() const noexcept { return names_.empty() && beginnings_.empty(); }

 private:
  std::vector<std::string> names_, beginnings_;  // in lower case
};

// The parameters for which "tracking" and "sessions" stand.
std::span<const std::string_view> tracking_parameters() noexcept;
std::span<const std::string_view> session_parameters() noexcept;

}  // namespace argiope
