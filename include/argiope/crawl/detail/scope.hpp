// Which URLs belong to a crawl, and which look like a trap. Pure rules: no state of the crawl but the hosts in scope.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

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
  exclude,         // it fits a pattern of CrawlOptions::exclude
  include,         // it fits none of CrawlOptions::include
  path_prefix,     // its path begins otherwise
  parent,          // outside of the seeds' folders, with no_parent
  extension,       // its name ends otherwise, or as it must not
  content_type,    // its answer is of another type than accept_types
  links_per_page,  // beyond the first max_links_per_page of its page, or an attribute of more than 64 KiB
  logout,          // it reads as if it ended the login
  duplicate,       // the links of a page whose content is another's; counted once a page
  alias,           // the links of a page with another canonical URL; counted once a page
  parameter,       // followed without the parameters that are taken out
  near_duplicate,  // as duplicate
  trap,            // of the shape of URLs whose pages were all copies
  nesting,  // what a page is shown with, behind twenty files in a row: style sheets that import one another. Not stored
};
inline constexpr std::size_t kExclusions = 23;
// As written in reports and databases, e.g. "off_scope".
std::string_view to_string(Exclusion exclusion) noexcept;

class LogoutGuard;
class UrlFilter;
class HostRules;

// Which URLs belong to a crawl. A host is in scope whatever the scheme and, unless the options name ports, the port.
//
// Threads: reads may run beside each other; follow_seed() and guard_login() alone.
class Scope {
 public:
  // The seeds' hosts and the whitelist, less what the options leave out.
  // Throws std::invalid_argument when one of their patterns is none.
  explicit Scope(const CrawlOptions& options);
  ~Scope();

  // `seed`, a seed or what one has led to, redirects to `target`, which is one from now on: it is in scope, and so is
  // its host if it is the same site by another name (is_same_site). True if something is in scope that was not.
  bool follow_seed(std::string_view seed, const Url& target);
  // From now on what reads as if it logged out is left out (`logout`), unless one of `include` names it.
  // Throws std::invalid_argument when a pattern is none.
  void guard_login(const std::vector<std::string>& include);
  // Whether `href` is one of the seeds, or what they have led to.
  bool is_seed(std::string_view href) const { return seeds_.contains(href); }

  // Whether `depth` is more than the host of `href` may have.
  bool is_too_deep(std::string_view href, std::uint32_t depth) const;

  bool contains(const Url& url) const { return contains(url.href(), url.host()); }
  // Depth, length and repetition; not scope.
  Exclusion trap(std::string_view href, std::uint32_t depth) const;
  // Why a URL that is off scope is not even to be checked: what trap() says, a pattern that excludes it, or `logout`.
  // Else `none`.
  Exclusion bars_check(std::string_view href, std::uint32_t depth) const;
  // Where a URL of http or https stands, as Url spells it: `none`, `off_scope`, what the options leave out (`exclude`,
  // `include`, `path_prefix`, `parent`, `extension`, `logout`), or what trap() says. A seed is always in scope. Parses
  // nothing.
  Exclusion place_of(std::string_view href, std::uint32_t depth) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  using TextSet = std::unordered_set<std::string, Hash, std::equal_to<>>;

  bool contains(std::string_view href, std::string_view host) const;
  bool is_whitelisted(std::string_view host, std::uint16_t port) const;
  bool add_folder(const Url& seed);
  bool is_in_a_folder(std::string_view href, std::string_view host) const;

  TextSet seeds_;
  TextSet hosts_;
  TextSet domains_;  // "example.org", "example.org:8080"
  bool domains_have_ports_ = false;
  std::vector<std::uint16_t> ports_;
  // Null when it would let everything pass.
  std::unique_ptr<const UrlFilter> filter_;
  std::unique_ptr<const LogoutGuard> logout_;  // null: there is no login to guard
  bool no_parent_;
  // With no_parent: of seeds, and of what they lead to. "example.org/docs/" of a host that a seed names,
  // "/example.org/docs/" of the same site by whatever name. Which hosts are bounded is known before any seed has
  // answered, and what is in a folder stays so.
  TextSet folders_;
  TextSet hosts_of_seeds_;  // as they are given
  TextSet sites_of_seeds_;  // without "www."
  std::uint32_t max_depth_;
  // Null where no host has scope of its own.
  std::unique_ptr<const HostRules> hosts_of_depth_;
  std::size_t max_url_length_;
  std::uint32_t max_segment_repeats_;
};

// Whether two hosts are one site without asking who has registered what: equal, or but for "www.".
bool is_same_site(std::string_view host, std::string_view other) noexcept;

// The largest number of times one non-empty segment stands in `path`.
std::uint32_t most_repeated_segment(std::string_view path);

}  // namespace argiope
