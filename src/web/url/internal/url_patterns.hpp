// Patterns of URLs as people write them: globs, and regular expressions behind "re:". All patterns of a set are matched
// in one pass, in time linear in the URL whatever the patterns are (RE2).
//
//   /docs/**                   begins with a slash: compared with the path
//   https://example.org/**     with a scheme: compared with the URL
//   *.example.org/img/*        with a slash, and no scheme: compared with what follows the scheme
//   *.pdf                      without a slash: compared with the URL, and "*" goes beyond slashes, too
//   re:[?&]session=            found anywhere in the URL; refused where it fits none (^/, letters beyond ASCII)
//
// In a glob "*" is any text without a slash (behind a "?": any text), "**" any text ("**/" also none), "?" one
// character but a slash, "{a,b}" either, "[a-z]" one of these and "[!a-z]" another one; "\" takes what follows as it
// is. A glob covers the URL from end to end, but a query may follow. Hosts are compared in lower case and in ASCII, and
// what a URL writes with "%" may be written plainly.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"

namespace argiope {

// A set of patterns: which URLs match one of them.
//
// Memory:  some 10 KB a pattern, and at most 64 MB for what the set has learned while matching.
// Threads: any may match at a time. Copies share what they are made of.
class UrlPatterns {
 public:
  static constexpr std::size_t kMostPatterns = 10'000;
  static constexpr std::size_t kMostPatternBytes = 64 * 1024;

  // Matches nothing.
  UrlPatterns() = default;
  // Errors: invalid_input naming the pattern and what is wrong with it; too_large when they are too many, or too large
  // together.
  static Result<UrlPatterns> compile(const std::vector<std::string>& patterns);

  // Whether there is none.
  bool empty() const noexcept { return set_ == nullptr; }
  // Whether one of them matches the URL, as Url spells it, without fragment.
  bool match(std::string_view href) const;

 private:
  struct Set;
  std::shared_ptr<const Set> set_;
};

// The pattern itself, if it is one. Errors: invalid_input, as compile().
Result<std::string> parse_url_pattern(std::string_view pattern);

// The regular expression that a pattern stands for, to be found in a URL. Errors: invalid_input, as compile().
Result<std::string> url_pattern_expression(std::string_view pattern);

}  // namespace argiope
