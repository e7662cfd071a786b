// Where a crawl starts: URLs as people type them, and lists of them in files or on standard input.
#pragma once

#include <cstddef>
#include <istream>
#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

// A URL without fragment; "https://" goes in front of what has no scheme, as in a browser's address line; http for
// loopback.
// Errors: invalid_input naming the text without its password.
Result<Url> parse_seed(const std::string& text);

// URLs of a list that are as they should be, and what is wrong with the others.
struct SeedList {
  std::vector<Url> seeds;
  // "seeds.txt:7: URL "ftp://x/": scheme "ftp" cannot be crawled; use http or https", the first kMostTold of them.
  std::vector<std::string> bad;
  std::size_t bad_count = 0;

  static constexpr std::size_t kMostSeeds = 1'000'000;
  static constexpr std::size_t kMostTold = 10;
};

// One URL a line. Empty lines, those that begin with "#", and space around are passed over; a line that is no URL is
// told, and skipped. Or a sitemap or feed, packed or not, whose pages these are. Adds to what `list` has. `path`: "-"
// for standard input.
// Errors: not_found and io naming the file; too_large beyond kMostSeeds; invalid_input of XML that is none, and of an
// index.
Result<void> read_seed_list(const std::string& path, SeedList& list);
// The same of a stream; `name` is for what is told.
Result<void> read_seed_list(std::istream& in, const std::string& name, SeedList& list);
// The list's name for people: the path as it may be printed, or "standard input".
std::string name_of_list(const std::string& path);

}  // namespace argiope
