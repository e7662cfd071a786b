#include "crawl/shard.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>

#include "argiope/async/sleep.hpp"
#include "argiope/async/timeout.hpp"
#include "argiope/web/content_type.hpp"
#include "argiope/web/http_client.hpp"
#include "argiope/web/http_date.hpp"
#include "argiope/web/robots_meta.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostBacklog = 100'000;  // records the store may lag behind before fetching pauses
constexpr Duration kBacklogPause = std::chrono::milliseconds{20};
constexpr Duration kRobotsLifetime = std::chrono::hours{24};  // RFC 9309, 2.4
constexpr std::size_t kRobotsBytes = 500 * 1024;              // RFC 9309, 2.5
constexpr int kRobotsRedirects = 5;                           // RFC 9309, 2.3.1.2
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

// Statuses that a later attempt may change.
constexpr bool is_temporary(int status) noexcept {
  return status == 408 || status == 425 || status == 429 || status >= 500;
}

}  // namespace

Crawler::Shard::Shard(Shared& shared, std::size_t index, std::size_t shards)
    : shared_(shared),
      options_(shared.options),
      index_(index),
      most_visits_((shared.options.concurrency + shards - 1) / shards),
      frontier_(shared.options, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(shards)),
      harvester_(shared.options.product_token),
      random_(mix64(shared.seed + index)) {
  retry_policy_.max_attempts = shared.options.retries + 1;
}

// --- what is queued --------------------------------------------------------------------------------------------

// Settles a URL that its host may not have any more.
bool Crawler::Shard::is_one_too_many(const UrlTask& task, const Host& host) {
  if (host.urls < options_.max_pages_per_host || task.attempts > 0 || task.revisit) return false;
  count(Exclusion::pages_per_host);
  UrlBatch batch;
  UrlOutcome outcome;
  outcome.url_id = task.id;
  outcome.state = UrlState::excluded;
  outcome.error = to_string(Exclusion::pages_per_host);
  batch.outcomes.push_back(std::move(outcome));
  shared_.store.submit(std::move(batch));
  shared_.end(1);
  return true;
}

void Crawler::Shard::put(UrlTask task, const Url& url, TimePoint due, TimePoint now) {
  Host& host = frontier_.host_of(url);
  if (is_one_too_many(task, host)) return;
  frontier_.put(std::move(task), host, due, now);
}

void Crawler::Shard::prepare_task(UrlTask task, const Url& url) { put(std::move(task), url, TimePoint{}, TimePoint{}); }

Result<void> Crawler::Shard::resume(const UrlRecord& record) {
  // Of what stays where it is, nothing but its site matters, and nearly always that has been met before.
  if (Frontier::stays_on_shelf(record)) {
    const auto scheme_end = record.url.find("://");
    const auto site_end = record.url.find('/', scheme_end + 3);
    if (Host* host = frontier_.find_host(std::string_view(record.url).substr(0, site_end))) {
      UrlTask task;
      task.id = record.url_id;
      task.depth = record.depth;
      task.url = record.url;
      frontier_.resume(record, *host, std::move(task));
      return {};
    }
  }
  const auto url = Url::parse(record.url);
  if (!url) return std::unexpected(url.error());
  Host& host = frontier_.host_of(*url);
  UrlTask task = shared_.task_of(record, *url);
  if (Frontier::stays_on_shelf(record) || !is_one_too_many(task, host)) {
    frontier_.resume(record, host, std::move(task));
  }
  return {};
}

void Crawler::Shard::post(std::vector<UrlTask> tasks) {
  {
    std::lock_guard lock(inbox_mutex_);
    for (UrlTask& task : tasks) inbox_.push_back(std::move(task));
  }
  wake();
}

void Crawler::Shard::wake() {
  if (!working_.load(std::memory_order_acquire)) return;  // work() looks at everything when it begins
  loop_->call_soon_threadsafe([this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) pump();
  });
}

void Crawler::Shard::take_inbox() {
  std::vector<UrlTask> tasks;
  {
    std::lock_guard lock(inbox_mutex_);
    tasks.swap(inbox_);
  }
  take_found(tasks, loop_->time());
}

