// Crawler: fetches what its seeds lead to, politely, until nothing is left; what it knows is in a UrlStore, so that it
// goes on where it was stopped.
//
// A crawl is spread over shards, one event loop and thread each; a host belongs to one shard, so its politeness needs
// no locks. Sockets, clocks and the store are passed in: the same crawler runs over a simulated web in virtual time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/crawl/crawl_report.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "argiope/web/detail/dns.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

// One crawl, from open() to report().
//
// A sink of CrawlOptions::sinks relies on UrlStoreOptions::before_commit, which whoever opens the store sets to
// keep_all().
//
// Threads: open() and report() from one thread while no shard works; work(i) on shard i's thread; stop(), stats()
//          and cookies() from any thread.
class Crawler {
 public:
  // A store calls this before it commits what a crawl with these sinks has found: UrlStoreOptions::before_commit.
  static std::function<Result<std::vector<UrlNote>>()> keep_all(const std::vector<std::shared_ptr<CrawlSink>>& sinks);

  // `store` outlives the crawler. `seed` is all the chance there is: jitter of retries, and fingerprints.
  // Throws std::invalid_argument when there are no seeds or no shards, when a pattern is none, for a login without
  // cookies, and when it shall go on forever and nothing says when pages are due.
  Crawler(CrawlOptions options, UrlStore& store, std::uint64_t seed, std::size_t shards = 1);
  ~Crawler();

  // Reads the store: what is queued there, or older than `age`, is queued again; the seeds are added if new.
  // Errors: those of the store. Call once, before any work().
  Result<void> open(WallTime now);

  // Takes the login step of the options over `transport`, on the running loop; without one, does nothing. Before any
  // work().
  // Errors: those of argiope::log_in(). Suspends: for as long as that takes.
  Coro<Result<void>> log_in(HttpTransport& transport);

  // Crawls shard `index`'s part on the running loop, until the whole crawl has ended.
  // `resolver` may be null: then nothing is limited by IP address.
  // Suspends: for the length of the crawl. Cancel: stops at once, as stop(…, true).
  Coro<void> work(std::size_t index, HttpTransport& transport, Resolver* resolver);

  // Fetches nothing new; what runs may end within drain_limit, or not at all if `at_once`. The first reason counts.
  void stop(std::string reason, bool at_once = false);

  CrawlStats stats() const;
  // All that have not expired; none where the options want none.
  std::vector<Cookie> cookies(WallTime now) const;

  // Waits until everything is committed, ends the sinks, and sums up. Errors: the store's or a sink's, when it failed.
  Result<CrawlReport> report();

 private:
  class Shared;
  class Shard;
  std::unique_ptr<Shared> shared_;
};

}  // namespace argiope
