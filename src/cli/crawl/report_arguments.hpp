// Those options of `argiope crawl` that say what is checked, kept and written of its links and pages.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "cli/command_files.hpp"
#include "crawl/check/internal/check_output.hpp"
#include "crawl/check/internal/link_check.hpp"

namespace argiope {

// How findings are judged: of a crawl, and of a look at its database.
struct JudgeArguments {
  std::string only;
  std::string accept_status;

  void add_to(CLI::App& command, const char* group);
  // Errors: invalid_input naming the option and what is wrong with it.
  Result<CheckRules> rules() const;
};

struct ReportArguments {
  bool check_links = false;
  bool foreign_fragments = false;
  std::optional<Duration> check_age;
  JudgeArguments judge;
  std::vector<std::string> check_outputs;
  std::string check_format;
  bool links = false;
  std::string html;
  std::string sitemap;

  void add_to(CLI::App& command, const char* group);
  // Errors: invalid_input naming the option and what is wrong with it.
  Result<void> apply(CrawlOptions& options) const;

  // The files that are written at the end.
  void name_files(CommandFiles& files) const;

  bool checks() const noexcept { return check_links || !check_outputs.empty(); }
  // Files of findings with their formats; as apply() has found them right.
  Result<std::vector<std::pair<std::string, CheckFormat>>> outputs() const;
};

// The values of --check-format and its like.
inline constexpr const char* kCheckFormats[] = {"text", "json", "csv", "junit", "sarif"};

}  // namespace argiope
