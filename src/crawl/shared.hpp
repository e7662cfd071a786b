// What the shards of one crawl share: options, scope, the set of URLs seen, ids, counters and the ending.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "argiope/base/fingerprint.hpp"
#include "argiope/crawl/crawler.hpp"
#include "crawl/address_gate.hpp"
#include "crawl/frontier.hpp"

namespace argiope {

// One shard's counters: written by its thread alone, read by any.
struct ShardCounters {
  using Counter = std::atomic<std::uint64_t>;
  Counter pages{0};
  Counter fetched{0};
  Counter bytes{0};
  Counter errors{0};
  Counter retries{0};
  Counter not_asked{0};
  Counter in_flight{0};
  Counter in_memory{0};
  Counter hosts{0};
  Counter hosts_waiting{0};
  std::array<Counter, kExclusions> excluded{};
  std::array<Counter, kHttpOddities> odd{};
  std::array<Counter, 1000> statuses{};

  static void add(Counter& counter, std::uint64_t by = 1) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
};

class Crawler::Shared {
 public:
  Shared(CrawlOptions crawl_options, UrlStore& url_store, std::uint64_t random_seed, std::size_t shard_count);
  ~Shared();

  Result<void> open(WallTime now);

  // Whether this run is to fetch what the store has recorded so, and as what.
  bool wants_fetch(const UrlRecord& record) const noexcept;
  UrlTask task_of(const UrlRecord& record, const Url& url) const;

  // Of a URL. Seeded, so that nobody can make a URL that passes for another's.
  std::uint64_t fingerprint_of(std::string_view href) const noexcept { return fingerprint(href, seed); }
  // True for whoever asks first: the URL is new, and its to queue.
  bool claim(std::uint64_t url_fingerprint);
  std::int64_t new_url_id() noexcept { return next_id.fetch_add(1, std::memory_order_relaxed); }
  std::size_t shard_of(const Url& url) const noexcept;

  bool in_scope(const Url& url) const;
  void allow_host(std::string_view host);

  // Reserves one of the responses max_pages allows; false: none is left.
  bool take_page() noexcept;
  // For a response that does not count because its URL is tried again.
  void give_page_back() noexcept;

  // `count` URLs are now queued or running / no longer are; at zero the crawl has finished.
  void begin(std::uint64_t count) noexcept { outstanding.fetch_add(count, std::memory_order_relaxed); }
  void end(std::uint64_t count);

  void stop(std::string reason, bool at_once);
  void wake_shards();
  bool stopping() const noexcept { return stop_requested_.load(std::memory_order_relaxed); }
  bool stopping_at_once() const noexcept { return stop_at_once_.load(std::memory_order_relaxed); }

  CrawlStats stats() const;
  Result<CrawlReport> report();
  void count_failure(Errc code);
  // Nothing more is asked of the host in this run; and a URL of it was passed over.
  void note_lost(const std::string& site, const Error& cause);
  void count_not_asked(const std::string& site);

  const CrawlOptions options;
  UrlStore& store;
  const std::uint64_t seed;
  Scope scope;
  AddressGate addresses;
  std::vector<std::unique_ptr<Shard>> shards;
  std::atomic<std::int64_t> next_id{1};
  std::atomic<std::uint64_t> outstanding{0};
  std::atomic<std::uint64_t> pages_left;

 private:
  Result<void> load();
  std::size_t resume(const UrlRecord& record);
  void add_seeds(WallTime now);
  void remember_seed_redirect(const UrlRecord& record);
  Result<void> mark_redirect_loops();
  Result<void> list_broken(CrawlReport& report);
  Result<std::string> page_with_link(std::string url, std::int64_t referrer);

  WallTime opened_at_{};
  std::optional<WallTime> refetch_before_;  // done URLs last fetched before this are fetched again
  mutable std::shared_mutex scope_mutex_;
  mutable std::mutex seen_mutex_;
  FingerprintSet seen_;
  std::unordered_set<std::string> seed_redirects_;
  std::atomic<bool> stop_requested_{false};
  std::atomic<bool> stop_at_once_{false};
  mutable std::mutex stop_mutex_;
  std::string stop_reason_;
  mutable std::mutex failures_mutex_;
  std::map<std::string, std::uint64_t> failures_;
  std::map<std::string, LostHost> lost_hosts_;  // the first of them
  std::uint64_t lost_host_count_ = 0;
};

}  // namespace argiope
