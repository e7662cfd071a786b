// Those options of `argiope crawl` that make a mirror.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/crawl/sinks.hpp"

namespace argiope {

struct SaveArguments {
  std::string folder;  // empty: none is made
  std::string assets;  // empty: all for a mirror, else none

  void add_to(CLI::App& command, const char* group);
  // The assets that pages are shown with are fetched for a mirror, and for an archive that asks for them.
  void apply(CrawlOptions& options) const;
  // Opens the mirror and adds it to the sinks of `options`, whose seeds are known; null where none is asked for.
  // Errors: those of SaveSink::open(), naming the option.
  Result<std::shared_ptr<SaveSink>> open(CrawlOptions& options, bool sync, Random random) const;
};

// The outcome of the mirror, for people.
void print_mirror(std::FILE* out, const SaveSink& mirror, const SaveArguments& arguments,
                  const std::vector<Url>& seeds);

}  // namespace argiope
