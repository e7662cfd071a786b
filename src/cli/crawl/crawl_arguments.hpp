// `argiope crawl`'s options: from words to a CrawlOptions and what the command itself needs.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "cli/command_files.hpp"
#include "cli/crawl/duplicate_arguments.hpp"
#include "cli/crawl/extraction_arguments.hpp"
#include "cli/crawl/host_arguments.hpp"
#include "cli/crawl/render_arguments.hpp"
#include "cli/crawl/report_arguments.hpp"
#include "cli/crawl/request_arguments.hpp"
#include "cli/crawl/revisit_arguments.hpp"
#include "cli/crawl/save_arguments.hpp"
#include "cli/crawl/scope_arguments.hpp"
#include "cli/crawl/session_arguments.hpp"
#include "cli/crawl/sitemap_arguments.hpp"
#include "cli/crawl/wire_arguments.hpp"

namespace argiope {

// The options that were typed. Registered with CLI11 by add_to(), turned into CrawlOptions by options().
struct CrawlArguments {
  std::vector<std::string> urls;
  std::vector<std::string> input_files;  // "-": standard input
  std::string database = "argiope.db";
  Duration max_idle{};  // 0: wait
  std::size_t queue_size = 100'000;
  Duration schedule_interval = std::chrono::seconds{1};
  std::size_t concurrency = 256;
  std::vector<std::string> whitelist;
  ScopeArguments scope;
  DuplicateArguments duplicates;
  SitemapArguments sitemaps;
  RevisitArguments revisits;
  ReportArguments report;
  bool color = false;
  bool debug = false;
  int max_depth = -1;
  std::uint64_t max_pages = 0;
  std::uint64_t max_pages_per_host = CrawlOptions{}.max_pages_per_host;
  std::size_t max_links_per_page = CrawlOptions{}.max_links_per_page;
  std::size_t max_url_length = CrawlOptions{}.max_url_length;
  std::uint32_t max_segment_repeats = CrawlOptions{}.max_segment_repeats;
  Duration max_time{};  // 0: no limit
  std::optional<Duration> age;
  std::uint32_t retries = 2;
  std::string order = "bfs";
  std::optional<std::uint64_t> order_seed;
  Duration linger{};  // 0: end
  std::string requeue;
  std::string export_file;
  std::string export_broken_file;
  std::size_t threads = 1;
  bool quiet = false;
  std::string summary;
  bool fail_on_broken = false;
  std::string sync = "full";
  RequestArguments requests;
  WireArguments wire;
  HostArguments host_file;
  RenderArguments render;
  SessionArguments session;
  ExtractionArguments extraction;
  SaveArguments save;
  std::string warc;
  std::uint64_t warc_bytes = 0;

  void add_to(CLI::App& command);
  // Reads the lists of URLs. `remarks`: sentences on what of them was skipped.
  // Errors: invalid_input naming the argument and what is wrong with it; those of read_seed_list().
  Result<CrawlOptions> options(std::vector<std::string>* remarks = nullptr) const;
  // All that are read and written.
  CommandFiles files(const ProxySettings::Variable& environment) const;

 private:
  Result<void> check_effects() const;
  Result<std::vector<Url>> seeds(std::vector<std::string>* remarks) const;
};

}  // namespace argiope
