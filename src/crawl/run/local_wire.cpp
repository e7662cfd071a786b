#include "crawl/run/internal/local_wire.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "web/url/internal/host_address.hpp"

namespace argiope {
namespace {

// Of those that have no port of their own for http also where they may be with TLS.
std::vector<std::string> https_sites(const std::vector<Url>& seeds) {
  std::vector<std::string> sites;
  for (const Url& seed : seeds) {
    if (seed.scheme() == "https") {
      sites.push_back(seed.site_key());
    } else if (seed.port().empty()) {
      sites.push_back("https://" + std::string(seed.host()));
    }
  }
  return sites;
}

}  // namespace

void permit_named(AddressGuard& guard, const Url& url) {
  guard.permit_name(url.host());
  if (is_loopback(url)) {
    guard.permit_loopback();
  } else if (const auto address = address_of_host(url.host())) {
    guard.permit(*address);
  }
}

HttpClientOptions wire_options(const CrawlOptions& options, const CrawlSetup& setup) {
  HttpClientOptions http;
  http.user_agent = options.user_agent;
  http.headers_for = options.headers_for;
  http.connect_timeout = options.connect_timeout;
  http.extra_ca_file = setup.ca_file;
  http.proxies = setup.proxies;
  http.versions = setup.http_versions;
  if (setup.rate_limit > 0) http.byte_rate = std::make_shared<ByteRate>(setup.rate_limit);
  http.client_certificate = setup.client_certificate;
  if (!setup.client_certificate.certificate.empty()) http.client_certificate_for = https_sites(options.seeds);
  http.max_idle = std::max<std::size_t>(http.max_idle, options.concurrency);
  return http;
}

Coro<Result<AddressList>> WireOnLoop::ResolverBesideProxies::resolve(std::string_view host) {
  if (proxies_.looks_up_here(host)) co_return co_await resolver_.resolve(host);
  co_return fail(Errc::dns, "looked up by a proxy");
}

WireOnLoop::WireOnLoop(AsioBackend& backend, const HttpClientOptions& http, const AddressGuard& guard)
    : resolver_(ResolverOptions{}, backend),
      host_resolver_(http.proxies, resolver_),
      client_(http, backend, resolver_, guard) {}

}  // namespace argiope
