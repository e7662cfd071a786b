#include "crawl/run/host_questions.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "crawl/hosts/internal/host_question.hpp"
#include "crawl/hosts/internal/robots_answer.hpp"
#include "crawl/run/host_desk.hpp"
#include "crawl/run/host_hops.hpp"
#include "crawl/run/sitemap_desk.hpp"

namespace argiope {
namespace {

constexpr Duration kLostHostRests = std::chrono::hours{1};

}  // namespace

Crawler::Shard::HostQuestions::HostQuestions(Core& core, HostDesk& desk, HostHops& hops, SitemapDesk& sitemaps)
    : Part(core), desk_(desk), hops_(hops), sitemaps_(sitemaps) {}

bool Crawler::Shard::HostQuestions::are_due(const Host& host, TimePoint now) noexcept {
  return now >= host.robots_until || host.health.suspected() || host.sitemap_guess > 0;
}

Coro<void> Crawler::Shard::HostQuestions::ask(Host& host) {
  const Leaving ends_question = desk_.begin_question(host);
  if (host.sitemap_guess > 0 && loop().time() < host.robots_until && !host.health.suspected()) {
    co_return co_await sitemaps_.guess_sitemap(host);
  }
  if (host.policy->robots) {
    co_await fetch_robots(host);
  } else {
    host.robots_until = kNever;
    if (options_.sitemaps) sitemaps_.find_sitemaps(host, nullptr);
    if (host.health.suspected()) co_await probe(host);
  }
  if (!host.lost && (host.health.answered() || !host.policy->robots)) co_await find_address(host);
}

Coro<void> Crawler::Shard::HostQuestions::find_address(Host& host) {
  if (resolver_ == nullptr) co_return;
  auto addresses = co_await resolver_->resolve(host.name());
  // The request will say what is wrong with the name.
  if (addresses) host.address = addresses->front();
}

Coro<void> Crawler::Shard::HostQuestions::probe(Host& host) {
  HttpRequest request;
  request.method = HttpMethod::head;
  request.url = *Url::parse(host.site + "/");
  request.timeout = desk_.patience_with(host);
  request.headers = host.policy->headers;
  desk_.prepare(request);
  HttpResponse response;
  const Result<void> sent = co_await desk_.ask_in_turn(host, ExchangeKind::probe, request, response);
  if (!sent && shared_.ending.is_quota_used_up()) co_return;
  const TimePoint now = loop().time();
  if (sent || says_something(sent.error(), response)) {
    probe_answered(host, now);
  } else {
    question_failed(host, sent.error(), request.timeout, now);
  }
}

Coro<void> Crawler::Shard::HostQuestions::fetch_robots(Host& host) {
  HttpRequest request;
  request.url = *Url::parse(host.site + "/robots.txt");
  request.body_limit = kRobotsBytes;
  HttpResponse response;
  const auto sent = co_await hops_.ask_for_file(host, ExchangeKind::robots, request, response);
  if (!sent) co_return;
  const TimePoint now = loop().time();
  RobotsAnswer answer = judge_robots(*sent, response, host.robots_attempts, host.policy->product_token, wall());
  if (answer.kind == RobotsAnswer::Kind::failed)
    co_return question_failed(host, std::move(answer.error), request.timeout, now);
  if (answer.kind == RobotsAnswer::Kind::challenged) ++host.robots_attempts;
  probe_answered(host, now);
  if (answer.kind == RobotsAnswer::Kind::challenged || host.lost) co_return;
  if (answer.kind == RobotsAnswer::Kind::refused)
    co_return robots_refused(host, std::move(answer.error), answer.at_least, now);
  if (options_.sitemaps) sitemaps_.find_sitemaps(host, answer.rules ? &*answer.rules : nullptr);
  const Duration delay = answer.crawl_delay(host.site, options_.max_crawl_delay);
  host.robots = answer.take_rules();
  // A file that is read again may have lost its delay.
  if (options_.heed_crawl_delay && delay != host.crawl_delay) {
    frontier_.set_crawl_delay(host, delay, now);
    desk_.be_polite(host, response.sent_at, now);
  }
  host.robots_until = saturating_add(now, kRobotsLifetime);
  host.robots_attempts = 0;
}

// It is asked again before that is believed.
void Crawler::Shard::HostQuestions::robots_refused(Host& host, Error cause, Duration at_least, TimePoint now) {
  desk_.rest(host, saturating_add(now, at_least), RestReason::retry_after, now);
  // Asked as a probe, while the rules of an earlier answer still hold.
  if (now < host.robots_until) return;
  if (const auto wait = desk_.wait_after(host, ++host.robots_attempts)) {
    return desk_.rest(host, saturating_add(now, *wait), RestReason::trouble, now);
  }
  lose(host, std::move(cause), {}, now);
}

// --- failures --------------------------------------------------------------------------------------------------------

void Crawler::Shard::HostQuestions::probe_answered(Host& host, TimePoint now) {
  const auto pause = host.health.probe_answered(now);
  if (pause) return desk_.rest(host, saturating_add(now, *pause), RestReason::trouble, now);
  lose(host, {Errc::timeout, fmt::format("{}: no answer to any URL for an hour", host.site)}, {.unreachable = true},
       now);
}

void Crawler::Shard::HostQuestions::question_failed(Host& host, Error error, Duration patience, TimePoint now) {
  if (error.code == Errc::timeout && patience < host.policy->timeout) {
    host.health.was_slow();
    return desk_.rest(host, saturating_add(now, kRestAfterPatience), RestReason::trouble, now);
  }
  host_failed(host, std::move(error), true, now);
}

bool Crawler::Shard::HostQuestions::host_failed(Host& host, Error error, bool owes_failure, TimePoint now) {
  const bool never_answered = !host.health.answered();
  const auto pause = host.health.failed(error.code, host.policy->attempts);
  if (!pause) {
    lose(host, std::move(error), {.unreachable = true, .owes_failure = owes_failure}, now);
    return false;
  }
  ShardCounters::add(counters_.retries);
  spdlog::debug("{}: {}; it will be asked again", host.site, error.message);
  Duration wait = *pause;
  if (never_answered) wait = std::max(wait, desk_.wait_after(host, host.health.failures()).value_or(wait));
  desk_.rest(host, saturating_add(now, wait), RestReason::trouble, now);
  return true;
}

void Crawler::Shard::HostQuestions::lose(Host& host, Error cause, HostLoss loss, TimePoint now) {
  spdlog::debug("{}: given up: {}", host.site, cause.message);
  loss.cause = std::move(cause);
  shared_.failures.note_lost(host.site, loss.cause);
  host.lost = std::make_unique<HostLoss>(std::move(loss));
  if (options_.forever) host.lost_until = now + rest_of_lost_hosts();
  host.robots_until = kNever;
  frontier_.lift_limits(host, now);
}

Duration Crawler::Shard::HostQuestions::rest_of_lost_hosts() const noexcept {
  return std::min(kLostHostRests, shared_.plan.first());
}

void Crawler::Shard::HostQuestions::revive(Host& host, TimePoint now) {
  spdlog::debug("{}: it is asked again", host.site);
  host.lost.reset();
  host.lost_until = kNever;
  host.health = {};
  host.robots_until = TimePoint::min();
  host.robots_attempts = 0;
  frontier_.restore_limits(host, now);
}

}  // namespace argiope
