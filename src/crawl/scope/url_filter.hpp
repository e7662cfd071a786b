// Which URLs of the hosts in scope a crawl's options leave out: by patterns, the beginning of the path, the end of the
// name. Pure; what depends on what the crawl has met (folders of seeds, depth) is in Scope.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "argiope/crawl/detail/scope.hpp"
#include "crawl/options/internal/host_rules.hpp"
#include "web/url/internal/url_patterns.hpp"

namespace argiope {

// Threads: any.
class UrlFilter {
 public:
  // Throws std::invalid_argument when a pattern is none.
  explicit UrlFilter(const CrawlOptions& options);

  // Whether the options leave out nothing by these means.
  static bool is_needed(const CrawlOptions& options) noexcept;

  // `none`, `exclude`, `include`, `path_prefix` or `extension`. `href` as Url spells it.
  Exclusion judge(std::string_view href) const;
  bool excludes(std::string_view href) const;

 private:
  // Of a host that has settings of its own.
  struct Patterns {
    UrlPatterns include, exclude;
  };
  bool has_wanted_extension(std::string_view path) const;

  UrlPatterns include_, exclude_;
  std::vector<std::string> path_prefixes_;
  std::unordered_set<std::string> accepted_, rejected_;
  HostRules hosts_;  // none where no host has such settings
  std::unordered_map<const HostSettings*, Patterns> patterns_;
};

// The path of a URL as Url spells it; a view into it.
std::string_view path_in(std::string_view href) noexcept;

}  // namespace argiope
