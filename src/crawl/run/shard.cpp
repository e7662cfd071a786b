#include "crawl/run/shard.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>

#include "argiope/async/sleep.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostBacklog = 100'000;  // records the store may lag behind before fetching pauses
constexpr Duration kSavePause = std::chrono::seconds{1};  // between two times that changed cookies are written down
constexpr Duration kRestLook = std::chrono::seconds{1};  // between two looks which host rests longest
constexpr Duration kBacklogPause = std::chrono::milliseconds{20};

}  // namespace

Crawler::Shard::Shard(Shared& shared, std::size_t index, std::size_t shards)
    : shared_(shared),
      options_(shared.options),
      index_(index),
      most_visits_((shared.options.concurrency + shards - 1) / shards),
      frontier_(shared.options, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(shards)),
      lanes_(most_visits_),
      harvester_(shared.options.product_token, shared.options.max_links_per_page),
      random_(mix64(shared.seed + index)) {
  retry_policy_.max_attempts = std::numeric_limits<std::uint32_t>::max();  // how many there are depends on the host
}

// --- what is queued --------------------------------------------------------------------------------------------

// Settles a URL that its host may not have any more.
bool Crawler::Shard::is_one_too_many(const UrlTask& task, const Host& host) {
  if (host.urls < host.policy->max_pages || task.attempts > 0 || task.counted) return false;
  count(Exclusion::pages_per_host);
  shared_.count_left_out(UrlReason::pages_per_host);
  UrlBatch batch;
  UrlOutcome outcome;
  outcome.url_id = task.id;
  outcome.state = UrlState::excluded;
  outcome.reason = is_asset(task.purpose)             ? UrlReason::asset
                   : task.purpose == Purpose::sitemap ? UrlReason::sitemap
                                                      : UrlReason::pages_per_host;
  outcome.limit = static_cast<std::int64_t>(host.policy->max_pages);
  batch.outcomes.push_back(std::move(outcome));
  shared_.store.submit(std::move(batch));
  shared_.ending.end(1);
  return true;
}

void Crawler::Shard::put(UrlTask task, const Url& url, TimePoint due, TimePoint now) {
  Host& host = frontier_.host_of(url);
  if (is_one_too_many(task, host)) return;
  if (!frontier_.put(std::move(task), host, due, now)) shared_.ending.end(1);
}

void Crawler::Shard::prepare_task(UrlTask task, const Url& url) { put(std::move(task), url, TimePoint{}, TimePoint{}); }

Result<void> Crawler::Shard::resume(const UrlRecord& record) {
  // Of what stays where it is, nothing but its site matters, and nearly always that has been met before.
  if (Frontier::stays_on_shelf(record)) {
    const auto scheme_end = record.url.find("://");
    const auto site_end = record.url.find('/', scheme_end + 3);
    if (Host* host = frontier_.find_host(std::string_view(record.url).substr(0, site_end))) {
      frontier_.resume_on_shelf(record, *host);
      return {};
    }
  }
  const auto url = Url::parse(record.url);
  if (!url) return std::unexpected(url.error());
  Host& host = frontier_.host_of(*url);
  UrlTask task = shared_.task_of(record);
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
      return shared_.ending.stop("store", true);
    }
  }
  frontier_.end_read(now);
  submit_moves();
}

