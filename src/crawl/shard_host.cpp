// One host: its address, its robots.txt, and what its failures come to.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "argiope/web/http_client.hpp"
#include "crawl/shard.hpp"
#include "web/internal/http_date.hpp"

namespace argiope {
namespace {

constexpr Duration kRobotsLifetime = std::chrono::hours{24};  // RFC 9309, 2.4
constexpr std::size_t kRobotsBytes = 500 * 1024;              // RFC 9309, 2.5
constexpr std::uint32_t kMostRobotsChallenges = 3;
constexpr int kRobotsRedirects = 5;                           // RFC 9309, 2.3.1.2
// For the first questions to a host of which nobody knows whether it answers. If it does not, it is asked again with all
// the time there is, from among the slow ones.
constexpr Duration kFirstPatience = std::chrono::seconds{3};
constexpr Duration kRestAfterPatience = std::chrono::milliseconds{250};

}  // namespace

bool Crawler::Shard::needs_question(const Host& host, TimePoint now) const {
  return now >= host.robots_until || host.health.suspected();
}

Duration Crawler::Shard::patience_with(const Host& host) const {
  return host.health.is_new() ? std::min(options_.timeout, kFirstPatience) : options_.timeout;
}

// Nothing else is asked of the host until what is returned goes.
Crawler::Shard::Leaving Crawler::Shard::begin_question(Host& host) {
  host.asking = true;
  frontier_.hold(host, loop_->time());
  return Leaving([this, &host] {
    host.asking = false;
    frontier_.let_go(host, loop_->time());
  });
}

// Asks the host for robots.txt, or, where that is not read, for a sign of life if it is suspected to be dead.
Coro<void> Crawler::Shard::question_host(Host& host) {
  const Leaving ends_question = begin_question(host);
  if (options_.robots) {
    co_await fetch_robots(host);
  } else {
    host.robots_until = kNever;
    if (host.health.suspected()) co_await probe(host);
  }
  if (!host.lost && (host.health.answered() || !options_.robots)) co_await find_address(host);
}

Coro<void> Crawler::Shard::find_address(Host& host) {
  if (resolver_ == nullptr) co_return;
  auto addresses = co_await resolver_->resolve(host.name());
  // What is wrong with the name, the request will say.
  if (addresses) host.address = addresses->front();
}

Coro<void> Crawler::Shard::probe(Host& host) {
  HttpRequest request;
  request.method = HttpMethod::head;
  request.url = *Url::parse(host.site + "/");
  request.timeout = patience_with(host);
  request.keep_wire = shared_.wants_wire;
  HttpResponse response;
  const Result<void> sent = co_await transport_->send(request, response);
  if (sent && !show(ExchangeKind::probe, request, response)) co_return;
  const TimePoint now = loop_->time();
  be_polite(host, response.sent_at, now);
  if (sent || says_something(sent.error(), response)) {
    probe_answered(host, now);
  } else {
    question_failed(host, sent.error(), request.timeout, now);
  }
}

Coro<void> Crawler::Shard::fetch_robots(Host& host) {
  HttpRequest request;
  request.url = *Url::parse(host.site + "/robots.txt");
  request.body_limit = kRobotsBytes;
  request.timeout = patience_with(host);
  request.keep_wire = shared_.wants_wire;
  HttpResponse response;
  const auto show_each = [&] { show(ExchangeKind::robots, request, response); };
  const Result<void> sent =
      co_await send_following_redirects(*transport_, request, response, kRobotsRedirects, show_each);
  const TimePoint now = loop_->time();
  if (response.connected) count_bytes(response.wire_bytes);
  be_polite(host, response.sent_at, now);
  if (sent && response.challenged == HttpChallenged::again && host.robots_attempts < kMostRobotsChallenges) {
    ++host.robots_attempts;
    co_return probe_answered(host, now);  // it is asked again, with an answer
  }
  const RobotsVerdict verdict = sent ? robots_policy(response.status) : robots_policy(sent.error());
  if (verdict == RobotsVerdict::disallow_all && !sent) {
    Error error = sent.error();
    if (response.connected) error.message.insert(0, "robots.txt: ");
    co_return question_failed(host, std::move(error), request.timeout, now);
  }
  probe_answered(host, now);
  if (host.lost) co_return;
  if (verdict == RobotsVerdict::disallow_all) {
    Duration at_least{};
    if (const auto wait = parse_retry_after(response.headers.retry_after, wall())) at_least = *wait;
    co_return robots_refused(host, response.status, at_least, now);
  }
  host.robots.reset();
  if (verdict == RobotsVerdict::parse) {
    RobotsRules rules = RobotsRules::parse(response.body, options_.product_token);
    if (const auto delay = rules.crawl_delay(); delay && options_.heed_crawl_delay)
      frontier_.set_crawl_delay(host, *delay, now);
    if (rules.rule_count() > 0) host.robots = std::make_unique<RobotsRules>(std::move(rules));
    be_polite(host, response.sent_at, now);  // by the file's own delay
  }
  host.robots_until = saturating_add(now, kRobotsLifetime);
  host.robots_attempts = 0;
}

// A server error, or 429, forbids everything: perhaps only for a moment, so it is asked again before that is believed.
void Crawler::Shard::robots_refused(Host& host, int status, Duration at_least, TimePoint now) {
  frontier_.rest(host, saturating_add(now, at_least), now);
  // Asked as a probe, while the rules of an earlier answer still hold.
  if (now < host.robots_until) return;
  if (const auto wait = retry_policy_.delay_after(++host.robots_attempts, random_)) {
    return frontier_.rest(host, saturating_add(now, *wait), now);
  }
  lose(host, {Errc::refused, fmt::format("robots.txt answered HTTP {}", status)}, {}, now);
}

// --- failures --------------------------------------------------------------------------------------------------------

// Whether who failed so is alive: it answered, if only with what is of no use.
bool Crawler::Shard::says_something(const Error& error, const HttpResponse& response) noexcept {
  return response.connected && error.code != Errc::network && error.code != Errc::timeout;
}

void Crawler::Shard::probe_answered(Host& host, TimePoint now) {
  const auto rest = host.health.probe_answered(now);
  if (rest) return frontier_.rest(host, saturating_add(now, *rest), now);
  lose(host, {Errc::timeout, fmt::format("{}: no answer to any URL for an hour", host.site)}, {.unreachable = true},
       now);
}

void Crawler::Shard::question_failed(Host& host, Error error, Duration patience, TimePoint now) {
  if (error.code == Errc::timeout && patience < options_.timeout) {
    host.health.was_slow();
    return frontier_.rest(host, saturating_add(now, kRestAfterPatience), now);
  }
  host_failed(host, std::move(error), true, now);
}

// False: the host is lost now. `owes_failure`: the URL that was to be asked is still queued.
bool Crawler::Shard::host_failed(Host& host, Error error, bool owes_failure, TimePoint now) {
  const bool never_answered = !host.health.answered();
  const auto rest = host.health.failed(error.code, retry_policy_.max_attempts);
  if (!rest) {
    lose(host, std::move(error), {.unreachable = true, .owes_failure = owes_failure}, now);
    return false;
  }
  ShardCounters::add(counters.retries);
  spdlog::debug("{}: {}; it will be asked again", host.site, error.message);
  Duration wait = *rest;
  if (never_answered) wait = std::max(wait, retry_policy_.delay_after(host.health.failures(), random_).value_or(wait));
  frontier_.rest(host, saturating_add(now, wait), now);
  return true;
}

void Crawler::Shard::lose(Host& host, Error cause, HostLoss loss, TimePoint now) {
  spdlog::debug("{}: given up: {}", host.site, cause.message);
  loss.cause = std::move(cause);
  shared_.note_lost(host.site, loss.cause);
  host.lost = std::make_unique<HostLoss>(std::move(loss));
  host.robots_until = kNever;
  frontier_.lift_limits(host, now);
}

// Deals with a URL of a host of which nothing more is asked. One URL of it fails with the host's cause; and so does each
// link that is only checked, for it leads to nothing. The others have not been asked, and the next run asks them.
void Crawler::Shard::pass_over(Visit& visit, TimePoint now) {
  HostLoss& loss = *visit.ticket.host->lost;
  const bool leads_nowhere = task_of(visit).off_scope && loss.unreachable && !visit.ticket.host->health.answered();
  if (std::exchange(loss.owes_failure, false) || leads_nowhere) {
    ++task_of(visit).attempts;
    return give_up(visit, loss.cause, now);
  }
  ShardCounters::add(counters.not_asked);
  shared_.count_not_asked(visit.ticket.host->site);
  UrlBatch batch;
  if (const UrlTask& task = task_of(visit); task.revisit) {
    // Of a page that is known nothing changes.
    batch.moves.push_back({task.id, std::nullopt, 0, crawl_priority(options_.order, task.depth, task.url), task.depth});
  } else {
    UrlOutcome outcome = outcome_of(visit);
    outcome.state = UrlState::queued;
    outcome.error = fmt::format("not asked: {}: {}", to_string(loss.cause.code), loss.cause.message);
    batch.outcomes.push_back(std::move(outcome));
  }
  settle(visit, std::move(batch), now);
}

}  // namespace argiope
