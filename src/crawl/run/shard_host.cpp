// One host: its address, its robots.txt, and what its failures come to.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "crawl/hosts/internal/host_question.hpp"
#include "crawl/hosts/internal/robots_answer.hpp"
#include "crawl/run/shard.hpp"

namespace argiope {

bool Crawler::Shard::needs_question(const Host& host, TimePoint now) const {
  return now >= host.robots_until || host.health.suspected() || host.sitemap_guess > 0;
}

Duration Crawler::Shard::patience_with(const Host& host) const {
  return host.health.is_new() ? std::min(host.policy->timeout, kFirstPatience) : host.policy->timeout;
}

// Nothing else is asked of the host until what is returned goes.
Crawler::Shard::Leaving Crawler::Shard::begin_question(Host& host) {
  host.asking = true;
  frontier_.hold(host, loop_->time());
  return Leaving([this, &host] {
    host.asking = false;
    if (!host.holds_for_hop) frontier_.let_go(host, loop_->time());
  });
}

// Asks the host for robots.txt, or, where that is not read, for a sign of life if it is suspected to be dead.
Coro<void> Crawler::Shard::question_host(Host& host) {
  const Leaving ends_question = begin_question(host);
  if (host.sitemap_guess > 0 && loop_->time() < host.robots_until && !host.health.suspected()) {
    co_return co_await guess_sitemap(host);
  }
  if (host.policy->robots) {
    co_await fetch_robots(host);
  } else {
    host.robots_until = kNever;
    if (options_.sitemaps) find_sitemaps(host, nullptr);
    if (host.health.suspected()) co_await probe(host);
  }
  if (!host.lost && (host.health.answered() || !host.policy->robots)) co_await find_address(host);
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
  request.headers = host.policy->headers;
  prepare(request);
  HttpResponse response;
  const Result<void> sent = co_await ask_in_turn(host, ExchangeKind::probe, request, response);
  if (!sent && shared_.ending.is_quota_used_up()) co_return;
  const TimePoint now = loop_->time();
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
  HttpResponse response;
  const auto sent = co_await ask_for_file(host, ExchangeKind::robots, request, response);
  if (!sent) co_return;
  const TimePoint now = loop_->time();
  RobotsAnswer answer = judge_robots(*sent, response, host.robots_attempts, host.policy->product_token, wall());
  if (answer.kind == RobotsAnswer::Kind::failed) co_return question_failed(host, std::move(answer.error), request.timeout, now);
  if (answer.kind == RobotsAnswer::Kind::challenged) ++host.robots_attempts;
  probe_answered(host, now);
  if (answer.kind == RobotsAnswer::Kind::challenged || host.lost) co_return;
  if (answer.kind == RobotsAnswer::Kind::refused) co_return robots_refused(host, std::move(answer.error), answer.at_least, now);
  if (options_.sitemaps) find_sitemaps(host, answer.rules ? &*answer.rules : nullptr);
  const Duration delay = answer.crawl_delay(host.site, options_.max_crawl_delay);
  host.robots = answer.take_rules();
  // A file that is read again may have lost its delay.
  if (options_.heed_crawl_delay && delay != host.crawl_delay) {
    frontier_.set_crawl_delay(host, delay, now);
    be_polite(host, response.sent_at, now);
  }
  host.robots_until = saturating_add(now, kRobotsLifetime);
  host.robots_attempts = 0;
}

// It is asked again before that is believed.
void Crawler::Shard::robots_refused(Host& host, Error cause, Duration at_least, TimePoint now) {
  rest(host, saturating_add(now, at_least), RestReason::retry_after, now);
  // Asked as a probe, while the rules of an earlier answer still hold.
  if (now < host.robots_until) return;
  if (const auto wait = wait_after(host, ++host.robots_attempts)) {
    return rest(host, saturating_add(now, *wait), RestReason::trouble, now);
  }
  lose(host, std::move(cause), {}, now);
}

// --- failures --------------------------------------------------------------------------------------------------------

void Crawler::Shard::probe_answered(Host& host, TimePoint now) {
  const auto pause = host.health.probe_answered(now);
  if (pause) return rest(host, saturating_add(now, *pause), RestReason::trouble, now);
  lose(host, {Errc::timeout, fmt::format("{}: no answer to any URL for an hour", host.site)}, {.unreachable = true},
       now);
}

void Crawler::Shard::question_failed(Host& host, Error error, Duration patience, TimePoint now) {
  if (error.code == Errc::timeout && patience < host.policy->timeout) {
    host.health.was_slow();
    return rest(host, saturating_add(now, kRestAfterPatience), RestReason::trouble, now);
  }
  host_failed(host, std::move(error), true, now);
}

// False: the host is lost now. `owes_failure`: the URL that was to be asked is still queued.
bool Crawler::Shard::host_failed(Host& host, Error error, bool owes_failure, TimePoint now) {
  const bool never_answered = !host.health.answered();
  const auto pause = host.health.failed(error.code, host.policy->attempts);
  if (!pause) {
    lose(host, std::move(error), {.unreachable = true, .owes_failure = owes_failure}, now);
    return false;
  }
  ShardCounters::add(counters.retries);
  spdlog::debug("{}: {}; it will be asked again", host.site, error.message);
  Duration wait = *pause;
  if (never_answered) wait = std::max(wait, wait_after(host, host.health.failures()).value_or(wait));
  rest(host, saturating_add(now, wait), RestReason::trouble, now);
  return true;
}

void Crawler::Shard::lose(Host& host, Error cause, HostLoss loss, TimePoint now) {
  spdlog::debug("{}: given up: {}", host.site, cause.message);
  loss.cause = std::move(cause);
  shared_.failures.note_lost(host.site, loss.cause);
  host.lost = std::make_unique<HostLoss>(std::move(loss));
  if (options_.forever) host.lost_until = now + rest_of_lost_hosts();
  host.robots_until = kNever;
  frontier_.lift_limits(host, now);
}

// Deals with a URL of a host of which nothing more is asked. One URL of it fails with the host's cause; and so does each
// link that is only checked, for it leads to nothing. The others have not been asked, and the next run asks them.
void Crawler::Shard::pass_over(Visit& visit, TimePoint now) {
  HostLoss& loss = *visit.ticket.host->lost;
  if (options_.forever && task_of(visit).revisit) loss.owes_failure = false;
  const bool leads_nowhere =
      is_only_checked(task_of(visit).purpose) && loss.unreachable && !visit.ticket.host->health.answered();
  if (std::exchange(loss.owes_failure, false) || leads_nowhere) {
    ++task_of(visit).attempts;
    return give_up(visit, loss.cause, now);
  }
  ShardCounters::add(counters.not_asked);
  shared_.failures.count_not_asked(visit.ticket.host->site);
  if (options_.forever) return wait_with_host(visit, now);
  UrlBatch batch;
  if (const UrlTask& task = task_of(visit); task.revisit || task.known) {
    // Of a page that is known nothing changes.
    batch.moves.push_back({task.id, std::nullopt, 0, crawl_priority(options_, task.depth, task.url), task.depth});
  } else {
    UrlOutcome outcome = outcome_of(visit);
    outcome.state = UrlState::queued;
    outcome.limit = task_of(visit).given_up;
    outcome.error = fmt::format("not asked: {}: {}", to_string(loss.cause.code), loss.cause.message);
    batch.outcomes.push_back(std::move(outcome));
  }
  settle(visit, std::move(batch), now);
}

}  // namespace argiope
