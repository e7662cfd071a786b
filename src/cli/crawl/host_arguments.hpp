// Those options of `argiope crawl` that say how its hosts are treated: a file with settings for some of them, and
// whether the pace follows what answers take.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "config/internal/crawl_file.hpp"

namespace argiope {

// Where members of a file stand for options of a command, for errors.
struct OptionTable {
  std::string file;   // "--config site.toml"
  std::string table;  // "crawl"
  std::string help;   // "argiope crawl --help": which options there are
};
// Gives the options of `command` what the members say, but for those for whose name (as in the file) `is_given` is
// true.
// Errors: invalid_input; they name the file, the line and the member.
Result<void> give_options(CLI::App& command, const std::vector<CrawlFileOption>& members, const OptionTable& where,
                          const std::function<bool(const CLI::Option& option)>& is_given);

struct HostArguments {
  std::string file;
  bool no_autothrottle = false;
  double autothrottle_target = 0;   // 0: not given
  std::vector<HostSettings> hosts;  // of the file

  void add_to(CLI::App& command, const char* run_group, const char* pace_group);
  // After the command line has been parsed: reads the file, and gives the options of `command` what it says under
  // [crawl], but for those that were given on the command line.
  // Errors: invalid_input and what `read` gives; they name the file, the line and the member.
  using ReadFile = std::function<Result<CrawlFile>(const std::string& path)>;
  Result<void> read_file(CLI::App& command, const ReadFile& read);
  void apply(CrawlOptions& options) const;
};

}  // namespace argiope
