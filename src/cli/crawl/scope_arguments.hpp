// Those options of `argiope crawl` that say which URLs belong to it, beside hosts and depth.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"

namespace argiope {

struct ScopeArguments {
  bool domain = false;
  std::vector<std::uint16_t> ports;
  std::vector<std::string> include, exclude;
  std::vector<std::string> path_prefixes;
  bool no_parent = false;
  std::vector<std::string> accept_types, accept_extensions, reject_extensions;

  void add_to(CLI::App& command, const char* group);
  // Errors: invalid_input naming the option and what is wrong with it.
  Result<void> apply(CrawlOptions& options) const;
};

}  // namespace argiope
