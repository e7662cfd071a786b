#include "crawl/shared.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "argiope/base/printable.hpp"
#include "argiope/web/http_client.hpp"
#include "crawl/redirect_loops.hpp"
#include "crawl/shard.hpp"

namespace argiope {
namespace {

constexpr std::size_t kMovesAtOnce = 50'000;
constexpr std::size_t kKnownAtOnce = 1'000;  // URLs whose places in the seen set are fetched into the cache together
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

}  // namespace

Crawler::Shared::Shared(CrawlOptions crawl_options, UrlStore& url_store, std::uint64_t random_seed,
                        std::size_t shard_count)
    : options(std::move(crawl_options)),
      store(url_store),
      seed(random_seed),
      scope(options),
      addresses(options.per_address),
      pages_left(options.max_pages == 0 ? kNoLimit : options.max_pages),
      seen_(mix64(random_seed)) {
  if (options.seeds.empty()) throw std::invalid_argument("a crawl needs a seed");
  if (shard_count == 0) throw std::invalid_argument("a crawl needs a shard");
  shards.reserve(shard_count);
  for (std::size_t i = 0; i < shard_count; ++i) shards.push_back(std::make_unique<Shard>(*this, i, shard_count));
}

Crawler::Shared::~Shared() = default;

// --- opening ---------------------------------------------------------------------------------------------------

Result<void> Crawler::Shared::open(WallTime now) {
  opened_at_ = now;
  if (options.age) refetch_before_ = now - *options.age;
  next_id = store.next_id();
  if (auto loaded = load(); !loaded) return loaded;
  add_seeds(now);
  return {};
}

Result<void> Crawler::Shared::load() {
  std::vector<std::uint64_t> urls;
  const auto know = [&] {
    bool news[kKnownAtOnce];
    seen_.insert_batch(urls, news);
    urls.clear();
  };
  // In stretches, between which is written what has to go to a shelf or to another place on it. That may be all there is,
  // when the database is of the first version or the order is not that of the last run.
  for (std::int64_t from = 1;;) {
    UrlBatch batch;
    std::size_t moves = 0;
    const auto visit = [&](const UrlRecord& record) {
      from = record.url_id + 1;
      urls.push_back(fingerprint_of(record.url));
      if (urls.size() == kKnownAtOnce) know();
      remember_seed_redirect(record);
      if (wants_fetch(record)) {
        moves += resume(record);
      } else if (record.shelf != UrlShelf::none) {
        batch.moves.push_back({record.url_id, UrlShelf::none, 0, record.priority, record.depth});
      }
      return moves + batch.moves.size() < kMovesAtOnce;
    };
    auto scanned = store.scan(from, visit, UrlStore::Fields::to_go_on);
    know();
    if (!scanned) return scanned;
    const bool all = moves + batch.moves.size() < kMovesAtOnce;
    for (auto& shard : shards) std::ranges::move(shard->take_moves(), std::back_inserter(batch.moves));
    if (batch.moves.empty()) return {};
    store.submit(std::move(batch));
    if (auto flushed = store.flush(); !flushed) return flushed;
    if (all) return {};
  }
}

// Queues what the store has recorded; how many records are to be moved because of it.
std::size_t Crawler::Shared::resume(const UrlRecord& record) {
  std::size_t owner = 0;
  if (shards.size() > 1) {
    std::uint64_t site = record.site;
    if (record.shelf == UrlShelf::none) {
      const auto url = Url::parse(record.url);
      if (url) site = fingerprint(url->site_key());
    }
    owner = part_of_site(site, static_cast<std::uint32_t>(shards.size()));
  }
  Shard& shard = *shards[owner];
  const std::size_t before = shard.moves_waiting();
  begin(1);
  if (auto resumed = shard.resume(record); !resumed) {
    end(1);
    spdlog::warn("url_id {}: {} is not a URL; left alone", record.url_id, in_quotes(record.url));
  }
  return shard.moves_waiting() - before;
}

bool Crawler::Shared::wants_fetch(const UrlRecord& record) const noexcept {
  switch (record.state) {
    case UrlState::queued: return true;
    case UrlState::failed: return record.mtime < opened_at_;  // an earlier run's; this one has tried
    case UrlState::done: return refetch_before_ && record.mtime < *refetch_before_;
    case UrlState::excluded: return false;
  }
  return false;
}

// What a seed redirects to belongs to the crawl as the seed does, and so on along the chain.
void Crawler::Shared::remember_seed_redirect(const UrlRecord& record) {
  if (record.redirect_to.empty() || (record.referrer != 0 && !seed_redirects_.contains(record.url))) return;
  if (auto target = Url::parse(record.redirect_to)) allow_host(target->host());
  seed_redirects_.insert(record.redirect_to);
}

UrlTask Crawler::Shared::task_of(const UrlRecord& record, const Url& url) const {
  UrlTask task;
  task.fingerprint = fingerprint_of(record.url);
  task.id = record.url_id;
  task.url = record.url;
  task.depth = record.depth;
  task.seed = record.referrer == 0 || seed_redirects_.contains(record.url);
  task.off_scope = !in_scope(url);
  task.revisit = record.state == UrlState::done;
  // Of what an earlier run has given up, the attempts begin anew.
  if (record.state == UrlState::queued) task.attempts = static_cast<std::uint8_t>(std::min(record.attempts, 255u));
  return task;
}

void Crawler::Shared::add_seeds(WallTime now) {
  UrlBatch batch;
  for (const Url& url : options.seeds) {
    UrlTask task;
    task.fingerprint = fingerprint_of(url.href());
    if (!claim(task.fingerprint)) continue;
    task.id = new_url_id();
    task.url = url.href();
    task.seed = true;
    batch.discovered.push_back({task.id, task.url, 0, crawl_priority(options.order, 0, task.url), 0, now});
    begin(1);
    shards[shard_of(url)]->prepare_task(std::move(task), url);
  }
  if (!batch.discovered.empty()) store.submit(std::move(batch));
}

// --- what shards ask -------------------------------------------------------------------------------------------

bool Crawler::Shared::claim(std::uint64_t url_fingerprint) {
  std::lock_guard lock(seen_mutex_);
  return seen_.insert(url_fingerprint);
}

std::size_t Crawler::Shared::shard_of(const Url& url) const noexcept {
  if (shards.size() == 1) return 0;
  return part_of_site(fingerprint(url.site_key()), static_cast<std::uint32_t>(shards.size()));
}

bool Crawler::Shared::in_scope(const Url& url) const {
  std::shared_lock lock(scope_mutex_);
  return scope.contains(url);
}

void Crawler::Shared::allow_host(std::string_view host) {
  std::lock_guard lock(scope_mutex_);
  scope.allow_host(host);
}

bool Crawler::Shared::take_page() noexcept {
  if (options.max_pages == 0) return true;
  std::uint64_t left = pages_left.load();
  while (left > 0) {
    if (pages_left.compare_exchange_weak(left, left - 1)) return true;
  }
  return false;
}

void Crawler::Shared::give_page_back() noexcept {
  if (options.max_pages != 0) pages_left.fetch_add(1);
}

void Crawler::Shared::end(std::uint64_t count) {
  if (outstanding.fetch_sub(count) == count) wake_shards();
}

void Crawler::Shared::count_failure(Errc code) {
  std::lock_guard lock(failures_mutex_);
  ++failures_[std::string(to_string(code))];
}

void Crawler::Shared::note_lost(const std::string& site, const Error& cause) {
  std::lock_guard lock(failures_mutex_);
  ++lost_host_count_;
  if (lost_hosts_.size() >= CrawlReport::kMostLostHosts) return;
  lost_hosts_.try_emplace(site, LostHost{site, fmt::format("{}: {}", to_string(cause.code), cause.message), 0});
}

void Crawler::Shared::count_not_asked(const std::string& site) {
  std::lock_guard lock(failures_mutex_);
  if (const auto found = lost_hosts_.find(site); found != lost_hosts_.end()) ++found->second.not_asked;
}

// --- ending ----------------------------------------------------------------------------------------------------

void Crawler::Shared::stop(std::string reason, bool at_once) {
  {
    std::lock_guard lock(stop_mutex_);
    if (stop_reason_.empty()) stop_reason_ = std::move(reason);
  }
  if (at_once) stop_at_once_.store(true);
  stop_requested_.store(true);
  wake_shards();
}

void Crawler::Shared::wake_shards() {
  for (auto& shard : shards) shard->wake();
}

CrawlStats Crawler::Shared::stats() const {
  CrawlStats stats;
  for (const auto& shard : shards) {
    const ShardCounters& counters = shard->counters;
    stats.pages += counters.pages.load(std::memory_order_relaxed);
    stats.fetched += counters.fetched.load(std::memory_order_relaxed);
    stats.bytes += counters.bytes.load(std::memory_order_relaxed);
    stats.errors += counters.errors.load(std::memory_order_relaxed);
    stats.not_asked += counters.not_asked.load(std::memory_order_relaxed);
    stats.retries += counters.retries.load(std::memory_order_relaxed);
    stats.in_flight += counters.in_flight.load(std::memory_order_relaxed);
    stats.in_memory += counters.in_memory.load(std::memory_order_relaxed);
    stats.hosts += counters.hosts.load(std::memory_order_relaxed);
    stats.hosts_waiting += counters.hosts_waiting.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < kExclusions; ++i) {
      stats.excluded[i] += counters.excluded[i].load(std::memory_order_relaxed);
    }
    for (std::size_t i = 0; i < kHttpOddities; ++i) stats.odd[i] += counters.odd[i].load(std::memory_order_relaxed);
  }
  const std::uint64_t unfinished = outstanding.load(std::memory_order_relaxed);
  stats.queued = unfinished - std::min(unfinished, stats.in_flight);
  std::lock_guard lock(seen_mutex_);
  stats.urls = seen_.size();
  return stats;
}

