#include "crawl/run/host_desk.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "argiope/base/clock.hpp"
#include "crawl/hosts/internal/host_question.hpp"
#include "web/http/internal/http_date.hpp"

namespace argiope {
namespace {

constexpr Duration kRestLook = std::chrono::seconds{1};  // between two looks which host rests longest

}  // namespace

Crawler::Shard::HostDesk::HostDesk(Core& core, std::size_t connections)
    : Part(core), lanes_(connections), random_(mix64(shared_.seed + core.index)) {
  retry_policy_.max_attempts = std::numeric_limits<std::uint32_t>::max();  // how many there are depends on the host
}

void Crawler::Shard::HostDesk::start(HttpTransport& transport) {
  session_ = shared_.session.over(transport, core_.index);
  transport_ = session_ != nullptr ? session_.get() : &transport;
}

// --- connections -----------------------------------------------------------------------------------------------------

void Crawler::Shard::HostDesk::wake_lanes(TimePoint now) {
  lanes_.wake([&](Host& host) {
    --host.pins;
    if (!host.is_held()) frontier_.let_go(host, now);
  });
}

AddressGate::Waker Crawler::Shard::HostDesk::waker_of(Host& host) {
  return [this, &host, alive = core_.alive] {
    if (alive.expired()) return false;
    loop().call_soon_threadsafe([this, &host, alive] {
      if (alive.expired()) return;
      --host.pins;
      if (!host.is_held()) frontier_.let_go(host, loop().time());
      core_.shard.pump();
    });
    return true;
  };
}

std::optional<Leaving> Crawler::Shard::HostDesk::enter_address(Host& host) {
  const auto address = host.address && classify(*host.address) == AddressClass::public_ ? host.address : std::nullopt;
  if (!address) return Leaving([] {});
  if (!shared_.addresses.enter(*address, waker_of(host))) {
    ++host.pins;
    return std::nullopt;
  }
  // The host's address may be looked up anew meanwhile: what was entered is what is left.
  return Leaving([this, entered = *address] { shared_.addresses.leave(entered); });
}

Leaving Crawler::Shard::HostDesk::begin_question(Host& host) {
  host.asking = true;
  frontier_.hold(host, loop().time());
  return Leaving([this, &host] {
    host.asking = false;
    if (!host.holds_for_hop) frontier_.let_go(host, loop().time());
  });
}

Duration Crawler::Shard::HostDesk::patience_with(const Host& host) {
  return host.health.is_new() ? std::min(host.policy->timeout, kFirstPatience) : host.policy->timeout;
}

// --- requests --------------------------------------------------------------------------------------------------------

void Crawler::Shard::HostDesk::prepare(HttpRequest& request) const noexcept {
  request.keep_wire = shared_.sinks.wants_wire();
  request.quota = shared_.ending.quota();
}

Coro<Result<void>> Crawler::Shard::HostDesk::send(Host& host, const HttpRequest& request, HttpResponse& response) {
  response.wire_bytes = response.quota_bytes = 0;
  ++host.asked;
  const Leaving ends([&host] { --host.asked; });
  co_return co_await transport_->send(request, response);
}

Coro<Result<void>> Crawler::Shard::HostDesk::ask_in_turn(Host& host, ExchangeKind kind, const HttpRequest& request,
                                                         HttpResponse& response) {
  Result<void> sent = co_await send(host, request, response);
  const TimePoint now = loop().time();
  if (response.connected) count_bytes(response);
  if (sent) show(kind, request, response);
  be_polite(host, response.sent_at, now);
  if (sent) heed_retry_after(host, response, now);
  co_return sent;
}

Exchange Crawler::Shard::HostDesk::exchange_of(ExchangeKind kind, const HttpRequest& request,
                                               const HttpResponse& response) const {
  return {kind, request, response, wall() - (loop().time() - response.sent_at)};
}

bool Crawler::Shard::HostDesk::show(ExchangeKind kind, const HttpRequest& request, const HttpResponse& response) {
  return shared_.sinks.empty() || shared_.show(exchange_of(kind, request, response));
}

// --- pace ------------------------------------------------------------------------------------------------------------

void Crawler::Shard::HostDesk::be_polite(Host& host, TimePoint sent_at, TimePoint now) {
  // Counted from when the request went out, so that the server sees no two closer than this, however long the
  // first took to connect.
  if (host.limits.concurrency == 1 && host.limits.rate > 0 && std::isfinite(host.limits.rate)) {
    rest(host, saturating_add(sent_at, from_seconds(1.0 / host.limits.rate)), RestReason::pace, now);
  }
  rest_for_delay(host, now);
}

void Crawler::Shard::HostDesk::rest_for_delay(Host& host, TimePoint now) {
  if (host.limits.delay <= Duration::zero()) return;
  const RestReason why = host.crawl_delay >= host.limits.delay ? RestReason::crawl_delay : RestReason::pace;
  rest(host, saturating_add(now, host.limits.delay), why, now);
}

// RFC 9110, 10.2.3: the whole host asked for it.
Duration Crawler::Shard::HostDesk::heed_retry_after(Host& host, const HttpResponse& response, TimePoint now) {
  const auto wait = parse_retry_after(response.headers.retry_after, wall());
  if (!wait || !is_temporary(response.status)) return {};
  rest(host, saturating_add(now, *wait), RestReason::retry_after, now);
  return *wait;
}

void Crawler::Shard::HostDesk::rest(Host& host, TimePoint until, RestReason why, TimePoint now) {
  if (!frontier_.rest(host, until, now, why) || until - now < HostRests::kShortest || !options_.heed_crawl_delay)
    return;
  UrlBatch batch;
  batch.notes.push_back(HostRests::note_of(host.site, frontier_.stored_rest(host)));
  shared_.store.submit(std::move(batch));
}

void Crawler::Shard::HostDesk::take_turn(Host& host, TimePoint now) {
  if (host.limits.rate > 0 && std::isfinite(host.limits.rate)) {
    rest(host, saturating_add(now, from_seconds(1.0 / host.limits.rate)), RestReason::pace, now);
  }
}

void Crawler::Shard::HostDesk::note_latency(Visit& visit, bool answered, TimePoint now) {
  Host& host = *visit.ticket.host;
  const HttpResponse& response = visit.page->response;
  // By its name it might have been public.
  const bool is_public = !host.address || classify(*host.address) == AddressClass::public_ || host.policy->autothrottle;
  if (!is_public || !response.connected) return;
  const bool is_page =
      answered && response.status >= 200 && response.status < 300 && visit.request.method == HttpMethod::get;
  const TimePoint end = answered && response.answered_at > response.sent_at ? response.answered_at : now;
  const Duration before = host.pace;
  frontier_.note_latency(host, end - response.sent_at, !is_page, now);
  if (host.pace > before + before / 10) {
    spdlog::debug("{}: an answer took {}; from now on a request every {}", host.site,
                  format_roughly(end - response.sent_at), format_roughly(host.pace));
  }
}

std::optional<Duration> Crawler::Shard::HostDesk::wait_after(const Host& host, std::uint32_t attempts) {
  return attempts < host.policy->attempts ? retry_policy_.delay_after(attempts, random_) : std::nullopt;
}

void Crawler::Shard::HostDesk::keep_rests(TimePoint now) {
  if (!options_.heed_crawl_delay) return;
  UrlBatch batch;
  frontier_.each_resting(now, [&](const Host& host) {
    batch.notes.push_back(HostRests::note_of(host.site, frontier_.stored_rest(host)));
  });
  if (batch.size() > 0) shared_.store.submit(std::move(batch));
}

void Crawler::Shard::HostDesk::note_longest_rest(TimePoint now) {
  if (now < next_rest_look_) return;
  next_rest_look_ = now + kRestLook;
  const Host* longest = nullptr;
  frontier_.each_resting(now, [&](const Host& host) {
    if ((longest == nullptr || host.rest_until > longest->rest_until) && frontier_.has_waiting(host)) longest = &host;
  });
  std::lock_guard lock(resting_mutex_);
  resting_.site = longest == nullptr ? std::string{} : longest->site;
  resting_.until = longest == nullptr ? TimePoint{} : longest->rest_until;
}

Crawler::Shard::Resting Crawler::Shard::HostDesk::longest_rest() const {
  std::lock_guard lock(resting_mutex_);
  return resting_;
}

}  // namespace argiope
