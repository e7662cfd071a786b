// Those options of `argiope crawl` that say what is not followed because the crawl has it in another place.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"

namespace argiope {

struct DuplicateArguments {
  std::string skip;
  bool note_near = false;
  std::optional<std::uint32_t> near_distance;
  bool canonical = false;
  std::vector<std::string> strip_parameters;
  std::vector<std::string> keep_parameters;
  bool learn_parameters = false;
  std::uint32_t traps = 0;

  void add_to(CLI::App& command, const char* group);
  // After what says what is kept of pages. Errors: invalid_input naming the option and what is wrong with it.
  Result<void> apply(CrawlOptions& options) const;
};

}  // namespace argiope
