// Those options of `argiope crawl` that say when pages are fetched again, beside --age and --requeue.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"

namespace argiope {

struct RevisitArguments {
  bool forever = false;
  std::string adaptive;  // MIN..MAX

  void add_to(CLI::App& command, const char* group);
  // Called when the options have their age. Errors: invalid_input naming the option and what is wrong with it.
  Result<void> apply(CrawlOptions& options) const;
};

}  // namespace argiope