void Crawler::Shard::take_found(std::vector<UrlTask>& tasks, TimePoint now) {
  for (UrlTask& task : tasks) {
    if (task.id == 0) {
      frontier_.found_nearer(task.fingerprint, task.depth, now);
    } else if (auto url = Url::parse(task.url)) {
      put(std::move(task), *url, now, now);
    }
  }
  tasks.clear();
}

void Crawler::Shard::read_on(TimePoint now) {
  if (reads_.empty()) {
    if (!frontier_.wants_read(now)) return submit_moves();
    reads_ = frontier_.begin_read(now);
    submit_moves();
    if (reads_.empty()) return;  // all it wanted was to move what it had
    flush_ = shared_.store.begin_flush();
  }
  if (!shared_.store.flushed(flush_)) return;
  for (const Frontier::Read& wanted : std::exchange(reads_, {})) {
    if (auto done = read(wanted, now); !done) {
      spdlog::error("{}", done.error().message);
      return shared_.stop("store", true);
    }
  }
  frontier_.end_read(now);
  submit_moves();
}

Result<void> Crawler::Shard::read(const Frontier::Read& wanted, TimePoint now) {
  std::vector<Frontier::Row> rows;
  rows.reserve(wanted.query.limit);
  auto done = shared_.store.read_shelf(wanted.query, [&](const UrlRecord& record) {
    auto url = Url::parse(record.url);
    // What is no URL will fail when it is fetched, as any other that cannot be.
    if (!url) url = Url::parse("http://invalid/");
    rows.push_back({shared_.task_of(record, *url), &frontier_.host_of(*url), record.shelf, record.due});
    return true;
  });
  if (done) frontier_.take_rows(wanted, std::move(rows), now);
  return done;
}

void Crawler::Shard::submit_moves() {
  if (frontier_.moves_waiting() == 0) return;
  UrlBatch batch;
  batch.moves = frontier_.take_moves();
  shared_.store.submit(std::move(batch));
}

// --- the driver ------------------------------------------------------------------------------------------------

Coro<void> Crawler::Shard::work(HttpTransport& transport, Resolver* resolver) {
  loop_ = &EventLoop::current();
  transport_ = &transport;
  resolver_ = resolver;
  last_fetch_ = loop_->time();
  frontier_.start_clock(loop_->time(), wall());
  found_.resize(shared_.shards.size());
  working_.store(true, std::memory_order_release);
  bool cancelled = false;
  try {
    pump();
    co_await ended_.wait();
  } catch (const CancelledError&) {
    cancelled = true;
  }
  if (cancelled) {
    shared_.stop("cancelled", true);
    co_await drain();
  }
  working_.store(false, std::memory_order_release);
  wake_timer_.cancel();
  if (cancelled) throw CancelledError();
}

Coro<void> Crawler::Shard::drain() {
  for (const TimePoint limit = saturating_add(loop_->time(), options_.drain_limit); active_ > 0;) {
    if (shared_.stopping_at_once() || loop_->time() >= limit) {
      for (auto& visit : visits_) {
        if (visit->running) visit->task.cancel();
      }
    }
    co_await sleep(std::chrono::milliseconds{10});
  }
  submit_moves();
  ended_.set();
}

void Crawler::Shard::schedule_pump() {
  if (std::exchange(pump_scheduled_, true)) return;
  loop_->call_soon([this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) pump();
  });
}

void Crawler::Shard::wake_at(TimePoint when) {
  if (when >= wake_at_) return;
  wake_timer_.cancel();
  wake_at_ = when;
  wake_timer_ = loop_->call_at(when, [this] {
    wake_at_ = kNever;
    pump();
  });
}

void Crawler::Shard::check_limits(TimePoint now) {
  if (shared_.store.failure()) shared_.stop("store", true);
  if (options_.max_idle && active_ == 0 && now - last_fetch_ >= *options_.max_idle) shared_.stop("idle", false);
}

