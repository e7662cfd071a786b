// Those options of `argiope crawl` that make it read sitemaps and feeds.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"

namespace argiope {

struct SitemapArguments {
  bool sitemaps = false;
  bool feeds = false;
  std::vector<std::string> urls;

  void add_to(CLI::App& command, const char* group);
  // Where no other URL is given, the crawl begins at the front pages of the sitemaps' sites.
  // Errors: invalid_input naming the option and what is wrong with it.
  Result<void> apply(CrawlOptions& options) const;
};

}  // namespace argiope
