// LocalCrawl: a crawl with this machine's sockets, clock and chance; and the Crawler below it, which is given all of
// these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/crawl/detail/crawl_report.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "argiope/web/detail/dns.hpp"
#include "argiope/web/detail/http_versions.hpp"
#include "argiope/web/detail/proxy.hpp"
#include "argiope/web/detail/tls.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

// Crawler: fetches what its seeds lead to, politely, until nothing is left; what it knows is in a UrlStore, so that it
// goes on where it was stopped.
//
// A crawl is spread over shards, one event loop and thread each; a host belongs to one shard, so its politeness needs
// no locks. Sockets, clocks and the store are passed in: the same crawler runs over a simulated web in virtual time.

// One crawl, from open() to report().
//
// A sink of CrawlOptions::sinks relies on UrlStoreOptions::before_commit, which the opener of the store sets to
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

// LocalCrawl, crawl(): a crawl with this machine's sockets, clock and chance; what `argiope crawl` is, for programs.

// The means that a crawl runs on.
struct CrawlSetup {
  // A file in which what is known of URLs is kept, so that the next run goes on from there; made where it is not there.
  // ":memory:" forgets it with the crawl.
  std::string database = ":memory:";
  SyncMode sync = SyncMode::full;
  // Each crawls its part of the hosts.
  std::size_t threads = 1;
  // Connect to private and loopback addresses; without, only where a seed names one.
  bool allow_private = false;
  std::string private_advice;  // said with each refusal of such an address; see AddressGuard
  // Certificates that are trusted beside the system's, in PEM; empty: none.
  std::string ca_file;
  // Whom servers are asked by. The environment is not read: see ProxySettings::from_environment().
  ProxySettings proxies;
  // Bytes a second that may be received, over all connections; 0: no limit.
  std::uint64_t rate_limit = 0;
  // By which versions of HTTP https servers are asked.
  HttpVersions http_versions = HttpVersions::best;
  // Shown to the seeds' servers alone, if they ask for one.
  ClientCertificate client_certificate;
  // Makes what answers one thread's requests in place of the net: WarcReplay::transport(), for one. Null: sockets.
  std::function<std::unique_ptr<HttpTransport>()> transport;
};

// Threads: open(), run() and the destructor from one; crawler().stop() and stats() from any.
class LocalCrawl {
 public:
  // Opens the database, and reads what is left to do.
  // Errors: those of check(client_certificate), open_url_store and Crawler::open. Throws as Crawler's constructor.
  static Result<std::unique_ptr<LocalCrawl>> open(CrawlOptions options, CrawlSetup setup = {});
  ~LocalCrawl();

  Crawler& crawler() noexcept;
  UrlStore& store() noexcept;

  // Takes the login step of the options now, which run() would do first. Blocks. Errors: those of Crawler::log_in().
  Result<void> log_in();

  // Crawls until nothing is left, a limit is met (max_time among them), or crawler().stop(): the first part on the
  // caller's thread, the others on threads of their own. `beside` begins before it on the first one's loop, and is
  // cancelled at the end. Blocks. Call once, and not within a running loop.
  // Errors: the store's, when it failed; what was committed stays. Throws what `beside` throws, after the crawl has
  //         been stopped for it, and std::system_error when the system refuses a thread.
  Result<CrawlReport> run(Coro<void> beside = {});

 private:
  struct State;
  explicit LocalCrawl(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The whole of it: opens, crawls and closes.
//
//   CrawlOptions options{.seeds = {*Url::parse("https://example.org/")}};
//   options.on_page = [](const Page& page) { std::printf("%d %s\n", page.status(),
//   std::string(page.url.href()).c_str()); }; Result<CrawlReport> report = crawl(std::move(options));
//
// Blocks, and errors: as LocalCrawl::open() and run(). Ctrl-C has its usual effect; with a database the next run goes
// on.
Result<CrawlReport> crawl(CrawlOptions options, CrawlSetup setup = {});

}  // namespace argiope
