// What a crawl is asked to do. The command line fills it in; so may a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/crawl/crawl_sink.hpp"
#include "argiope/crawl/page.hpp"
#include "argiope/web/cookies.hpp"
#include "argiope/web/credentials.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/login.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

// Statuses from `first` to `last`.
struct StatusRange {
  int first = 0;
  int last = 0;
  friend bool operator==(const StatusRange&, const StatusRange&) = default;
};

enum class CrawlOrder : std::uint8_t {
  bfs,       // nearest to a seed first
  dfs,       // deepest first
  priority,  // fewest path segments and query parameters first: front pages before leaves
};

// What an earlier run has settled and this one is to fetch again, whole, whatever its age; as far as it is in scope.
enum class Requeue : std::uint8_t {
  none,
  failed,    // given up without a usable answer (they are due again in any case)
  excluded,  // by robots.txt, or by a limit that is still the same
  broken,    // answered with a status from 400 on, or failed
  all,
};

struct CrawlOptions {
  std::vector<Url> seeds;

  // --- what belongs to the crawl
  // Domains or hosts that are in scope beside the seeds' own hosts; a domain includes its subdomains. Whatever the scheme
  // and the port: http://h:8080/ is in scope where https://h/ is. With a port ("example.org:8080") on that port alone.
  std::vector<std::string> whitelist;
  // The domains that the seeds' owners have registered are in scope, with their subdomains: of www.example.co.uk
  // example.co.uk.
  bool registrable_domains = false;
  // Only what is on one of these ports is in scope; empty: all ports.
  std::vector<std::uint16_t> ports;

  // --- which of the URLs in scope are followed; seeds, and what they redirect to, always are
  // Patterns: globs and regular expressions behind "re:" (docs/crawl.md). Nothing that fits one of `exclude`; and only what
  // fits one of `include`, unless there are none.
  std::vector<std::string> include, exclude;
  // Only paths that begin with one of these; empty: all.
  std::vector<std::string> path_prefixes;
  // On hosts of seeds only what is in a seed's folder or below: up to the last slash of its path.
  bool no_parent = false;
  // By how the path's last segment ends, in lower case and without the dot ("pdf", "tar.gz"). With `accept_extensions` only
  // these, and names without an extension; nothing of `reject_extensions`.
  std::vector<std::string> accept_extensions, reject_extensions;
  // Media types, in lower case, "application/pdf" or "text/*": of others no body is read, but of HTML pages, for their links.
  // Empty: all. What ends like another type is asked by HEAD first.
  std::vector<std::string> accept_types;

  // --- how far
  // Links followed from a seed; nullopt: no limit. With a limit the store also keeps where each page leads, so that a
  // shorter way found late is followed as far as one found early.
  std::optional<std::uint32_t> max_depth;
  std::uint64_t max_pages = 0;  // responses fetched in this run; 0: no limit
  std::uint64_t quota = 0;      // bytes received in this run, after which it stops (resumably); 0: no limit
  // HEAD off-scope links, to learn whether they are broken.
  bool check_links = false;
  // HEAD what pages are shown with, too: pictures, scripts, styles, and what styles refer to, on any host. Of a style sheet of
  // the crawl's hosts the body is read.
  bool check_assets = false;
  // Note what fragments may name on the pages that are fetched; and on off-scope pages to which links with a fragment lead,
  // which are fetched for that. Both need `keep_links`.
  bool check_fragments = false;
  bool check_foreign_fragments = false;
  // What was only checked is checked again when that was longer ago than this, and when it is broken; nullopt: as `age` says.
  std::optional<Duration> check_age;
  // Answers that are no broken links. Empty: all below 400. A redirect is judged by where it leads.
  std::vector<StatusRange> accept_status;
  Requeue requeue = Requeue::none;
  CrawlOrder order = CrawlOrder::bfs;

  // --- guards against traps; what they leave out is stored with its reason, and taken up by a run with larger ones
  std::size_t max_url_length = 8000;
  std::uint32_t max_segment_repeats = 10;
  std::uint64_t max_pages_per_host = 1'000'000;  // URLs queued in one run
  std::size_t max_links_per_page = 1'000'000;

  // --- pace
  std::size_t concurrency = 256;  // requests under way in all
  // Requests under way at one host; nullopt: 1, or 8 where the host is a loopback address.
  std::optional<std::uint32_t> per_host;
  std::optional<Duration> delay;  // between the end of one request to a host and the start of the next
  // Requests a second to one host; nullopt: 5, or no limit where the host is a loopback address or `delay` is given.
  std::optional<double> rate;
  std::uint32_t per_address = 8;  // requests under way at one public IP address, whatever its host names
  bool robots = true;
  bool heed_crawl_delay = true;  // of robots.txt. Off where no server is asked
  std::string user_agent = "argiope";
  // The name robots.txt groups are matched with.
  std::string product_token = "argiope";

  // --- each request
  std::size_t size_limit = 10 * 1024 * 1024;  // decoded bytes of a page
  Duration timeout = std::chrono::seconds{30};
  Duration connect_timeout = std::chrono::seconds{10};  // of one address; for who makes the transport
  std::uint32_t retries = 2;                            // after the first attempt
  std::uint32_t max_redirects = 10;
  std::vector<HeaderFor> headers_for;  // fields for some hosts only

  // --- who servers take it for
  // Cookies that servers set are sent back to them, and saved with the crawl.
  bool cookies = true;
  std::vector<Cookie> given_cookies;         // there from the start, before those that were saved
  std::vector<HttpCredentials> credentials;  // for servers that ask for a name and password
  // Taken anew by each run, before anything else: Crawler::log_in(). Needs `cookies`.
  std::optional<LoginStep> login;

  // Called with each answer, whatever its status, before it is written down that it came; not with those that are tried
  // again, that have not changed (304), that are of a type that is not accepted, or that only told whether a link is broken.
  // While it runs, its request still counts as under way. When the crawl is cancelled or killed meanwhile, the page comes
  // again in the next run: at least once.
  // What it throws is logged, counted, and kept with the URL; the page counts as done.
  // Threads: that of the shard that has fetched the page; with several, from several at a time.
  PageHandler on_page;
  // See CrawlSink.
  std::vector<std::shared_ptr<CrawlSink>> sinks;

  // --- what the store keeps beside what the crawl goes by
  // Each link and asset of each page, with its text and line.
  bool keep_links = false;
  // How long each answer took, and what the head of each page says.
  bool keep_facts = false;

  // --- the run
  // Fetch again what was fetched longer ago than this; nullopt: never again.
  std::optional<Duration> age;
  std::optional<Duration> max_time;
  // Stop (resumably) when nothing was fetched for so long though work is waiting; nullopt: wait.
  std::optional<Duration> max_idle;
  // Queued URLs held in memory; the others wait in the store.
  std::size_t queue_size = 100'000;
  // The longest the crawler sleeps between two looks at its queue, whatever its deadlines say.
  Duration schedule_interval = std::chrono::seconds{1};
  // How long running requests may go on after stop().
  Duration drain_limit = std::chrono::seconds{10};
};

}  // namespace argiope
