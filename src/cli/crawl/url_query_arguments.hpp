// The options that pick URLs out of a crawl's database.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "crawl/urls/internal/url_query.hpp"

namespace argiope {

struct UrlQueryArguments {
  std::vector<std::string> states, reasons, statuses, hosts, patterns, types;
  bool broken = false;
  std::string min_size, max_size, fetched_since, fetched_before, depth;

  void add_to(CLI::App& command, const char* group);
  bool is_given() const noexcept;
  // Errors: invalid_input naming the option and what is wrong with it.
  Result<UrlQuery> query(WallTime now) const;
};

}  // namespace argiope
