#include "crawl/run/shard.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "argiope/async/event_loop.hpp"
#include "crawl/run/answer_notes.hpp"
#include "crawl/run/discovery.hpp"
#include "crawl/run/given_desk.hpp"
#include "crawl/run/host_desk.hpp"
#include "crawl/run/host_hops.hpp"
#include "crawl/run/host_questions.hpp"
#include "crawl/run/page_reader.hpp"
#include "crawl/run/render_desk.hpp"
#include "crawl/run/settler.hpp"
#include "crawl/run/sitemap_desk.hpp"
#include "crawl/run/visitor.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMostBacklog = 100'000;             // records the store may lag behind before fetching pauses
constexpr Duration kSavePause = std::chrono::seconds{1};  // between two times that changed cookies are written down
constexpr Duration kBacklogPause = std::chrono::milliseconds{20};

}  // namespace

Crawler::Shard::Shard(Shared& shared, std::size_t index, std::size_t shards)
    : core_{.shard = *this,
            .shared = shared,
            .options = shared.options,
            .index = index,
            .frontier =
                Frontier(shared.options, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(shards))},
      shared_(shared),
      options_(shared.options),
      frontier_(core_.frontier),
      counters_(core_.counters),
      most_visits_((shared.options.concurrency + shards - 1) / shards),
      discovery_(std::make_unique<Discovery>(core_)),
      given_(std::make_unique<GivenDesk>(core_, *discovery_)),
      desk_(std::make_unique<HostDesk>(core_, most_visits_)),
      hops_(std::make_unique<HostHops>(core_, *desk_)),
      sitemaps_(std::make_unique<SitemapDesk>(core_, *discovery_, *hops_)),
      questions_(std::make_unique<HostQuestions>(core_, *desk_, *hops_, *sitemaps_)),
      render_(std::make_unique<RenderDesk>(core_, *desk_, *questions_)),
      reader_(std::make_unique<PageReader>(core_, *discovery_, *sitemaps_)),
      notes_(std::make_unique<AnswerNotes>(core_, *discovery_)),
      settler_(std::make_unique<Settler>(core_, *discovery_, *sitemaps_, *reader_, *notes_)),
      visitor_(std::make_unique<Visitor>(core_, *desk_, *questions_, *render_, *discovery_, *sitemaps_, *reader_,
                                         *notes_, *settler_)) {
  core_.alive = alive_;
}

Crawler::Shard::~Shard() = default;

void Crawler::Shard::Part::note_part(UrlOutcome& outcome, UrlReason reason, std::uint64_t limit) {
  if (outcome.reason != UrlReason::none) return;
  shared_.count_left_out(reason);
  outcome.reason = reason;
  outcome.limit = static_cast<std::int64_t>(limit);
}

// --- what is queued --------------------------------------------------------------------------------------------

// Settles a URL that its host may not have any more.
bool Crawler::Shard::is_one_too_many(const UrlTask& task, const Host& host) {
  if (host.urls < host.policy->max_pages || task.attempts > 0 || task.counted) return false;
  ShardCounters::add(counters_.excluded[static_cast<std::size_t>(Exclusion::pages_per_host)]);
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

void Crawler::Shard::put(UrlTask task, TimePoint due, TimePoint now) {
  Host& host = frontier_.host_of(task.url);
  if (is_one_too_many(task, host)) return;
  if (!frontier_.put(std::move(task), host, due, now)) shared_.ending.end(1);
}

void Crawler::Shard::prepare_task(UrlTask task) { put(std::move(task), TimePoint{}, TimePoint{}); }

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
  auto url = Url::parse(record.url);
  if (!url) return std::unexpected(url.error());
  Host& host = frontier_.host_of(*url);
  UrlTask task = shared_.task_of(record, std::move(*url));
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
  core_.loop->call_soon_threadsafe([this, alive = core_.alive] {
    if (!alive.expired()) pump();
  });
}

void Crawler::Shard::take_inbox() {
  std::vector<UrlTask> tasks;
  {
    std::lock_guard lock(inbox_mutex_);
    tasks.swap(inbox_);
  }
  take_found(tasks, core_.loop->time());
}

