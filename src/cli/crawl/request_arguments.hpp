// Those options of `argiope crawl` that say how a host is asked: how often, as whom, for how long. Also those of
// `argiope project run`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/crawl/local_crawl.hpp"
#include "cli/command_files.hpp"

namespace argiope {

struct RequestArguments {
  std::uint32_t per_host = 0;  // 0: not given
  std::optional<Duration> delay;
  double rate = -1;  // negative: not given
  Duration max_crawl_delay = kMostCrawlDelay;
  bool no_robots = false;
  std::string user_agent;
  std::vector<std::string> headers;
  std::vector<std::pair<std::string, std::string>> headers_for;
  Duration timeout = std::chrono::seconds{30};
  Duration connect_timeout = std::chrono::seconds{10};
  std::size_t size_limit_kb = 10'240;
  bool allow_private = false;
  std::string ca_file;

  void add_pace_to(CLI::App& command, const char* group);
  void add_robots_to(CLI::App& command, const char* group);
  void add_to(CLI::App& command, const char* group);
  // Only the option of add_to() on the addresses that are asked: --allow-private.
  CLI::Option* add_guard_to(CLI::App& command);
  // The seeds are in `options` already: names and passwords are taken out of them, and go to their servers.
  // Errors: invalid_input naming the option and what is wrong with it.
  Result<void> apply(CrawlOptions& options) const;
  void apply(CrawlSetup& setup) const;
  void name_files(CommandFiles& files) const;
};

}  // namespace argiope
