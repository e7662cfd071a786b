// The state that the shards of one crawl share: options, scope, the set of URLs seen, ids, counters and the ending.
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

#include "argiope/crawl/local_crawl.hpp"
#include "base/internal/fingerprint.hpp"
#include "crawl/books/check_book.hpp"
#include "crawl/books/crawl_failures.hpp"
#include "crawl/books/demand_book.hpp"
#include "crawl/books/depth_book.hpp"
#include "crawl/books/id_set.hpp"
#include "crawl/books/requisite_book.hpp"
#include "crawl/books/seen_urls.hpp"
#include "crawl/books/sitemap_book.hpp"
#include "crawl/duplicates/duplicate_book.hpp"
#include "crawl/hosts/internal/address_gate.hpp"
#include "crawl/run/crawl_ending.hpp"
#include "crawl/run/crawl_session.hpp"
#include "crawl/run/crawl_sinks.hpp"
#include "crawl/run/frontier.hpp"
#include "crawl/scope/revisit_plan.hpp"
#include "crawl/scope/url_decision.hpp"

namespace argiope {

// One shard's counters: written by its thread alone, read by any.
struct ShardCounters {
  using Counter = std::atomic<std::uint64_t>;
  Counter pages{0};
  Counter fetched{0};
  Counter requisites{0};
  Counter bytes{0};
  Counter errors{0};
  Counter retries{0};
  Counter handler_errors{0};
  Counter not_asked{0};
  Counter rendered{0};
  Counter render_errors{0};
  Counter parts{0};
  Counter in_flight{0};
  Counter in_memory{0};
  Counter hosts{0};
  Counter hosts_waiting{0};
  std::atomic<TimePoint::rep> next_due{kNever.time_since_epoch().count()};
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

  // URLs of the store's that decide() has found worth fetching. `url`: that of the record; an empty one where it has
  // none.
  UrlTask task_of(const UrlRecord& record, Url url) const;

  // Of a URL. Seeded, so that nobody can make a URL that passes for another's.
  std::uint64_t fingerprint_of(std::string_view href) const noexcept { return fingerprint(href, seed); }
  std::size_t shard_of(const Url& url) const noexcept;

  // Where a URL of http or https stands now; see Scope.
  Exclusion place_of(std::string_view href, std::uint32_t depth) const;
  // As far from the seeds as it is known to be: those of this run may have been found far away by an earlier one.
  std::uint32_t depth_of(const UrlRecord& record) const { return scope.is_seed(record.url) ? 0 : record.depth; }
  bool is_in_scope(const Url& url) const;
  // The outcome and the task by which a record of the store is fetched again while the crawl runs.
  struct Anew {
    UrlOutcome outcome;
    std::optional<UrlTask> task;  // nullopt: it waits for a run that has it in its scope
  };
  // nullopt: it is under way, or due again by itself, or may not be asked for. All submitted of it must be visible.
  std::optional<Anew> begin_anew(const UrlRecord& record);
  // Whether a record of an earlier run, or of this one, waits or is being dealt with.
  bool is_under_way(const UrlRecord& record) const;
  // `from` redirects to `target`: if it is a seed, so is the target.
  void follow_seed(std::string_view from, const Url& target);
  // A URL stays, or is, out of the crawl, or is done in part.
  void count_left_out(UrlReason reason, std::int64_t by = 1) noexcept {
    left_out_[static_cast<std::size_t>(reason)].fetch_add(by, std::memory_order_relaxed);
  }

  // False: a sink has failed, and the crawl ends.
  bool show(const Exchange& exchange);
  // The crawl ends, because something that it needs has failed; the first counts.
  void fail(Error why);

  // Whether the crawl has come to its end. With nothing left to do, and if the scope has grown or depths may have
  // shrunk meanwhile, shard 0 looks in the store for what may be fetched now, and hands it out. `may_end`: false while
  // more may come.
  bool is_complete(std::size_t shard, bool may_end = true);
  // In a crawl that goes on: with nothing left but what was fetched and waits, shard 0 looks from time to time in the
  // store for what may be fetched now.
  void look_for_more(std::size_t shard, TimePoint now);
  // A page was settled: what is known has changed.
  void note_settled() noexcept { settled_.store(true, std::memory_order_relaxed); }

  void wake_shards();

  CrawlStats stats() const;
  Result<CrawlReport> report();

