#include "crawl/frontier.hpp"

#include <algorithm>
#include <limits>

namespace argiope {
namespace {

constexpr double kPublicRate = 5;        // requests a second to a public host, unless told otherwise
constexpr std::uint32_t kLoopbackConnections = 8;
// Longer than any exchange may take: a lease here is given back by the visit itself.
constexpr Duration kLeaseTime = std::chrono::hours{24};

bool is_loopback(const Url& url) {
  std::string_view host = url.host();
  if (host == "localhost" || host.ends_with(".localhost")) return true;
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const auto address = IpAddress::parse(host);
  return address && classify(*address) == AddressClass::loopback;
}

// Fewer path segments and parameters first: a front page matters more than a leaf.
std::int32_t simplicity(std::string_view url) {
  return -static_cast<std::int32_t>(std::ranges::count_if(url, [](char c) { return c == '/' || c == '&' || c == '?'; }));
}

}  // namespace

Frontier::Frontier(const CrawlOptions& options) : options_(options), queue_(QueueLimits{}) {}

Host& Frontier::host_of(const Url& url) {
  const std::string_view site = url.site_key();
  if (const auto found = by_site_.find(site); found != by_site_.end()) return *found->second;
  auto host = std::make_unique<Host>();
  host->site = site;
  host->name = url.host();
  host->loopback = is_loopback(url);
  host->key = queue_.key(site);
  host->limits = limits_of(*host);
  queue_.set_key_limits(host->key, host->limits, TimePoint{});
  Host& made = *host;
  by_site_.emplace(made.site, &made);
  hosts_.push_back(std::move(host));
  return made;
}

}  // namespace argiope
