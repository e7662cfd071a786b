// One URL's way to its answer: whether its host may be asked, the request, and what failures come to.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>

#include "crawl/shard.hpp"

namespace argiope {
namespace {

constexpr std::uint32_t kMostFailuresInRow = 10;
constexpr Duration kLongestHostRest = std::chrono::minutes{2};

// What a kind of failure deserves.
struct FailurePolicy {
  Errc code;
  bool retry;
  bool blames_host;  // counts towards giving the whole host up
};
constexpr FailurePolicy kFailurePolicies[] = {
    {Errc::timeout, true, true},   {Errc::network, true, true},
    {Errc::dns, true, true},       {Errc::tls, false, true},
    {Errc::protocol, true, false}, {Errc::too_large, false, false},
    {Errc::refused, false, false}, {Errc::unsupported, false, false},
    {Errc::corrupt, false, false}, {Errc::invalid_input, false, false},
};

FailurePolicy policy_of(Errc code) noexcept {
  for (const FailurePolicy& policy : kFailurePolicies) {
    if (policy.code == code) return policy;
  }
  return {code, true, false};
}

}  // namespace

Coro<void> Crawler::Shard::visit_now(Visit& visit) {
  Host& host = *visit.ticket.host;
  TimePoint now = loop_->time();
  if (needs_preparation(host, now)) {
    frontier_.hold(host, now);
    frontier_.put_back(visit.ticket, now);
    co_await prepare_host(host);
    co_return;
  }
  const UrlTask& task = task_of(visit);
  auto url = Url::parse(task.url);
  if (!url) co_return on_error(visit, {Errc::invalid_input, url.error().message}, now);
  if (!host.robots_error.empty()) {
    co_return retry_or_give_up(visit, {Errc::refused, host.robots_error}, {}, now);
  }
  if (!host.robots.allowed(url->path_and_query())) co_return exclude(visit, Exclusion::robots, "robots.txt", now);
  if (host.failures_in_row >= kMostFailuresInRow) {
    co_return on_error(
        visit, {Errc::refused, fmt::format("{} given up after {} failures in a row", host.site, host.failures_in_row)},
        now);
  }
  const bool gated = host.address && classify(*host.address) == AddressClass::public_;
  if (gated) {
    auto waker = [this, &host, alive = std::weak_ptr(alive_)] {
      if (alive.expired()) return;
      loop_->call_soon_threadsafe([this, &host, alive] {
        if (alive.expired()) return;
        frontier_.let_go(host, loop_->time());
        pump();
      });
    };
    if (!shared_.addresses.enter(*host.address, std::move(waker))) {
      frontier_.hold(host, now);
      frontier_.put_back(visit.ticket, now);
      co_return;
    }
  }
  if (!shared_.take_page()) {
    if (gated) shared_.addresses.leave(*host.address);
    shared_.stop("max_pages", false);
    co_return;
  }
  visit.request.url = std::move(*url);
  build_request(task, visit.request);
  // The host's address may be looked up anew meanwhile: what was entered is what is left.
  const auto entered = gated ? host.address : std::nullopt;
  Result<void> sent;
  bool cancelled = false;
  try {
    sent = co_await transport_->send(visit.request, visit.response);
  } catch (const CancelledError&) {
    cancelled = true;
  }
  if (entered) shared_.addresses.leave(*entered);
  if (cancelled) throw CancelledError();
  now = loop_->time();
  last_fetch_ = now;
  be_polite(host, visit.response.sent_at, now);
  if (sent) {
    on_response(visit, now);
  } else {
    on_error(visit, sent.error(), now);
  }
}

void Crawler::Shard::build_request(const UrlTask& task, HttpRequest& request) {
  request.method = task.off_scope ? HttpMethod::head : HttpMethod::get;
  request.body_limit = options_.size_limit;
  request.timeout = options_.timeout;
  request.headers.clear();
  if (!task.revisit) return;
  const auto record = shared_.store.get(task.id);
  if (!record || !*record) return;
  if (!(*record)->etag.empty()) request.headers.emplace_back("If-None-Match", (*record)->etag);
  if (!(*record)->last_modified.empty()) request.headers.emplace_back("If-Modified-Since", (*record)->last_modified);
}

void Crawler::Shard::be_polite(Host& host, TimePoint sent_at, TimePoint now) {
  // Counted from when the request went out, so that the server sees no two closer than this, however long the
  // first took to connect.
  if (host.limits.concurrency == 1 && host.limits.rate > 0 && std::isfinite(host.limits.rate)) {
    frontier_.rest(host, saturating_add(sent_at, from_seconds(1.0 / host.limits.rate)), now);
  }
  if (host.limits.delay > Duration::zero()) frontier_.rest(host, saturating_add(now, host.limits.delay), now);
}

void Crawler::Shard::on_error(Visit& visit, const Error& error, TimePoint now) {
  const FailurePolicy policy = policy_of(error.code);
  Host& host = *visit.ticket.host;
  if (policy.blames_host) {
    ++host.failures_in_row;
    const Duration rest = std::min<Duration>(
        std::chrono::milliseconds{250} * (1 << std::min(host.failures_in_row, 10u)), kLongestHostRest);
    frontier_.rest(host, saturating_add(now, rest), now);
  }
  retry_or_give_up(visit, error, {}, now);
}

void Crawler::Shard::retry_or_give_up(Visit& visit, const Error& error, Duration at_least, TimePoint now) {
  UrlTask& task = task_of(visit);
  ++task.attempts;
  const auto delay = policy_of(error.code).retry ? retry_policy_.delay_after(task.attempts, random_) : std::nullopt;
  if (delay) {
    ShardCounters::add(counters.retries);
    shared_.give_page_back();
    spdlog::debug("{}: {}; attempt {} of {}", task.url, error.message, task.attempts, retry_policy_.max_attempts);
    const TimePoint due = saturating_add(now, std::max(*delay, at_least));
    UrlBatch batch;
    UrlOutcome outcome = outcome_of(visit);
    outcome.state = UrlState::queued;
    outcome.due = frontier_.stored_time(due);
    outcome.error = fmt::format("{}: {}", to_string(error.code), error.message);
    batch.outcomes.push_back(std::move(outcome));
    shared_.store.submit(std::move(batch));
    frontier_.retry(visit.ticket, due, now);
    return;
  }
  spdlog::debug("{}: given up: {}", task.url, error.message);
  ShardCounters::add(counters.errors);
  shared_.count_failure(error.code);
  UrlBatch batch;
  UrlOutcome outcome = outcome_of(visit);
  outcome.state = UrlState::failed;
  outcome.error = fmt::format("{}: {}", to_string(error.code), error.message);
  batch.outcomes.push_back(std::move(outcome));
  settle(visit, std::move(batch), now);
}

}  // namespace argiope