  const CrawlOptions options;
  const bool limits_depth = argiope::limits_depth(options);  // that of any host
  const bool reads_sitemaps = options.sitemaps || options.feeds || !options.sitemap_urls.empty();
  // Whether it is stored where each page leads: what counts depths again needs it, what names every page with a link,
  // and what tells the pages that nothing but a sitemap lists.
  const bool keeps_links =
      limits_depth || options.check_links || options.check_assets || options.keep_links || reads_sitemaps;
  // Whether ids of URLs are found again by the URL.
  const bool keeps_ids = keeps_links || options.duplicates.canonical;
  // Whether anything is kept of answers beside that.
  const bool keeps_notes = options.keep_links || options.keep_facts || options.check_assets;
  const CrawlSinks sinks{options.sinks};
  const RevisitPlan plan{options};
  const bool plans_visits = options.forever || options.adaptive;
  std::atomic<std::uint64_t> rotating{0};  // of what is outstanding, what was fetched and will be again
  DemandBook demands;
  CheckBook checks;
  RequisiteBook requisites;
  DepthBook depth_book;                             // where no links are stored
  const std::unique_ptr<DuplicateBook> duplicates;  // null: nothing was asked for
  SitemapBook sitemaps;
  CrawlFailures failures;
  CrawlEnding ending{options, [this] { wake_shards(); }};
  UrlStore& store;
  const std::uint64_t seed;
  SeenUrls seen;
  Scope scope;
  AddressGate addresses;
  CrawlSession session;
  std::vector<std::unique_ptr<Shard>> shards;
  // Of what other programs have put in.
  struct Given {
    std::atomic<std::uint64_t> taken{0}, known{0}, left_out{0}, skipped{0};
  };
  Given given;
  HostRests host_rests;  // that earlier runs have left

 private:
  UrlStore::Fields fields_to_decide() const noexcept;
  Result<void> load();
  std::size_t load(const UrlRecord& record, UrlBatch& batch);
  std::size_t resume(const UrlRecord& record);
  void note_checked(const UrlRecord& record, UrlWork work);
  void note_content(const UrlRecord& record);
  Result<void> load_duplicates();
  void add_seeds(WallTime now);
  Result<void> mark_redirect_loops();
  void follow_stored_seed(const UrlRecord& record);
  std::size_t owner_of(const UrlRecord& record) const;
  void count_left(const UrlRecord& record, std::int64_t by);
  RunView view(Stage stage) const noexcept {
    return {options, refetch_before_, stage, recheck_before_, &policies_, opened_at_};
  }
  std::size_t let_rest(const UrlRecord& record, UrlBatch& batch);
  Result<void> wait_no_more(UrlBatch& batch);
  Result<void> begin_run(WallTime now);
  std::size_t resume_now(const UrlRecord& record, UrlBatch& batch);
  UrlWork work_on(const UrlRecord& record, Stage stage) const;
  UrlWork work_for_outputs(const UrlRecord& record, UrlWork work, Stage stage) const;
  bool is_lacking(const UrlRecord& record, UrlWork work) const;
  void note_requisite(const UrlRecord& record, UrlWork work);
  // Counts depths again by the links that are stored, or else by those of this run that the depth book has.
  Result<void> shorten_depths();
  Result<std::vector<std::uint32_t>> depths_by_links();
  bool may_take_up_more() const noexcept;
  // URLs that wait or are excluded and may be fetched now go to their shards; how many.
  Result<std::size_t> take_up_more();
  Result<void> finish_sinks() const;
  Result<void> list_broken(CrawlReport& report);

  WallTime opened_at_{};
  UrlRun run_;
  TimePoint next_look_{};
  std::optional<WallTime> refetch_before_;  // done URLs last fetched before this are fetched again
  std::optional<WallTime> recheck_before_;  // what was only checked before this is checked again
  mutable HostPolicies policies_{options};  // for decide()
  mutable std::shared_mutex scope_mutex_;
  std::array<std::atomic<std::int64_t>, kUrlReasons> left_out_{};
  std::atomic<std::int64_t> waiting_{0};  // queued, and out of this run's scope
  std::atomic<std::uint64_t> taken_up_{0};
  // URLs that opening left because of their place alone and going_on would leave in any case: if the place of one
  // changes, it is as if it had been there at the opening. Of shard 0.
  IdSet passed_over_;
  std::unordered_map<std::int64_t, std::uint64_t> simhashes_;  // of pages of earlier runs, while it opens
  std::vector<std::int64_t> put_off_;                          // to be tried again in years; while it opens
  std::uint64_t asked_for_outputs_ = 0;  // known pages, that are fetched for what the run is to produce
  std::uint64_t resting_ = 0;            // given up by earlier runs, and not asked yet: see rests()
  bool some_too_deep_ = false;           // of what earlier runs have left out, for whatever reason
  std::atomic<bool> scope_grew_{false};
  std::atomic<bool> settled_{false};
};

}  // namespace argiope
