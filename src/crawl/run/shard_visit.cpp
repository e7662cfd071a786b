// One URL's way to its answer: whether its host may be asked, the request, and what failures come to.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "argiope/base/duration.hpp"
#include "crawl/hosts/internal/host_question.hpp"
#include "crawl/run/shard.hpp"
#include "crawl/scope/failure_rest.hpp"
#include "crawl/scope/url_filter.hpp"
#include "crawl/urls/internal/requeue.hpp"
#include "web/html/internal/sitemap.hpp"
#include "web/http/internal/http_date.hpp"
#include "web/text/internal/content_type.hpp"
#include "web/text/internal/media_type_names.hpp"

namespace argiope {
namespace {

constexpr std::size_t kSitemapBytes = SitemapLimits{}.most_bytes;
constexpr std::size_t kCheckedBytes = 16 * 1024;  // read of what is only checked, for the sake of the connection

ExchangeKind exchange_kind_of(Purpose purpose) noexcept {
  switch (purpose) {
    case Purpose::page: break;
    case Purpose::requisite: return ExchangeKind::requisite;
    case Purpose::sitemap: return ExchangeKind::sitemap;
    case Purpose::link:
    case Purpose::asset:
    case Purpose::part: return ExchangeKind::check;
  }
  return ExchangeKind::page;
}

}  // namespace

// Not now: the URL goes back to its place, and its host waits for let_go().
void Crawler::Shard::put_back(Visit& visit, TimePoint now) {
  frontier_.hold(*visit.ticket.host, now);
  frontier_.put_back(visit.ticket, now);
}

Coro<void> Crawler::Shard::visit_now(Visit& visit) {
  Host& host = *visit.ticket.host;
  const TimePoint now = loop_->time();
  if (host.lost && now >= host.lost_until) revive(host, now);
  if (host.lost) co_return pass_over(visit, now);
  if (host.is_held()) co_return put_back(visit, now);
  const HostLanes::Lane lane = HostLanes::lane_of(host.health);
  if (!lanes_.enter(lane, host)) {
    ++host.pins;
    co_return put_back(visit, now);
  }
  const Leaving place([&] { lanes_.leave(lane); });
  if (needs_question(host, now)) {
    put_back(visit, now);
    co_await question_host(host);
    co_return;
  }
  auto url = Url::parse(task_of(visit).url);
  if (!url) co_return on_error(visit, {Errc::invalid_input, url.error().message}, now);
  if (host.robots && !host.robots->allowed(url->path_and_query())) {
    co_return exclude(visit, Exclusion::robots, "robots.txt", now);
  }
  if (shared_.duplicates && !is_only_checked(task_of(visit).purpose) && is_in_trap(task_of(visit).url)) {
    co_return exclude(visit, Exclusion::trap, {}, now);
  }
  visit.request.url = std::move(*url);
  if (task_of(visit).purpose != Purpose::sitemap) {
    co_await fetch(visit);
  } else if (enter_sitemap(visit, now)) {
    const Leaving turn([this] { leave_sitemap(loop_->time()); });
    co_await fetch(visit);
  }
}

// Tells the shard that the host may be asked again.
AddressGate::Waker Crawler::Shard::waker_of(Host& host) {
  return [this, &host, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return false;
    loop_->call_soon_threadsafe([this, &host, alive] {
      if (alive.expired()) return;
      --host.pins;
      if (!host.is_held()) frontier_.let_go(host, loop_->time());
      pump();
    });
    return true;
  };
}

Coro<void> Crawler::Shard::fetch(Visit& visit) {
  Host& host = *visit.ticket.host;
  TimePoint now = loop_->time();
  if (rendering_ && host.rest_until > now) {
    // What a page has asked of the host came first.
    co_return frontier_.put_back(visit.ticket, now);
  }
  const auto address = host.address && classify(*host.address) == AddressClass::public_ ? host.address : std::nullopt;
  if (address && !shared_.addresses.enter(*address, waker_of(host))) {
    ++host.pins;
    co_return put_back(visit, now);
  }
  // The host's address may be looked up anew meanwhile: what was entered is what is left.
  std::optional<Leaving> leaves_address;
  if (address) leaves_address.emplace([&, entered = *address] { shared_.addresses.leave(entered); });
  visit.ask = ask_of(task_of(visit));
  if (task_of(visit).purpose != Purpose::requisite) {
    const bool is_under_way = task_of(visit).has_place;
    if (!take_page(visit)) {
      shared_.ending.stop_at_max_pages();
      // It stays queued in the store, and makes way for what is still fetched.
      if (!shared_.ending.stopping()) frontier_.done(visit.ticket, now);
      co_return;
    }
    if (!is_under_way) shared_.ending.begin_part();
  }
  build_request(visit);
  // Until a host has answered, one question at a time is enough.
  std::optional<Leaving> ends_question;
  if (!host.health.proven()) {
    ends_question.emplace(begin_question(host));
    visit.request.timeout = patience_with(host);
  }
  visit.rendered.reset();
  if (rendering_) take_turn(host, now);
  visit.response.connected = false;
  visit.is_asked = true;
  const Result<void> sent = co_await send(host, visit.request, visit.response);
  leaves_address.reset();
  now = loop_->time();
  last_fetch_ = now;
  if (host.throttled) note_latency(visit, sent.has_value(), now);
  be_polite(host, visit.response.sent_at, now);
  if (!sent) co_return on_error(visit, sent.error(), now);
  std::optional<Error> unrendered;
  if (rendering_ && is_worth_rendering(visit)) {
    // It has answered: what the page asks for may be asked of it.
    host.health.page_answered();
    ends_question.reset();
    unrendered = co_await render(visit);
    now = loop_->time();
    if (shared_.ending.is_quota_used_up()) {
      // What its page asked for may not all have come.
      count_bytes(visit.response);
      co_return cut_by_quota(visit, now);
    }
  }
  // What was not taken stays queued in the store.
  const ExchangeKind kind = exchange_kind_of(task_of(visit).purpose);
  if (!show(kind, visit, unrendered.has_value())) co_return;
  const VisitStep step = take_answer(visit, unrendered, now);
  if (step != VisitStep::settle && step != VisitStep::fail) co_return;
  if (visit.rendered != nullptr) take_rendered(visit);
  std::string handler_error;
  if (options_.on_page && visit.request.method == HttpMethod::get && visit.response.status != 304 &&
      !visit.response.unwanted && kind == ExchangeKind::page) {
    handler_error = co_await hand_over(visit);
    now = loop_->time();
  }
  on_response(visit, step, std::move(handler_error), now);
}

// Whether its name says that it is of a type that is not accepted. Names may be wrong: it is asked by HEAD.
bool Crawler::Shard::looks_unwanted(const UrlTask& task) const {
  if (options_.accept_types.empty() || task.revisit) return false;
  const std::string_view path = path_in(task.url);
  const std::string_view type = media_type_of_extension(extension_of(path.substr(path.rfind('/') + 1)));
  return !type.empty() && !has_media_type(type, options_.accept_types);
}

UrlAsk Crawler::Shard::ask_of(const UrlTask& task) const {
  return task.ask ? *task.ask : first_ask(task.purpose, looks_unwanted(task));
}

VisitRequest Crawler::Shard::asked_of(const Visit& visit) {
  const UrlTask& task = task_of(visit);
  return {task.purpose, visit.ask, task.challenges, is_last_attempt(task)};
}

bool Crawler::Shard::is_last_attempt(const UrlTask& task) noexcept {
  constexpr std::uint32_t kMost = std::numeric_limits<decltype(task.attempts)>::max();
  return task.attempts + 1u >= std::min(task.host->policy->attempts, kMost);
}

bool Crawler::Shard::take_page(Visit& visit) {
  UrlTask& task = task_of(visit);
  visit.response.connected = false;
  visit.response.challenged = HttpChallenged::none;
  visit.has_spare = options_.max_pages > 1 && visit.ask == UrlAsk::head;
  const bool is_taken = std::exchange(task.has_place, false) || shared_.ending.take_pages(visit.has_spare ? 2 : 1);
  if (!is_taken) visit.has_spare = false;
  return visit.has_page = is_taken;
}

void Crawler::Shard::put_page_off(Visit& visit) {
  const bool counts = visit.response.connected && visit.response.challenged != HttpChallenged::again &&
                      task_of(visit).purpose != Purpose::sitemap;
  if (visit.has_page && !counts) shared_.ending.give_pages_back(1);
  end_page(visit);
}

void Crawler::Shard::ask_again(Visit& visit, TimePoint now) {
  ++task_of(visit).challenges;
  put_page_off(visit);
  frontier_.retry(visit.ticket, now, now);
}

void Crawler::Shard::ask_instead(Visit& visit, TimePoint now) {
  UrlTask& task = task_of(visit);
  // A budget of one page is overdrawn, or it would never be enough.
  task.has_place = visit.has_page && (std::exchange(visit.has_spare, false) || options_.max_pages == 1);
  if (task.has_place) shared_.ending.begin_part();
  put_page_off(visit);
  frontier_.retry(visit.ticket, now, now);
}

void Crawler::Shard::end_page(Visit& visit) {
  if (std::exchange(visit.has_spare, false)) shared_.ending.give_pages_back(1);
  if (std::exchange(visit.has_page, false)) shared_.ending.end_part();
}

Exchange Crawler::Shard::exchange_of(ExchangeKind kind, const HttpRequest& request,
                                     const HttpResponse& response) const {
  return {kind, request, response, wall() - (loop_->time() - response.sent_at)};
}

bool Crawler::Shard::show(ExchangeKind kind, const HttpRequest& request, const HttpResponse& response) {
  return shared_.sinks.empty() || shared_.show(exchange_of(kind, request, response));
}

bool Crawler::Shard::show(ExchangeKind kind, Visit& visit, bool is_unrendered) {
  if (shared_.sinks.empty()) return true;
  const UrlTask& task = task_of(visit);
  Exchange exchange = exchange_of(kind, visit.request, visit.response);
  exchange.depth = task.depth;
  exchange.url_id = task.id;
  exchange.asked_again =
      is_unrendered || (!visit.response.damage.empty() && !is_last_attempt(task));
  if (visit.rendered != nullptr) exchange.rendered = &visit.rendered->page;
  exchange.references = scan_early(visit);
  return shared_.show(exchange);
}

void Crawler::Shard::build_request(Visit& visit) {
  const UrlTask& task = task_of(visit);
  HttpRequest& request = visit.request;
  request.method = visit.ask == UrlAsk::head ? HttpMethod::head : HttpMethod::get;
  const bool in_part = is_only_checked(task.purpose) && visit.ask != UrlAsk::body;
  request.body_limit = in_part ? std::min(options_.size_limit, kCheckedBytes) : options_.size_limit;
  request.wanted_types = {};
  if (task.purpose == Purpose::page) request.wanted_types = options_.accept_types;
  if (task.purpose == Purpose::sitemap) request.body_limit = kSitemapBytes;
  request.timeout = task.host->policy->timeout;
  request.headers = task.host->policy->headers;
  request.keep_fields = options_.on_page || rendering_ || options_.duplicates.canonical || options_.keep_facts;
  prepare(request);
  visit.scan = 0;
  visit.before.reset();
  visit.is_conditional = false;
  if (!task.revisit && !task.counted) return;
  auto record = shared_.store.get(task.id);
  if (!record || !*record) return;
  visit.before = std::make_unique<UrlRecord>(std::move(**record));
  const bool knows_answer = has_last_answer(*visit.before);
  if ((!task.revisit && !knows_answer) || shared_.demands.misses(*visit.before)) return;
  visit.is_conditional = true;
  // That a redirect or an error has not changed would leave nothing to go by.
  if (!knows_answer && (visit.before->status_code < 200 || visit.before->status_code >= 300)) return;
  if (!visit.before->etag.empty()) request.headers.emplace_back("If-None-Match", visit.before->etag);
  if (!visit.before->last_modified.empty()) request.headers.emplace_back("If-Modified-Since", visit.before->last_modified);
}

// Of what has failed: whether its validators are those of the last whole answer, which all that is asked for has seen.
bool Crawler::Shard::has_last_answer(const UrlRecord& record) const {
  if (record.state != UrlState::failed || (record.etag.empty() && record.last_modified.empty())) return false;
  return !shared_.sinks.lacks(record.url);
}

// Of an attempt that has failed: what is known of the last whole answer stays, so that the next attempt can ask whether it has changed.
// False: there is none, or not all that is asked for has seen it.
bool Crawler::Shard::keep_last_answer(const Visit& visit, UrlOutcome& outcome) {
  const UrlTask& task = task_of(visit);
  if (!visit.is_conditional || is_only_checked(task.purpose) || task.purpose == Purpose::sitemap) return false;
  const UrlRecord& before = *visit.before;
  const bool is_whole = before.status_code >= 200 && before.status_code < 300 && before.error.empty() &&
                        (before.reason == UrlReason::none || task.purpose == Purpose::requisite);
  if (before.state != UrlState::failed && !is_whole) return false;
  if (before.etag.empty() && before.last_modified.empty()) return false;
  outcome.content_type = before.content_type;
  outcome.size = before.size;
  outcome.etag = before.etag;
  outcome.last_modified = before.last_modified;
  outcome.digest = before.digest;
  return true;
}

// Of each request, whatever it asks for.
void Crawler::Shard::prepare(HttpRequest& request) const noexcept {
  request.keep_wire = shared_.sinks.wants_wire();
  request.quota = shared_.ending.quota();
}

Coro<Result<void>> Crawler::Shard::send(Host& host, const HttpRequest& request, HttpResponse& response) {
  response.wire_bytes = response.quota_bytes = 0;
  ++host.asked;
  const Leaving ends([&host] { --host.asked; });
  co_return co_await transport_->send(request, response);
}

void Crawler::Shard::be_polite(Host& host, TimePoint sent_at, TimePoint now) {
  // Counted from when the request went out, so that the server sees no two closer than this, however long the
  // first took to connect.
  if (host.limits.concurrency == 1 && host.limits.rate > 0 && std::isfinite(host.limits.rate)) {
    rest(host, saturating_add(sent_at, from_seconds(1.0 / host.limits.rate)), RestReason::pace, now);
  }
  rest_for_delay(host, now);
}

void Crawler::Shard::rest_for_delay(Host& host, TimePoint now) {
  if (host.limits.delay <= Duration::zero()) return;
  const RestReason why = host.crawl_delay >= host.limits.delay ? RestReason::crawl_delay : RestReason::pace;
  rest(host, saturating_add(now, host.limits.delay), why, now);
}

// RFC 9110, 10.2.3: the whole host asked for it.
Duration Crawler::Shard::heed_retry_after(Host& host, const HttpResponse& response, TimePoint now) {
  const auto wait = parse_retry_after(response.headers.retry_after, wall());
  if (!wait || !is_temporary(response.status)) return {};
  rest(host, saturating_add(now, *wait), RestReason::retry_after, now);
  return *wait;
}

// The host is not asked before `until`, whichever run it would be.
void Crawler::Shard::rest(Host& host, TimePoint until, RestReason why, TimePoint now) {
  if (!frontier_.rest(host, until, now, why) || until - now < HostRests::kShortest || !options_.heed_crawl_delay) return;
  UrlBatch batch;
  batch.notes.push_back(HostRests::note_of(host.site, frontier_.stored_rest(host)));
  shared_.store.submit(std::move(batch));
}

// At the end: also what was too short to be written down at once.
void Crawler::Shard::keep_rests(TimePoint now) {
  if (!options_.heed_crawl_delay) return;
  UrlBatch batch;
  frontier_.each_resting(now, [&](const Host& host) {
    batch.notes.push_back(HostRests::note_of(host.site, frontier_.stored_rest(host)));
  });
  if (batch.size() > 0) shared_.store.submit(std::move(batch));
}

void Crawler::Shard::note_latency(Visit& visit, bool answered, TimePoint now) {
  Host& host = *visit.ticket.host;
  const HttpResponse& response = visit.response;
  // By its name it might have been public.
  const bool is_public = !host.address || classify(*host.address) == AddressClass::public_ || host.policy->autothrottle;
  if (!is_public || !response.connected) return;
  const bool is_page = answered && response.status >= 200 && response.status < 300 && visit.request.method == HttpMethod::get;
  const TimePoint end = answered && response.answered_at > response.sent_at ? response.answered_at : now;
  const Duration before = host.pace;
  frontier_.note_latency(host, end - response.sent_at, !is_page, now);
  if (host.pace > before + before / 10) {
    spdlog::debug("{}: an answer took {}; from now on a request every {}", host.site,
                  format_roughly(end - response.sent_at), format_roughly(host.pace));
  }
}

std::optional<Duration> Crawler::Shard::wait_after(const Host& host, std::uint32_t attempts) {
  return attempts < host.policy->attempts ? retry_policy_.delay_after(attempts, random_) : std::nullopt;
}

void Crawler::Shard::on_error(Visit& visit, const Error& error, TimePoint now) {
  Host& host = *visit.ticket.host;
  const HttpResponse& response = visit.response;
  const auto go_on = [&] { take_step(visit, next_step(asked_of(visit), {.failure = error.code}), error, {}, now); };
  if (!is_of_server(error.code)) return go_on();
  if (response.connected) count_bytes(response);
  if (shared_.ending.is_quota_used_up()) return cut_by_quota(visit, now);
  if (host.health.is_new() && error.code == Errc::timeout && visit.request.timeout < host.policy->timeout) {
    put_page_off(visit);
    note_asked(visit);  // the run may end while the host rests
    question_failed(host, error, visit.request.timeout, now);
    return frontier_.put_back(visit.ticket, now);
  }
  if (!response.connected) {
    // The host's trouble, and no attempt of the URL's.
    if (!host_failed(host, error, false, now)) {
      // Nothing is known to be wrong with a page that was there.
      if (options_.forever && task_of(visit).revisit) return pass_over(visit, now);
      ++task_of(visit).attempts;
      return give_up(visit, error, now);
    }
    put_page_off(visit);
    return frontier_.put_back(visit.ticket, now);
  }
  if (says_something(error, response)) {
    host.health.page_answered();
  } else if (task_of(visit).attempts == 0) {
    host.health.url_failed(now);
  }
  go_on();
}

// What is not whole when the quota is used up stays queued. What was too much for it by itself fails: it would take each run's.
void Crawler::Shard::cut_by_quota(Visit& visit, TimePoint now) {
  const std::uint64_t came = visit.response.wire_bytes;
  if (visit.response.connected && came > options_.quota / 2) {
    const auto text = fmt::format("not whole after {} bytes, when the quota of {} was used up", came, options_.quota);
    return give_up(visit, {Errc::too_large, text}, now);
  }
  put_page_off(visit);
  note_asked(visit);
  frontier_.put_back(visit.ticket, now);
}

// A run that ends is no failure of the URL's: its attempts stay as many as they are.
void Crawler::Shard::note_asked(const Visit& visit) {
  if (!has_limit(options_) || !visit.is_asked || !visit.response.connected) return;
  const UrlTask& task = task_of(visit);
  UrlBatch batch;
  UrlOutcome outcome = waiting_outcome(visit);
  if (task.redirects > 0) outcome.limit = -std::int64_t{task.redirects};
  if (shared_.plan.is_adaptive()) {
    outcome.due = outcome.mtime;
    outcome.mtime = shared_.plan.visit_before(outcome.due, visit.before.get());
  }
  outcome.error = "not answered before the run ended";
  batch.outcomes.push_back(std::move(outcome));
  shared_.store.submit(std::move(batch));
}

// Of a URL that is tried again. What is known of it stays, to be asked about; without validators, where it was asked without.
UrlOutcome Crawler::Shard::waiting_outcome(const Visit& visit) {
  const bool is_known = visit.before && visit.before->status_code != 0;
  const UrlOutcome now = outcome_of(visit);
  UrlOutcome outcome = is_known && !visit.is_conditional ? queued_anew(*visit.before) : now;
  outcome.mtime = now.mtime;
  outcome.attempts = now.attempts;
  outcome.reason = now.reason;
  outcome.state = UrlState::queued;
  outcome.limit = task_of(visit).given_up;
  if (is_known && visit.is_conditional) {
    outcome.not_modified = true;
    outcome.redirect_to = visit.before->redirect_to;
  }
  return outcome;
}

void Crawler::Shard::retry(Visit& visit, const Error& error, Duration at_least, TimePoint now) {
  UrlTask& task = task_of(visit);
  ++task.attempts;
  const Duration delay = wait_after(*task.host, task.attempts).value_or(Duration::zero());
  ShardCounters::add(counters.retries);
  put_page_off(visit);
  spdlog::debug("{}: {}; attempt {} of {}", task.url, error.message, task.attempts, task.host->policy->attempts);
  const TimePoint due = saturating_add(now, std::max(delay, at_least));
  UrlBatch batch;
  UrlOutcome outcome = waiting_outcome(visit);
  outcome.due = frontier_.stored_time(due);
  if (shared_.plan.is_adaptive()) outcome.mtime = shared_.plan.visit_before(outcome.due, visit.before.get());
  outcome.error = fmt::format("{}: {}", to_string(error.code), error.message);
  batch.outcomes.push_back(std::move(outcome));
  shared_.store.submit(std::move(batch));
  frontier_.retry(visit.ticket, due, now);
}

void Crawler::Shard::give_up(Visit& visit, const Error& error, TimePoint now) {
  spdlog::debug("{}: given up: {}", task_of(visit).url, error.message);
  ShardCounters::add(counters.errors);
  shared_.failures.count(to_string(error.code));
  UrlBatch batch;
  UrlOutcome outcome = outcome_of(visit);
  outcome.state = UrlState::failed;
  outcome.limit = task_of(visit).given_up + 1;
  outcome.error = fmt::format("{}: {}", to_string(error.code), error.message);
  keep_last_answer(visit, outcome);
  batch.outcomes.push_back(std::move(outcome));
  if (visit.before) note_change(visit, batch);
  settle(visit, std::move(batch), now);
}

}  // namespace argiope
