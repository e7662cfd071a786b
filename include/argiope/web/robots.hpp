// robots.txt by RFC 9309: what a file says to one crawler, and what its absence says.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

// What the answer to a request for robots.txt means.
enum class RobotsVerdict : std::uint8_t { parse, allow_all, disallow_all };
// RFC 9309, 2.3.1: success is parsed; a client error (4xx) allows everything, and so does a redirect that was not
// followed to its end; a server error disallows everything. 429 is a plea for less, and is taken as the latter.
RobotsVerdict robots_policy(int status) noexcept;
// No answer at all disallows everything (2.3.1.4); more redirects than are followed counts as "unavailable" (2.3.1.2).
RobotsVerdict robots_policy(const Error& error) noexcept;

// The rules of one robots.txt for one product token.
//
// Memory:  bounded by kMostBytes of file. Cost: allowed() is linear in rules and path; no input makes it exponential.
// Threads: reads may run beside each other.
class RobotsRules {
 public:
  static constexpr std::size_t kMostBytes = 500 * 1024;  // RFC 9309, 2.5
  static constexpr std::size_t kMostSitemaps = 1000;
  static constexpr Duration kLongestCrawlDelay = std::chrono::hours{1};

  // Allows everything.
  RobotsRules() = default;
  static RobotsRules allow_all() { return {}; }
  static RobotsRules disallow_all();
  // Reads the first kMostBytes of `file`; a line cut there does not count. Nothing in a file is an error: what is not
  // understood is skipped. `product_token` is compared without regard to case.
  static RobotsRules parse(std::string_view file, std::string_view product_token);

  // `path_and_query` as in a request line, beginning with "/". The longest match decides, allow winning a tie;
  // /robots.txt itself is always allowed (2.2.2).
  bool allowed(std::string_view path_and_query) const;
  // Not in the RFC, but widely written: the rest between two requests.
  std::optional<Duration> crawl_delay() const noexcept { return crawl_delay_; }
  // Absolute URLs as written, whatever group they stand in.
  const std::vector<std::string>& sitemaps() const noexcept { return sitemaps_; }
  std::size_t rule_count() const noexcept { return rules_.size(); }

 private:
  struct Rule {
    std::string pattern;  // normalised; may hold "*" and end with "$"
    bool allow;
    bool plain;  // no wildcards: a prefix
  };
  friend class RobotsParser;
  std::vector<Rule> rules_;  // longest first, allow before disallow
  std::optional<Duration> crawl_delay_;
  std::vector<std::string> sitemaps_;
};

// RFC 9309, 2.2.2: %-escapes of unreserved characters decoded, other bytes beyond ASCII escaped, hexadecimal digits in
// upper case. Paths and patterns are compared in this form.
std::string normalize_robots_path(std::string_view path);

}  // namespace argiope
