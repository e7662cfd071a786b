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
#include <unordered_map>
#include <vector>

#include "argiope/crawl/crawler.hpp"
#include "base/internal/fingerprint.hpp"
#include "crawl/address_gate.hpp"
#include "crawl/check_book.hpp"
#include "crawl/crawl_session.hpp"
#include "crawl/frontier.hpp"
#include "crawl/url_decision.hpp"

namespace argiope {

// One shard's counters: written by its thread alone, read by any.
struct ShardCounters {
  using Counter = std::atomic<std::uint64_t>;
  Counter pages{0};
  Counter fetched{0};
  Counter bytes{0};
  Counter errors{0};
  Counter retries{0};
  Counter handler_errors{0};
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

  // URLs of the store's that decide() has found worth fetching.
  UrlTask task_of(const UrlRecord& record) const;

  // Of a URL. Seeded, so that nobody can make a URL that passes for another's.
  std::uint64_t fingerprint_of(std::string_view href) const noexcept { return fingerprint(href, seed); }
  // New for whoever asks first, who stores the URL under that id. What is known has its id with a depth limit alone.
  struct Claim {
    bool is_new = false;
    std::int64_t id = 0;
  };
  Claim claim(std::uint64_t url_fingerprint);
  // Of what is known, where `keeps_links` alone; else 0.
  std::int64_t id_of(std::uint64_t url_fingerprint) const;
  std::size_t shard_of(const Url& url) const noexcept;

  // Where a URL of http or https stands now; see Scope.
  Exclusion place_of(std::string_view href, std::uint32_t depth) const;
  // `from` redirects to `target`: if it is a seed, so is the target.
  void follow_seed(std::string_view from, const Url& target);
  // A URL stays, or is, out of the crawl, or is done in part.
  void count_left_out(UrlReason reason, std::int64_t by = 1) noexcept {
    left_out_[static_cast<std::size_t>(reason)].fetch_add(by, std::memory_order_relaxed);
  }

  // False: a sink has failed, and the crawl ends.
  bool show(const Exchange& exchange);
  // Whether sinks have more to work off than there should be.
  bool sinks_are_behind() const;

  // Reserves one of the responses max_pages allows; false: none is left.
  bool take_page() noexcept;
  // So many bytes have come: with a quota the crawl stops when it is used up.
  void take_bytes(std::uint64_t count);
  // For a response that does not count because its URL is tried again.
  void give_page_back() noexcept;

  // `count` URLs are now queued or running / no longer are; at zero the crawl has finished.
  void begin(std::uint64_t count) noexcept { outstanding.fetch_add(count, std::memory_order_relaxed); }
  void end(std::uint64_t count);
  // Whether the crawl has come to its end. With nothing left to do, and if the scope has grown or depths may have shrunk
  // meanwhile, shard 0 looks in the store for what may be fetched now, and hands it out.
  bool is_complete(std::size_t shard);
  // The id of `target` where redirects that the store knows lead from it to the URL `id`; 0: they do not.
  std::int64_t redirects_from(std::string_view target, std::int64_t id);
  // A page was settled: what is known has changed.
  void note_settled() noexcept { settled_.store(true, std::memory_order_relaxed); }

  void stop(std::string reason, bool at_once);
  void wake_shards();
  bool stopping() const noexcept { return stop_requested_.load(std::memory_order_relaxed); }
  bool stopping_at_once() const noexcept { return stop_at_once_.load(std::memory_order_relaxed); }

  CrawlStats stats() const;
  Result<CrawlReport> report();
  // Nothing more is asked of the host in this run; and a URL of it was passed over.
  void note_lost(const std::string& site, const Error& cause);
  void count_not_asked(const std::string& site);
  void count_failure(std::string_view name);

  const CrawlOptions options;
  // Whether it is stored where each page leads: what counts depths again needs it, and what names every page with a link.
  const bool keeps_links = options.max_depth || options.check_links || options.check_assets || options.keep_links;
  // Whether anything is kept of answers beside that.
  const bool keeps_notes = options.keep_links || options.keep_facts || options.check_assets;
  const bool wants_wire;  // whether a sink does
  CheckBook checks;
  UrlStore& store;
  const std::uint64_t seed;
  Scope scope;
  AddressGate addresses;
  CrawlSession session;
  std::vector<std::unique_ptr<Shard>> shards;
  std::atomic<std::uint64_t> outstanding{0};
  std::atomic<std::uint64_t> pages_left;
  std::atomic<std::uint64_t> bytes_taken{0};  // with a quota alone

 private:
  UrlStore::Fields fields_to_decide() const noexcept;
  Result<void> load();
  std::size_t load(const UrlRecord& record, UrlBatch& batch);
  std::size_t resume(const UrlRecord& record);
  void note_checked(const UrlRecord& record, UrlWork work);
  void add_seeds(WallTime now);
  Result<void> mark_redirect_loops();
  void follow_stored_seed(const UrlRecord& record);
  std::size_t owner_of(const UrlRecord& record) const;
  void count_left(const UrlRecord& record, std::int64_t by);
  RunView view(Stage stage) const noexcept { return {options, refetch_before_, stage, recheck_before_}; }
  UrlWork work_on(const UrlRecord& record, Stage stage) const;
  // Counts depths again by the links that are stored.
  Result<void> shorten_depths();
  bool may_take_up_more() const noexcept;
  // What waits or is excluded and may be fetched now goes to its shard; how many.
  Result<std::size_t> take_up_more();
  Result<void> finish_sinks();
  Result<void> list_broken(CrawlReport& report);

  WallTime opened_at_{};
  std::optional<WallTime> refetch_before_;  // done URLs last fetched before this are fetched again
  std::optional<WallTime> recheck_before_;  // what was only checked before this is checked again
  mutable std::shared_mutex scope_mutex_;
  mutable std::mutex seen_mutex_;
  FingerprintSet seen_;
  std::unordered_map<std::uint64_t, std::int64_t> ids_;  // by fingerprint; where `keeps_links` alone
  std::atomic<std::int64_t> next_id_{1};
  std::array<std::atomic<std::int64_t>, kUrlReasons> left_out_{};
  std::atomic<std::int64_t> waiting_{0};  // queued, and out of this run's scope
  std::atomic<std::uint64_t> taken_up_{0};
  // What opening left because of its place alone and going_on would leave in any case, ascending: if its place changes, it
  // is as if it had been there at the opening. Of shard 0.
  std::vector<std::int64_t> passed_over_;
  bool some_too_deep_ = false;  // of what earlier runs have left out, for whatever reason
  std::atomic<bool> scope_grew_{false};
  std::atomic<bool> settled_{false};
  std::atomic<bool> complete_{false};
  std::atomic<bool> stop_requested_{false};
  std::atomic<bool> stop_at_once_{false};
  mutable std::mutex stop_mutex_;
  std::string stop_reason_;
  mutable std::mutex failures_mutex_;
  std::map<std::string, std::uint64_t> failures_;
  std::map<std::string, LostHost> lost_hosts_;  // the first of them
  std::uint64_t lost_host_count_ = 0;
  std::optional<Error> sink_failure_;  // the first
};

}  // namespace argiope
