// LocalCrawl, crawl(): a crawl with this machine's sockets, clock and chance; what `argiope crawl` is, for programs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "argiope/async/coro.hpp"
#include "argiope/base/error.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/crawl/crawl_report.hpp"
#include "argiope/crawl/crawler.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "argiope/web/detail/http_versions.hpp"
#include "argiope/web/detail/proxy.hpp"
#include "argiope/web/detail/tls.hpp"

namespace argiope {

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
