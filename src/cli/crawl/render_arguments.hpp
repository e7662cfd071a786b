// The options that are about pages as JavaScript makes them: those of `argiope crawl`, and those that the commands of
// projects share with it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/render/page_renderer.hpp"

namespace argiope {

struct RenderArguments {
  bool render = false;
  std::vector<std::string> only;
  std::optional<Duration> wait;
  std::string until;
  Duration timeout = ChromiumOptions{}.timeout;
  std::size_t pages = ChromiumOptions{}.pages;
  std::size_t requests = RenderLimits{}.requests;
  std::string browser;
  bool no_sandbox = false;

  void add_to(CLI::App& command, const char* group);
  // Those alone that say how pages are rendered, and not which. The options.
  std::vector<CLI::Option*> add_browser_to(CLI::App& command, const char* group);
  // Looks for the browser, and starts none.
  // Errors: invalid_input naming the option and what is wrong with it; not_found and unsupported where this machine has
  // no browser, or none that we may start.
  Result<ChromiumOptions> browser_options(const std::string& user_agent) const;
  // For a crawl with so many threads. Errors: the same, naming the option.
  Result<void> apply(CrawlOptions& options, std::size_t threads) const;
};

}  // namespace argiope
