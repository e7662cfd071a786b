// `argiope project run`'s options: from words to what the engine and its client work with.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/crawl/local_crawl.hpp"
#include "argiope/web/detail/proxy.hpp"
#include "cli/command_files.hpp"
#include "cli/crawl/host_arguments.hpp"
#include "cli/crawl/render_arguments.hpp"
#include "cli/crawl/request_arguments.hpp"
#include "cli/crawl/wire_arguments.hpp"

namespace argiope {

inline constexpr const char* kPagesDatabase = "pages.db";
inline constexpr const char* kRenderGroup = "Pages whose scripts ask for a browser (docs/crawl-render.md)";

struct ProjectRunArguments {
  std::vector<std::string> files;  // none: what the database has
  std::string database = kPagesDatabase;
  bool once = false;
  Duration retry_wait = std::chrono::minutes{1};
  std::string results;  // empty: none; "-": standard output
  bool quiet = false;
  bool debug = false;
  std::string summary;
  std::string sync = "full";
  std::string sandbox = "strict";
  std::size_t workers = 2;
  std::size_t concurrency = 200;
  RequestArguments requests;
  WireArguments wire;
  HostArguments hosts;
  RenderArguments render;

  ProjectRunArguments() { requests.timeout = std::chrono::minutes{2}; }

  void add_to(CLI::App& command);
  // All that are read and written, but for those that the projects name.
  void name_files(CommandFiles& into) const;
  // Checks all that needs no look at any file. Errors: invalid_input naming the option and what is wrong with it.
  Result<void> check() const;
  // `options.seeds` are the projects' starts already.
  // Errors: the same.
  Result<void> apply(CrawlOptions& options, CrawlSetup& setup, const ProxySettings::Variable& environment) const;
};

}  // namespace argiope