Result<void> Crawler::Shard::read(const Frontier::Read& wanted, TimePoint now) {
  std::vector<Frontier::Row> rows;
  rows.reserve(wanted.load.read.limit);
  auto done = shared_.store.read_shelf(wanted.load.read, wanted.sites, [&](const UrlRecord& record) {
    auto url = Url::parse(record.url);
    // What is no URL will fail when it is fetched, as any other that cannot be.
    if (!url) url = Url::parse("http://invalid/");
    UrlTask task = shared_.task_of(record);
    const WallTime due = Frontier::is_delayed(record, task) ? record.due : WallTime{};
    rows.push_back({std::move(task), &frontier_.host_of(*url), due});
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
  ticker_.emplace(*loop_, [this] { pump(); });
  session_ = shared_.session.over(transport, index_);
  transport_ = session_ != nullptr ? session_.get() : &transport;
  resolver_ = resolver;
  last_fetch_ = loop_->time();
  frontier_.start_clock(loop_->time(), wall(), &shared_.host_rests);
  found_.resize(shared_.shards.size());
  working_.store(true, std::memory_order_release);
  bool cancelled = false;
  try {
    if (index_ == 0 && !options_.sitemap_urls.empty()) add_given_sitemaps();
    if (options_.renderer) co_await open_renderer();
    pump();
    co_await ended_.wait();
  } catch (const CancelledError&) {
    cancelled = true;
  }
  if (cancelled) {
    shared_.ending.stop("cancelled", true);
    co_await drain();
  }
  if (options_.renderer) co_await options_.renderer->close();
  shared_.session.save(shared_.store, wall());
  keep_rests(loop_->time());
  shared_.ending.note_end(wall());
  working_.store(false, std::memory_order_release);
  ticker_->stop();
  if (cancelled) throw CancelledError();
}

Coro<void> Crawler::Shard::drain() {
  refuse_hops();
  for (const TimePoint limit = saturating_add(loop_->time(), options_.drain_limit); active_ > 0 || !served_hops_.empty();) {
    if (shared_.ending.stopping_at_once() || loop_->time() >= limit) {
      for (auto& visit : visits_) {
        if (visit->running) visit->task.cancel();
      }
    }
    co_await sleep(std::chrono::milliseconds{10});
  }
  submit_moves();
  ended_.set();
}

void Crawler::Shard::save_session(TimePoint now) {
  if (index_ != 0 || now < next_save_) return;
  next_save_ = now + kSavePause;
  shared_.session.save(shared_.store, wall());
}

void Crawler::Shard::check_limits(TimePoint now) {
  if (shared_.store.failure()) shared_.ending.stop("store", true);
  if (options_.max_idle && active_ == 0 && now - last_fetch_ >= *options_.max_idle) shared_.ending.stop("idle", false);
}

void Crawler::Shard::pump() {
  const TimePoint now = loop_->time();
  take_inbox();
  take_hops();
  take_given(now);
  check_limits(now);
  if (options_.forever) shared_.look_for_more(index_, now);
  if (shared_.ending.stopping() || shared_.is_complete(index_, !awaits_given(now))) {
    if (!std::exchange(drain_started_, true)) {
      loop_->create_task(drain(), "drain");
    }
    return;
  }
  read_on(now);
  save_session(now);
  if (shared_.store.backlog() > kMostBacklog || shared_.sinks.are_behind()) return ticker_->at(now + kBacklogPause);
  lanes_.wake([&](Host& host) {
    --host.pins;
    if (!host.is_held()) frontier_.let_go(host, now);
  });
  while (active_ < most_visits_) {
    auto ticket = frontier_.next(now);
    if (!ticket) break;
    start(*ticket);
  }
  counters.in_memory.store(frontier_.size(), std::memory_order_relaxed);
  counters.hosts.store(frontier_.host_count(), std::memory_order_relaxed);
  counters.hosts_waiting.store(frontier_.hosts_waiting(), std::memory_order_relaxed);
  note_longest_rest(now);
  TimePoint next = saturating_add(now, options_.schedule_interval);
  if (may_be_given_more(now)) next = now + kBacklogPause;
  if (active_ < most_visits_) next = std::min(next, frontier_.next_wakeup(now));  // else the end of a visit wakes
  ticker_->at(next);
  if (options_.forever) {
    const TimePoint due = active_ == 0 ? frontier_.next_wakeup(now) : kNever;
    counters.next_due.store(due.time_since_epoch().count(), std::memory_order_relaxed);
  }
}

// A look at each host that has something to do: milliseconds, if they are very many.
void Crawler::Shard::note_longest_rest(TimePoint now) {
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

Crawler::Shard::Resting Crawler::Shard::longest_rest() const {
  std::lock_guard lock(resting_mutex_);
  return resting_;
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
  chosen.has_page = chosen.has_spare = chosen.is_asked = false;
  chosen.before.reset();
  ++ticket.host->pins;
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
    note_asked(visit);
  } catch (const std::exception& error) {
    spdlog::error("{}: {}", task_of(visit).url, error.what());
    on_error(visit, {Errc::internal, error.what()}, loop_->time());
  }
  --visit.ticket.host->pins;
  visit.running = false;
  visit.task = Task<void>{};
  idle_visits_.push_back(&visit);
  --active_;
  counters.in_flight.store(active_, std::memory_order_relaxed);
  if (!cancelled) ticker_->soon();
}

}  // namespace argiope
