// One host: its address, its robots.txt.
#include <fmt/format.h>

#include "argiope/web/http_client.hpp"
#include "crawl/shard.hpp"

namespace argiope {
namespace {

constexpr Duration kRobotsLifetime = std::chrono::hours{24};  // RFC 9309, 2.4
constexpr std::size_t kRobotsBytes = 500 * 1024;              // RFC 9309, 2.5
constexpr int kRobotsRedirects = 5;                           // RFC 9309, 2.3.1.2

}  // namespace

bool Crawler::Shard::needs_preparation(const Host& host, TimePoint now) const {
  return now >= host.robots_until && !host.preparing;
}

Coro<void> Crawler::Shard::prepare_host(Host& host) {
  host.preparing = true;
  co_await find_address(host);
  if (options_.robots) {
    co_await fetch_robots(host);
  } else {
    host.robots_until = kNever;
    frontier_.let_go(host, loop_->time());
  }
  host.preparing = false;
  schedule_pump();
}

Coro<void> Crawler::Shard::find_address(Host& host) {
  if (resolver_ == nullptr) co_return;
  auto addresses = co_await resolver_->resolve(host.name);
  // What is wrong with the name, the request will say.
  if (addresses) host.address = addresses->front();
}

Coro<void> Crawler::Shard::fetch_robots(Host& host) {
  HttpRequest request;
  request.url = *Url::parse(host.site + "/robots.txt");
  request.body_limit = kRobotsBytes;
  request.timeout = options_.timeout;
  HttpResponse response;
  const Result<void> sent = co_await send_following_redirects(*transport_, request, response, kRobotsRedirects);
  const TimePoint now = loop_->time();
  frontier_.let_go(host, now);
  host.robots_error.clear();
  const RobotsVerdict verdict = sent ? robots_policy(response.status) : robots_policy(sent.error());
  switch (verdict) {
    case RobotsVerdict::parse: host.robots = RobotsRules::parse(response.body, options_.product_token); break;
    case RobotsVerdict::allow_all: host.robots = RobotsRules::allow_all(); break;
    case RobotsVerdict::disallow_all:
      host.robots = RobotsRules::disallow_all();
      host.robots_error = sent ? fmt::format("robots.txt answered HTTP {}", response.status)
                               : fmt::format("robots.txt: {}", sent.error().message);
      break;
  }
  if (sent) ShardCounters::add(counters.bytes, response.wire_bytes);
  host.robots_until = saturating_add(now, kRobotsLifetime);
  if (!host.robots_error.empty() && host.robots_attempts < options_.retries) {
    // Perhaps it is only a moment's trouble: ask again soon, and fetch nothing before.
    const Duration wait = retry_policy_.delay_after(++host.robots_attempts, random_).value_or(std::chrono::seconds{1});
    host.robots_until = now;
    frontier_.rest(host, saturating_add(now, wait), now);
    co_return;
  }
  host.robots_attempts = 0;
  if (const auto delay = host.robots.crawl_delay()) frontier_.set_crawl_delay(host, *delay, now);
  be_polite(host, sent ? response.sent_at : now, now);
}

}  // namespace argiope