Result<CrawlReport> Crawler::Shared::report() {
  if (auto flushed = store.flush(); !flushed) return std::unexpected(std::move(flushed.error()));
  CrawlReport report;
  report.stats = stats();
  {
    std::lock_guard lock(stop_mutex_);
    report.stopped_by = stop_reason_;
  }
  report.finished = outstanding.load() == 0;
  if (report.finished) report.stopped_by.clear();
  for (const auto& shard : shards) {
    for (std::size_t status = 0; status < shard->counters.statuses.size(); ++status) {
      if (const std::uint64_t count = shard->counters.statuses[status].load()) {
        report.statuses[static_cast<int>(status)] += count;
      }
    }
  }
  {
    std::lock_guard lock(failures_mutex_);
    report.failures = failures_;
    for (const auto& [site, lost] : lost_hosts_) report.lost_hosts.push_back(lost);
    report.lost_host_count = lost_host_count_;
  }
  const bool redirected =
      std::ranges::any_of(report.statuses, [](const auto& entry) { return is_redirect(entry.first); });
  if (redirected) {
    if (auto marked = mark_redirect_loops(); !marked) return std::unexpected(std::move(marked.error()));
  }
  if (auto listed = list_broken(report); !listed) return std::unexpected(std::move(listed.error()));
  return report;
}