void Crawler::Shard::take_found(std::vector<UrlTask>& tasks, TimePoint now) {
  for (UrlTask& task : tasks) {
    if (task.id == 0) {
      frontier_.found_nearer(task.fingerprint, task.depth, now);
    } else {
      put(std::move(task), now, now);
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
    // A text that is no URL will fail when it is fetched, as any other URL that cannot be.
    Host& host = url ? frontier_.host_of(*url) : frontier_.host_of(*Url::parse("http://invalid/"));
    UrlTask task = shared_.task_of(record, url ? std::move(*url) : Url());
    const WallTime due = Frontier::is_delayed(record, task) ? record.due : WallTime{};
    rows.push_back({std::move(task), &host, due});
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
  core_.loop = &EventLoop::current();
  ticker_.emplace(*core_.loop, [this] { pump(); });
  desk_->start(transport);
  questions_->start(resolver);
  core_.last_fetch = core_.loop->time();
  frontier_.start_clock(core_.loop->time(), core_.wall(), &shared_.host_rests);
  discovery_->start();
  working_.store(true, std::memory_order_release);
  bool cancelled = false;
  try {
    if (core_.index == 0 && !options_.sitemap_urls.empty()) sitemaps_->add_given_sitemaps();
    if (options_.renderer) co_await render_->open();
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
  shared_.session.save(shared_.store, core_.wall());
  desk_->keep_rests(core_.loop->time());
  shared_.ending.note_end(core_.wall());
  working_.store(false, std::memory_order_release);
  ticker_->stop();
  if (cancelled) throw CancelledError();
}

Coro<void> Crawler::Shard::drain() {
  hops_->refuse_hops();
  for (const TimePoint limit = saturating_add(core_.loop->time(), options_.drain_limit);
       active_ > 0 || hops_->is_serving();) {
    if (shared_.ending.stopping_at_once() || core_.loop->time() >= limit) {
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
  if (core_.index != 0 || now < next_save_) return;
  next_save_ = now + kSavePause;
  shared_.session.save(shared_.store, core_.wall());
}

void Crawler::Shard::check_limits(TimePoint now) {
  if (shared_.store.failure()) shared_.ending.stop("store", true);
  if (options_.max_idle && active_ == 0 && now - core_.last_fetch >= *options_.max_idle)
    shared_.ending.stop("idle", false);
}

void Crawler::Shard::pump() {
  const TimePoint now = core_.loop->time();
  take_inbox();
  hops_->take_hops();
  given_->take_given(now);
  check_limits(now);
  if (options_.forever) shared_.look_for_more(core_.index, now);
  if (shared_.ending.stopping() || shared_.is_complete(core_.index, !given_->awaits_given(now))) {
    if (!std::exchange(drain_started_, true)) {
      core_.loop->create_task(drain(), "drain");
    }
    return;
  }
  read_on(now);
  save_session(now);
  if (shared_.store.backlog() > kMostBacklog || shared_.sinks.are_behind()) return ticker_->at(now + kBacklogPause);
  desk_->wake_lanes(now);
  while (active_ < most_visits_) {
    auto ticket = frontier_.next(now);
    if (!ticket) break;
    start(*ticket);
  }
  counters_.in_memory.store(frontier_.size(), std::memory_order_relaxed);
  counters_.hosts.store(frontier_.host_count(), std::memory_order_relaxed);
  counters_.hosts_waiting.store(frontier_.hosts_waiting(), std::memory_order_relaxed);
  desk_->note_longest_rest(now);
  TimePoint next = saturating_add(now, options_.schedule_interval);
  if (given_->may_be_given_more(now)) next = now + kBacklogPause;
  if (active_ < most_visits_) next = std::min(next, frontier_.next_wakeup(now));  // else the end of a visit wakes
  ticker_->at(next);
  if (options_.forever) {
    const TimePoint due = active_ == 0 ? frontier_.next_wakeup(now) : kNever;
    counters_.next_due.store(due.time_since_epoch().count(), std::memory_order_relaxed);
  }
}

Crawler::Shard::Resting Crawler::Shard::longest_rest() const { return desk_->longest_rest(); }

void Crawler::Shard::start(Frontier::Ticket ticket) {
  if (idle_visits_.empty()) {
    visits_.push_back(std::make_unique<Visit>());
    idle_visits_.push_back(visits_.back().get());
  }
  Visit& chosen = *idle_visits_.back();
  idle_visits_.pop_back();
  chosen.ticket = ticket;
  chosen.running = true;
  chosen.has_page = chosen.has_spare = chosen.is_asked = chosen.is_conditional = false;
  chosen.before.reset();
  ++ticket.host->pins;
  ++active_;
  counters_.in_flight.store(active_, std::memory_order_relaxed);
  chosen.task = core_.loop->create_task(visit(chosen), "visit");
}

Coro<void> Crawler::Shard::visit(Visit& visit) {
  bool cancelled = false;
  try {
    co_await visitor_->visit_now(visit);
  } catch (const CancelledError&) {
    cancelled = true;  // stays queued in the store: the next run fetches it
    visitor_->note_asked(visit);
  } catch (const std::exception& error) {
    spdlog::error("{}: {}", visit.ticket.task->url.href(), error.what());
    visitor_->on_error(visit, {Errc::internal, error.what()}, core_.loop->time());
  }
  --visit.ticket.host->pins;
  visit.running = false;
  visit.forget_page();
  visit.task = Task<void>{};
  idle_visits_.push_back(&visit);
  --active_;
  counters_.in_flight.store(active_, std::memory_order_relaxed);
  if (!cancelled) ticker_->soon();
}

}  // namespace argiope
