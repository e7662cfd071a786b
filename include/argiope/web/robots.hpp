// robots.txt by RFC 9309: what a file says to one crawler, and what its absence says. The crawl fetches and caches
// it, and asks before each request; robots directives inside pages and headers are in robots_meta.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

// The meaning of the answer to a request for robots.txt.
enum class RobotsVerdict : std::uint8_t { parse, allow_all, disallow_all };
// RFC 9309, 2.3.1: success is parsed; a client error (4xx) allows everything, and so does a redirect that leads
// nowhere; a server error, and what is no final status at all, disallows everything. So does 429, which is a plea for
// less, and 304, which only says that rules have not changed that nobody was asked about.
RobotsVerdict robots_policy(int status) noexcept;
// No answer at all disallows everything (2.3.1.4); more redirects than are followed (not_found) count as "unavailable",
// which allows it (2.3.1.2).
RobotsVerdict robots_policy(const Error& error) noexcept;

// The rules of one robots.txt for one product token.
//
// Memory:  its own rules only, some 24 bytes each beside their text; bounded by kMostBytes of file.
// Cost:    allowed() looks at each rule once, longest first: some 20 ns and 1 to 2 ns a rule. Wildcards may cost up to
//          kMostSteps comparisons in all; a file that needs more to judge a path is taken to forbid it.
// Threads: reads may run beside each other.
class RobotsRules {
 public:
  static constexpr std::size_t kMostBytes = 500 * 1024;  // RFC 9309, 2.5
  static constexpr std::size_t kMostRules = 50'000;      // later ones are ignored
  static constexpr std::size_t kMostSitemaps = 1000;
  static constexpr std::size_t kMostSteps = 1'000'000;
  static constexpr Duration kLongestCrawlDelay = std::chrono::hours{1};

  // Allows everything.
  RobotsRules() = default;
  static RobotsRules allow_all() { return {}; }
  static RobotsRules disallow_all();
  // Reads the first kMostBytes of `file`; a line that reaches this limit without an end was cut, and does not count.
  // Nothing in a file is an error: what is not understood is skipped. A line without a colon is read when it is a known
  // key and one value, and the commonest misspellings of keys are known, both as Google does.
  // Of `product_token`, the leading letters, digits, "-" and "_" are compared, without regard to case.
  static RobotsRules parse(std::string_view file, std::string_view product_token);

  // `path_and_query` as in a request line, beginning with "/". The longest match decides, allow winning a tie;
  // /robots.txt itself is always allowed (2.2.2).
  bool allowed(std::string_view path_and_query) const;
  // Not in the RFC, but widely written: the rest between two requests. The longest, when a group names several.
  std::optional<Duration> crawl_delay() const noexcept { return crawl_delay_; }
  // URLs as written, whatever group they stand in.
  const std::vector<std::string>& sitemaps() const noexcept { return sitemaps_; }
  std::size_t rule_count() const noexcept { return rules_.size(); }

 private:
  friend class RobotsParser;
  struct Rule {
    std::uint64_t head;    // the first bytes of the pattern, as many as head_size, then zeros
    std::uint32_t offset;  // of the pattern in text_
    std::uint32_t size;
    std::uint8_t head_size;  // at most 8; never reaches into what is no plain text
    bool allow;
    bool plain;  // a prefix, without "*", final "$" or escapes that match in more than one spelling
  };

  void add(std::string_view pattern, bool allow);
  // Longest first, allow before disallow: then the first match decides.
  void put_in_order();
  bool matches(const Rule& rule, std::string_view path, std::size_t query, std::size_t& steps_left) const noexcept;

  std::string text_;  // the normalised patterns, one behind the other
  std::vector<Rule> rules_;
  std::optional<Duration> crawl_delay_;
  std::vector<std::string> sitemaps_;
};

}  // namespace argiope