// That redirects lead round in a circle shows only when all of them are known.
Result<void> Crawler::Shared::mark_redirect_loops() {
  RedirectLoops loops;
  auto scanned = store.scan_redirects([&](const UrlRecord& record) {
    if (record.state == UrlState::done) loops.add(record.url_id, record.url, record.redirect_to);
    return true;
  });
  if (!scanned) return scanned;
  UrlBatch batch;
  for (const std::int64_t url_id : loops.find()) {
    const auto record = store.get(url_id);
    if (!record) return std::unexpected(record.error());
    if (!*record || is_redirect_to_nowhere(**record)) continue;
    UrlOutcome outcome;
    outcome.url_id = url_id;
    outcome.mtime = (*record)->mtime;
    outcome.due = (*record)->due;
    outcome.status_code = (*record)->status_code;
    outcome.attempts = (*record)->attempts;
    outcome.not_modified = true;
    outcome.redirect_to = (*record)->redirect_to;
    outcome.error = "redirects in a circle";
    batch.outcomes.push_back(std::move(outcome));
  }
  if (batch.outcomes.empty()) return {};
  store.submit(std::move(batch));
  return store.flush();
}

Result<void> Crawler::Shared::list_broken(CrawlReport& report) {
  std::vector<std::int64_t> referrers;
  auto scanned = store.scan_broken([&](const UrlRecord& record) {
    ++report.broken_count;
    if (report.broken.size() < CrawlReport::kMostBroken) {
      report.broken.push_back({record.url, record.status_code, record.error, {}});
      referrers.push_back(record.referrer);
    }
    return true;
  });
  if (!scanned) return scanned;
  for (std::size_t i = 0; i < referrers.size(); ++i) {
    auto page = page_with_link(report.broken[i].url, referrers[i]);
    if (!page) return std::unexpected(std::move(page.error()));
    report.broken[i].referrer = std::move(*page);
  }
  return {};
}

// Back along the redirects that led to `url`, to the page that links to the first of them; empty: it was a seed.
Result<std::string> Crawler::Shared::page_with_link(std::string url, std::int64_t referrer) {
  for (std::uint32_t hops = 0; referrer != 0 && hops <= options.max_redirects + 1; ++hops) {
    auto record = store.get(referrer);
    if (!record) return std::unexpected(std::move(record.error()));
    if (!*record) return std::string{};
    if ((*record)->redirect_to != url) return std::move((*record)->url);
    url = std::move((*record)->url);
    referrer = (*record)->referrer;
  }
  return std::string{};
}

}  // namespace argiope