void Crawler::Shard::pump() {
  pump_scheduled_ = false;
  const TimePoint now = loop_->time();
  take_inbox();
  check_limits(now);
  if (shared_.stopping() || shared_.outstanding.load() == 0) {
    if (!std::exchange(drain_started_, true)) {
      loop_->create_task(drain(), "drain");
    }
    return;
  }
  read_on(now);
  if (shared_.store.backlog() > kMostBacklog) return wake_at(now + kBacklogPause);
  while (active_ < most_visits_) {
    auto ticket = frontier_.next(now);
    if (!ticket) break;
    start(*ticket);
  }
  counters.in_memory.store(frontier_.size(), std::memory_order_relaxed);
  counters.hosts.store(frontier_.host_count(), std::memory_order_relaxed);
  counters.hosts_waiting.store(frontier_.hosts_waiting(), std::memory_order_relaxed);
  TimePoint next = saturating_add(now, options_.schedule_interval);
  if (active_ < most_visits_) next = std::min(next, frontier_.next_wakeup(now));  // else the end of a visit wakes
  wake_at(next);
}

void Crawler::Shard::start(Frontier::Ticket ticket) {
  if (idle_visits_.empty()) {
    visits_.push_back(std::make_unique<Visit>());
    idle_visits_.push_back(visits_.back().get());
  }
  Visit& chosen = *idle_visits_.back();
  idle_visits_.pop_back();
  chosen.ticket = ticket;
  chosen.running = true;
  ++active_;
  counters.in_flight.store(active_, std::memory_order_relaxed);
  chosen.task = loop_->create_task(visit(chosen), "visit");
}

Coro<void> Crawler::Shard::visit(Visit& visit) {
  bool cancelled = false;
  try {
    co_await visit_now(visit);
  } catch (const CancelledError&) {
    cancelled = true;  // stays queued in the store: the next run fetches it
  } catch (const std::exception& error) {
    spdlog::error("{}: {}", task_of(visit).url, error.what());
    on_error(visit, {Errc::internal, error.what()}, loop_->time());
  }
  visit.running = false;
  visit.task = Task<void>{};
  idle_visits_.push_back(&visit);
  --active_;
  counters.in_flight.store(active_, std::memory_order_relaxed);
  if (!cancelled) schedule_pump();
}

// --- one URL ---------------------------------------------------------------------------------------------------

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

void Crawler::Shard::exclude(Visit& visit, Exclusion why, std::string detail, TimePoint now) {
  count(why);
  UrlBatch batch;
  UrlOutcome outcome = outcome_of(visit);
  outcome.state = UrlState::excluded;
  outcome.error = std::move(detail);
  batch.outcomes.push_back(std::move(outcome));
  settle(visit, std::move(batch), now);
}

UrlOutcome Crawler::Shard::outcome_of(const Visit& visit) {
  UrlOutcome outcome;
  outcome.url_id = task_of(visit).id;
  outcome.attempts = task_of(visit).attempts;
  outcome.mtime = wall();
  return outcome;
}

void Crawler::Shard::on_response(Visit& visit, TimePoint now) {
  UrlTask& task = task_of(visit);
  Host& host = *visit.ticket.host;
  const HttpResponse& response = visit.response;
  host.failures_in_row = 0;
  ShardCounters::add(counters.bytes, response.wire_bytes);
  ShardCounters::add(counters.fetched);
  if (response.status >= 0 && response.status < static_cast<int>(counters.statuses.size())) {
    ShardCounters::add(counters.statuses[static_cast<std::size_t>(response.status)]);
  }
  if (is_temporary(response.status)) {
    Duration at_least{};
    if (const auto wait = parse_retry_after(response.headers.retry_after, wall())) {
      at_least = *wait;
      frontier_.rest(host, saturating_add(now, *wait), now);  // RFC 9110, 10.2.3: the whole host asked for it
    }
    if (task.attempts + 1u < retry_policy_.max_attempts) {
      return retry_or_give_up(visit, {Errc::protocol, fmt::format("HTTP {}", response.status)}, at_least, now);
    }
  }
  UrlBatch batch;
  UrlOutcome outcome = outcome_of(visit);
  ++outcome.attempts;
  outcome.state = UrlState::done;
  outcome.status_code = response.status;
  outcome.not_modified = response.status == 304;
  if (!outcome.not_modified) {
    outcome.content_type = response.headers.content_type;
    outcome.size = static_cast<std::int64_t>(response.body.size());
    outcome.etag = response.headers.etag;
    outcome.last_modified = response.headers.last_modified;
    if (!response.body.empty()) outcome.digest = content_digest(response.body);
    if (response.truncated) outcome.error = fmt::format("cut off at {} bytes", options_.size_limit);
  }
  if (response.status >= 400) ShardCounters::add(counters.errors);
  batch.outcomes.push_back(std::move(outcome));
  if (is_redirect(response.status)) {
    on_redirect(visit, batch);
  } else if (response.status == 200 && !task.off_scope) {
    on_page(visit, batch);
  }
  settle(visit, std::move(batch), now);
}

