// Those of `argiope crawl`'s options that say how bytes come: proxies.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/local_crawl.hpp"
#include "argiope/web/proxy.hpp"

namespace argiope {

struct WireArguments {
  std::vector<std::string> proxies;
  std::optional<std::string> no_proxy;

  void add_to(CLI::App& command, const char* group);
  // `environment` counts where an option is not given.
  // Errors: invalid_input naming the option, or the variable, and what is wrong with it.
  Result<void> apply(CrawlSetup& setup, const ProxySettings::Variable& environment) const;

 private:
  Result<ProxySettings> proxy_settings(const ProxySettings::Variable& environment) const;
};

// Of this process.
std::optional<std::string> environment_variable(const char* name);

}  // namespace argiope
