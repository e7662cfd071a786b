#include "cli/crawl/wire_arguments.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

namespace argiope {

// One option, two lines: no formatter sees that.
// clang-format off
void WireArguments::add_to(CLI::App& command, const char* group) {
  command.add_option("--proxy", proxies, "Fetch by this proxy: http://, https://, socks5:// or socks5h:// (which looks names up itself); several take turns by host (repeatable; default: http_proxy, https_proxy and all_proxy of the environment)")
      ->group(group)->type_name("URL")->allow_extra_args(false);
  command.add_option("--no-proxy", no_proxy, "Hosts, domains, addresses and ranges that are asked directly, by commas; '*' for all (default: no_proxy of the environment)")
      ->group(group)->type_name("LIST");
}
// clang-format on

Result<ProxySettings> WireArguments::proxy_settings(const ProxySettings::Variable& environment) const {
  ProxySettings settings;
  if (no_proxy) {
    auto hosts = DirectHosts::parse(*no_proxy);
    if (!hosts) return fail(Errc::invalid_input, fmt::format("--no-proxy {}", hosts.error().message));
    settings.direct = std::move(*hosts);
    if (settings.direct.has_all()) return settings;
  }
  if (proxies.empty()) {
    auto found = ProxySettings::from_environment(environment);
    if (!found) {
      found.error().message += "; --no-proxy '*' does without";
      return found;
    }
    settings.for_http = std::move(found->for_http);
    settings.for_https = std::move(found->for_https);
    if (no_proxy) {
      settings.direct.add_loopback();
    } else {
      settings.direct = std::move(found->direct);
    }
    return settings;
  }
  if (!no_proxy) settings.direct = ProxySettings::direct_from_environment(environment);
  for (const std::string& text : proxies) {
    auto proxy = Proxy::parse(text);
    if (!proxy) return fail(Errc::invalid_input, fmt::format("--{}", proxy.error().message));
    settings.for_http.push_back(std::move(*proxy));
  }
  settings.for_https = settings.for_http;
  return settings;
}

Result<void> WireArguments::apply(CrawlSetup& setup, const ProxySettings::Variable& environment) const {
  auto settings = proxy_settings(environment);
  if (!settings) return std::unexpected(std::move(settings.error()));
  setup.proxies = std::move(*settings);
  return {};
}

std::optional<std::string> environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace argiope
