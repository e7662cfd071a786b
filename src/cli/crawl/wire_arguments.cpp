#include "cli/crawl/wire_arguments.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "cli/list_option.hpp"
#include "cli/number_option.hpp"

namespace argiope {

// One option, two lines: no formatter sees that.
// clang-format off
void WireArguments::add_to(CLI::App& command, const char* request_group, const char* pace_group) {
  command.add_option("--proxy", proxies, "Fetch by this proxy: http://, https://, socks5:// or socks5h:// (which looks names up itself); several take turns by host (repeatable; default: http_proxy, https_proxy and all_proxy of the environment)")
      ->group(request_group)->type_name("URL")->allow_extra_args(false);
  command.add_option("--no-proxy", no_proxy, "Hosts, domains, addresses and ranges that are asked directly, by commas; '*' for all (default: no_proxy of the environment)")
      ->group(request_group)->type_name("LIST");
  CLI::Option* const certificate = command.add_option("--client-cert", client_certificate.certificate, "Show this certificate (PEM) to the URLs' hosts, and to no other, if they ask for one")
      ->check(CLI::ExistingFile)->group(request_group)->type_name("FILE");
  command.add_option("--client-key", client_certificate.key, "Its private key (PEM), where that is not in the same file")
      ->check(CLI::ExistingFile)->needs(certificate)->group(request_group)->type_name("FILE");
  command.add_option("--client-key-password-file", client_certificate.password_file, "The first line of this file is the key's password")
      ->check(CLI::ExistingFile)->needs(certificate)->group(request_group)->type_name("FILE");
  command.add_option("--http", http, "The version of HTTP that https servers are asked by: auto (2 where the server chooses it), 1.1, 2 (and no other)")
      ->check(CLI::IsMember({"auto", "1.1", "2"}))->group(request_group)->capture_default_str();
  command.add_option("--rate-limit", rate_limit, "Bytes a second that are received, over all connections (500K, 2M)")
      ->transform(whole_bytes(1))->group(pace_group)->type_name("BYTES");
  command.add_option("--quota", quota, "Stop when so many bytes have come (500M, 2G); the next run goes on")
      ->transform(whole_bytes(1))->group(pace_group)->type_name("BYTES");
}
// clang-format on

void WireArguments::name_files(CommandFiles& files) const {
  files.reads("--client-cert", client_certificate.certificate);
  files.reads("--client-key", client_certificate.key);
  files.reads("--client-key-password-file", client_certificate.password_file);
}

Result<ProxySettings> WireArguments::proxy_settings(const ProxySettings::Variable& environment) const {
  ProxySettings settings;
  if (no_proxy) {
    const auto parts = parts_of_list(*no_proxy);
    if (!parts && !no_proxy->empty())
      return fail(Errc::invalid_input, fmt::format("--no-proxy {}; '' is for no host", parts.error().message));
    auto hosts = DirectHosts::parse(*no_proxy);
    if (!hosts) return fail(Errc::invalid_input, fmt::format("--no-proxy {}", hosts.error().message));
    settings.direct = std::move(*hosts);
    if (settings.direct.has_all()) return settings;
  }
  if (proxies.empty()) {
    ProxySettings found = ProxySettings::from_environment(environment);
    if (no_proxy) {
      found.direct = std::move(settings.direct);
      found.direct.add_loopback();
    }
    return found;
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

Result<void> WireArguments::apply(CrawlOptions& options, CrawlSetup& setup,
                                  const ProxySettings::Variable& environment) const {
  auto settings = proxy_settings(environment);
  if (!settings) return std::unexpected(std::move(settings.error()));
  setup.proxies = std::move(*settings);
  if (auto good = check(client_certificate); !good) {
    return fail(good.error().code, fmt::format("--client-cert, --client-key: {}", good.error().message));
  }
  setup.client_certificate = client_certificate;
  setup.rate_limit = rate_limit;
  setup.http_versions = http == "2" ? HttpVersions::http2 : http == "1.1" ? HttpVersions::http1 : HttpVersions::best;
  options.quota = quota;
  return {};
}

std::optional<std::string> environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace argiope
