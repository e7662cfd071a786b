// Those of `argiope crawl`'s options that say how bytes come: proxies, how fast and how many, the client's certificate.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/crawl/local_crawl.hpp"
#include "argiope/web/detail/proxy.hpp"
#include "argiope/web/detail/tls.hpp"
#include "cli/command_files.hpp"

namespace argiope {

struct WireArguments {
  std::vector<std::string> proxies;
  std::optional<std::string> no_proxy;
  std::uint64_t rate_limit = 0;  // 0: none
  std::uint64_t quota = 0;       // 0: none
  std::string http = "auto";
  ClientCertificate client_certificate;

  // Those of each request in `request_group`, those of the pace in `pace_group`.
  void add_to(CLI::App& command, const char* request_group, const char* pace_group);
  // `environment` counts where an option is not given.
  // Errors: invalid_input naming the option, or the variable, and what is wrong with it.
  Result<void> apply(CrawlOptions& options, CrawlSetup& setup, const ProxySettings::Variable& environment) const;
  void name_files(CommandFiles& files) const;

 private:
  Result<ProxySettings> proxy_settings(const ProxySettings::Variable& environment) const;
};

// Of this process.
std::optional<std::string> environment_variable(const char* name);

}  // namespace argiope
