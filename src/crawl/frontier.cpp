#include "crawl/frontier.hpp"

#include <algorithm>
#include <limits>

namespace argiope {
namespace {

constexpr double kPublicRate = 5;  // requests a second to a public host, unless told otherwise
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
  return -static_cast<std::int32_t>(
      std::ranges::count_if(url, [](char c) { return c == '/' || c == '&' || c == '?'; }));
}

}  // namespace

Frontier::Frontier(const CrawlOptions& options) : options_(options), queue_(QueueLimits{}) {}

Host& Frontier::host_of(const Url& url) {
  const std::string site = url.site_key();
  if (const auto found = by_site_.find(std::string_view{site}); found != by_site_.end()) return *found->second;
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

KeyLimits Frontier::limits_of(const Host& host) const {
  KeyLimits limits;
  limits.concurrency = options_.per_host.value_or(host.loopback ? kLoopbackConnections : 1);
  if (options_.rate) {
    limits.rate = *options_.rate;
  } else if (!host.loopback && !options_.delay) {
    limits.rate = kPublicRate;
  }
  if (options_.delay) limits.delay = *options_.delay;
  if (limits.delay > Duration::zero()) limits.concurrency = 1;  // a rest between requests makes sense only one by one
  return limits;
}

std::int32_t Frontier::priority_of(const UrlTask& task) const {
  switch (options_.order) {
    case CrawlOrder::bfs: return -static_cast<std::int32_t>(task.depth);
    case CrawlOrder::dfs: return static_cast<std::int32_t>(task.depth);
    case CrawlOrder::priority: return simplicity(task.url);
  }
  return 0;
}

void Frontier::put(UrlTask task, Host& host, TimePoint due, TimePoint now) {
  JobSpec spec{.id = task.fingerprint, .key = host.key, .priority = priority_of(task), .due_at = due};
  if (queue_.contains(spec.id)) return;
  if (free_tasks_.empty()) {
    spec.payload = tasks_.size();
    tasks_.push_back(std::move(task));
  } else {
    spec.payload = free_tasks_.back();
    free_tasks_.pop_back();
    tasks_[static_cast<std::size_t>(spec.payload)] = std::move(task);
  }
  ++host.urls;
  queue_.put(spec, now);
}

void Frontier::found_nearer(std::uint64_t url_fingerprint, std::uint32_t depth, TimePoint now) {
  const auto known = queue_.payload_of(url_fingerprint);
  if (!known) return;
  UrlTask& queued = tasks_[static_cast<std::size_t>(*known)];
  if (depth >= queued.depth) return;
  queued.depth = depth;
  queue_.set_priority(url_fingerprint, priority_of(queued), now);
}

std::optional<Frontier::Ticket> Frontier::next(TimePoint now) {
  const auto lease = queue_.lease(now, kLeaseTime);
  if (!lease) return std::nullopt;
  return Ticket{*lease, static_cast<std::uint32_t>(lease->payload), hosts_[static_cast<std::size_t>(lease->key)].get()};
}

void Frontier::done(const Ticket& ticket, TimePoint now) {
  queue_.done(ticket.lease.token, now);
  tasks_[ticket.task] = UrlTask{};
  free_tasks_.push_back(ticket.task);
}

void Frontier::retry(const Ticket& ticket, TimePoint due, TimePoint now) { queue_.retry(ticket.lease.token, due, now); }
void Frontier::put_back(const Ticket& ticket, TimePoint now) { queue_.put_back(ticket.lease.token, now); }

void Frontier::rest(Host& host, TimePoint until, TimePoint now) { queue_.rest_key(host.key, until, now); }
void Frontier::let_go(Host& host, TimePoint now) { queue_.wake_key(host.key, now); }

void Frontier::set_crawl_delay(Host& host, Duration delay, TimePoint now) {
  host.limits = limits_of(host);
  if (delay > host.limits.delay) {
    host.limits.delay = delay;
    host.limits.concurrency = 1;
  }
  queue_.set_key_limits(host.key, host.limits, now);
}

}  // namespace argiope