void Crawler::Shard::on_redirect(Visit& visit, UrlBatch& batch) {
  const UrlTask& task = task_of(visit);
  UrlOutcome& outcome = batch.outcomes.front();
  auto target = Url::parse(visit.response.headers.location, &visit.request.url);
  if (visit.response.headers.location.empty() || !target) {
    outcome.error = fmt::format("redirect to \"{}\", which is no URL", visit.response.headers.location);
    return;
  }
  target->strip_fragment();
  outcome.redirect_to = target->href();
  if (task.redirects >= options_.max_redirects) {
    outcome.error = fmt::format("more than {} redirects", options_.max_redirects);
    return;
  }
  if (task.seed) shared_.allow_host(target->host());
  discover(task, *target, task.depth, true, batch);
}

void Crawler::Shard::on_page(Visit& visit, UrlBatch& batch) {
  const UrlTask& task = task_of(visit);
  const HttpResponse& response = visit.response;
  const bool html =
      response.headers.content_type.empty() ? sniff_is_html(response.body) : is_html(response.headers.content_type);
  if (!html) return;
  ShardCounters::add(counters.pages);
  if (parse_robots_tag(response.headers.robots_tag, options_.product_token).nofollow) return count(Exclusion::nofollow);
  // With a depth limit, the same link found nearer to a seed is news.
  const std::uint64_t context = options_.max_depth ? task.depth + 1 : 0;
  const auto summary = harvester_.harvest(visit.request.url, response, context, [&](const LinkHarvester::Link& link) {
    if (link.nofollow) return count(Exclusion::nofollow);
    discover(task, link.url, task.depth + 1, false, batch);
  });
  if (summary.nofollow) count(Exclusion::nofollow);
  if (summary.other_scheme > 0) {
    ShardCounters::add(counters.excluded[static_cast<std::size_t>(Exclusion::scheme)], summary.other_scheme);
  }
}

void Crawler::Shard::discover(const UrlTask& from, const Url& url, std::uint32_t depth, bool redirect,
                              UrlBatch& batch) {
  if (url.scheme() != "http" && url.scheme() != "https") return count(Exclusion::scheme);
  const bool in_scope = shared_.in_scope(url);
  if (!in_scope && !options_.check_links) return count(Exclusion::off_scope);
  const std::uint64_t url_fingerprint = shared_.fingerprint_of(url.href());
  if (const Exclusion trap = shared_.scope.trap(url, depth); trap != Exclusion::none) return count(trap);
  const bool is_new = shared_.claim(url_fingerprint);
  // Without a depth limit, nothing about a known URL can change.
  if (!is_new && !options_.max_depth) return;
  UrlTask task;
  task.fingerprint = url_fingerprint;
  task.depth = depth;
  const std::size_t owner = shared_.shard_of(url);
  if (is_new) {
    task.id = shared_.new_url_id();
    task.url = url.href();
    task.redirects = redirect ? static_cast<std::uint8_t>(from.redirects + 1) : 0;
    task.seed = redirect && from.seed;
    task.off_scope = !in_scope;
    batch.discovered.push_back(
        {task.id, task.url, depth, crawl_priority(options_.order, depth, task.url), from.id, wall()});
    shared_.begin(1);
  }
  found_[owner].push_back(std::move(task));
}

void Crawler::Shard::settle(Visit& visit, UrlBatch batch, TimePoint now) {
  shared_.store.submit(std::move(batch));
  frontier_.done(visit.ticket, now);
  for (std::size_t owner = 0; owner < found_.size(); ++owner) {
    if (found_[owner].empty()) continue;
    if (owner != index_) {
      shared_.shards[owner]->post(std::exchange(found_[owner], {}));
      continue;
    }
    take_found(found_[owner], now);
  }
  shared_.end(1);
}

// --- one host --------------------------------------------------------------------------------------------------

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
