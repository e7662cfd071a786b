// Which URLs belong to a crawl, and which look like a trap. Pure rules: no state of the crawl but the hosts in scope.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "argiope/crawl/crawl_options.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

// Why a link is not followed. `none`: it is.
enum class Exclusion : std::uint8_t {
  none,
  scheme,     // not http or https
  off_scope,  // another host than the crawl's
  robots,     // robots.txt forbids it
  nofollow,   // the page or the link asks not to follow
  depth,      // farther from a seed than max_depth
  url_length,
  repeated_segment,  // /a/b/a/b/a/b/…
  pages_per_host,
};
inline constexpr std::size_t kExclusions = 9;
// As written in reports and databases, e.g. "off_scope".
std::string_view to_string(Exclusion exclusion) noexcept;

// Threads: reads may run beside each other; allow_host() alone.
class Scope {
 public:
  // The seeds' hosts and the whitelist.
  explicit Scope(const CrawlOptions& options);

  // Adds a host (any port of it): what a seed redirects to belongs to the crawl as the seed does.
  void allow_host(std::string_view host) { hosts_.emplace(host); }
  bool contains(const Url& url) const;

  // Depth, length and repetition; not scope.
  Exclusion trap(const Url& url, std::uint32_t depth) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  using HostSet = std::unordered_set<std::string, Hash, std::equal_to<>>;

  HostSet hosts_;
  HostSet domains_;
  std::uint32_t max_depth_;
  std::size_t max_url_length_;
  std::uint32_t max_segment_repeats_;
};

// The largest number of times one non-empty segment stands in `path`.
std::uint32_t most_repeated_segment(std::string_view path);

}  // namespace argiope
