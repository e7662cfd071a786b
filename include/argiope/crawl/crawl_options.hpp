// The options of a crawl. The command line fills them in; so may a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/crawl/detail/host_settings.hpp"
#include "argiope/crawl/page.hpp"
#include "argiope/render/page_renderer.hpp"
#include "argiope/web/detail/credentials.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/http_session.hpp"
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
  random,    // in an order that `order_seed` decides, the same in each run
};

// URLs that an earlier run has settled and this one is to fetch again, whole, whatever their age; if in scope.
enum class Requeue : std::uint8_t {
  none,
  failed,    // given up without a usable answer (they are due again in any case)
  excluded,  // by robots.txt, or by a limit that is still the same
  broken,    // answered with a status from 400 on, or failed
  all,
};

// Nobody fetches a site at one page a day; who asks for that holds up a run, or does not mean it.
inline constexpr Duration kMostCrawlDelay = std::chrono::minutes{5};

// A host is asked for as long as it rests.
inline constexpr double kAutothrottleTarget = 0.5;

// The duplicates that a crawl does not follow, because it has them in another place. Nothing, unless it is asked for:
// whoever crawls a site finds every page of it. Nothing of this is done to seeds and to other hosts than the crawl's;
// redirects are followed as they are, but not into a trap.
struct DuplicateOptions {
  // The links of a page with the same bytes as another of its host, which was fetched before; and those of one with
  // nearly the same words: whose simhash differs from another's in at most `near_distance` bits, up to 7.
  bool skip_exact = false;
  bool skip_near = false;
  std::uint32_t near_distance = 3;
  // Nothing, but keep simhashes, for reports. Needs `keep_facts`.
  bool keep_simhashes = false;
  // The links of a page that names another URL in scope as its canonical one, which is fetched in its place.
  bool canonical = false;
  // Parameters that are taken out of links before they are followed: names, beginnings ("utm_*"), and the lists
  // "tracking" and "sessions" (docs/crawl-duplicates.md).
  std::vector<std::string> strip_parameters;
  // Take out those, too, without which a site's pages were seen to say the same (docs/crawl-duplicates.md).
  bool learn_parameters = false;
  // Parameters that stay, whatever is listed or learned.
  std::vector<std::string> keep_parameters;
  // URLs of the same shape as so many in a row whose pages were copies, exact or near ones; 0: nothing.
  std::uint32_t trap_pages = 0;

  bool is_used() const noexcept {
    return skip_exact || skip_near || canonical || !strip_parameters.empty() || learn_parameters || trap_pages > 0;
  }
  bool compares_words() const noexcept { return skip_near || trap_pages > 0; }
};

// Parts that pages show (pictures, styles, scripts, fonts, and what styles refer to): whether they are fetched, too.
enum class Requisites : std::uint8_t {
  none,
  same_host,  // what is on the crawl's hosts
  all,        // wherever it is
};

// Between which a page that is asked again and again is due.
struct RevisitBounds {
  Duration least{};  // more than 0
  Duration most{};
  friend bool operator==(const RevisitBounds&, const RevisitBounds&) = default;
};

// The limits of one page's requests while it is rendered.
struct RenderLimits {
  std::size_t requests = 100;
  std::uint64_t bytes = 50 * 1024 * 1024;  // decoded, of all answers together
};

struct CrawlOptions {
  std::vector<Url> seeds;

  // --- what belongs to the crawl
  // Domains or hosts that are in scope beside the seeds' own hosts; a domain includes its subdomains. Whatever the
  // scheme and the port: http://h:8080/ is in scope where https://h/ is. With a port ("example.org:8080") on that port
  // alone.
  std::vector<std::string> whitelist;
  // The domains that the seeds' owners have registered are in scope, with their subdomains: of www.example.co.uk
  // example.co.uk.
  bool registrable_domains = false;
  // Only what is on one of these ports is in scope; empty: all ports.
  std::vector<std::uint16_t> ports;

  // --- which of the URLs in scope are followed; seeds, and what they redirect to, always are
  // Patterns: globs and regular expressions behind "re:" (docs/crawl.md). Nothing that fits one of `exclude`; and only
  // what fits one of `include`, unless there are none.
  std::vector<std::string> include, exclude;
  // Only paths that begin with one of these; empty: all.
  std::vector<std::string> path_prefixes;
  // On hosts of seeds only what is in a seed's folder or below: up to the last slash of its path.
  bool no_parent = false;
  // By how the path's last segment ends, in lower case and without the dot ("pdf", "tar.gz"). With `accept_extensions`
  // only these, and names without an extension; nothing of `reject_extensions`.
  std::vector<std::string> accept_extensions, reject_extensions;
  // Media types, in lower case, "application/pdf" or "text/*": of others no body is read, but of HTML pages, for their
  // links.
  // Empty: all. A URL that ends like another type is asked by HEAD first.
  std::vector<std::string> accept_types;

  // --- sitemaps and feeds: what they list is followed as links are, at the depth of the file. Of known pages those are
  // asked again that have changed by its word since they were fetched.
  // Read the sitemaps that robots.txt of each host in scope names, or else those at the usual places. Hosts of seeds
  // are asked in each run.
  bool sitemaps = false;
  // Read the feeds that pages announce (`link rel=alternate`).
  bool feeds = false;
  // Read these, wherever they are.
  std::vector<Url> sitemap_urls;

  // --- how far
  // Links followed from a seed; nullopt: no limit. With a limit the store also keeps where each page leads, so that a
  // shorter way found late is followed as far as one found early.
  std::optional<std::uint32_t> max_depth;
  // Requests for pages in this run, redirects and those that are asked again included; 0: no limit.
  std::uint64_t max_pages = 0;
  // Bytes received in this run, after which it stops (resumably), and whatever is being received ends; 0: no limit.
  std::uint64_t quota = 0;
  // HEAD off-scope links, to learn whether they are broken.
  bool check_links = false;
  // HEAD what pages are shown with, too: pictures, scripts, styles, and what styles refer to, on any host. Of a style
  // sheet of the crawl's hosts the body is read.
  bool check_assets = false;
  // GET what pages are shown with, for the sinks: counted apart from pages, whatever max_pages and the patterns of
  // includes say, and not followed. Patterns of excludes, robots.txt and guards count for it, too.
  Requisites requisites = Requisites::none;
  // Note what fragments may name on the pages that are fetched; and on off-scope pages to which links with a fragment
  // lead, which are fetched for that. Both need `keep_links`.
  bool check_fragments = false;
  bool check_foreign_fragments = false;
  // A run after one that has finished asks whether what that one has fetched has changed, and checks again what it has
  // checked, unless `age` or `adaptive` says when. A run that goes on after one that has not finished asks what those
  // before have not asked.
  bool ask_again = false;
  // A checked link is checked again when that was longer ago than this, and when it is broken; nullopt: as `age` says.
  std::optional<Duration> check_age;
  // Answers that are no broken links. Empty: all below 400. A redirect is judged by where it leads.
  std::vector<StatusRange> accept_status;
  Requeue requeue = Requeue::none;
  CrawlOrder order = CrawlOrder::bfs;
  std::uint64_t order_seed = 0;

  // --- guards against traps; what they leave out is stored with its reason, and taken up by a run with larger ones
  std::size_t max_url_length = 8000;
  std::uint32_t max_segment_repeats = 10;
  std::uint64_t max_pages_per_host = 1'000'000;  // URLs queued in one run
  std::size_t max_links_per_page = 1'000'000;

  DuplicateOptions duplicates;

  // --- pace
  std::size_t concurrency = 256;  // requests under way in all
  // Requests under way at one host; nullopt: 1, or 8 where the host is a loopback address.
  std::optional<std::uint32_t> per_host;
  std::optional<Duration> delay;  // between the end of one request to a host and the start of the next
  // Requests a second to one host; nullopt: 5, or no limit where the host is a loopback address or `delay` is given.
  std::optional<double> rate;
  // At hosts that look public the pace follows what answers take, within `rate` and 60 s between two requests: on
  // average `autothrottle_target` requests are under way, less than 1: the host rests the remaining time. Answers that
  // are errors never make it faster. nullopt: where neither `rate` nor `delay` are set.
  std::optional<bool> autothrottle;
  double autothrottle_target =
      kAutothrottleTarget;        // more than 0; above 1 `per_host` is its next whole number, unless it is set
  std::uint32_t per_address = 8;  // requests under way at one public IP address, whatever its host names
  bool robots = true;
  // The Crawl-delay of robots.txt, and what earlier runs have left of rests. Off where no server is asked.
  bool heed_crawl_delay = true;
  // A longer Crawl-delay counts as one of this length.
  Duration max_crawl_delay = kMostCrawlDelay;
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

  // Settings that are otherwise at some hosts.
  std::vector<HostSettings> hosts;

  // --- who servers take it for
  // Cookies that servers set are sent back to them, and saved with the crawl.
  bool cookies = true;
  std::vector<Cookie> given_cookies;         // there from the start, before those that were saved
  std::vector<HttpCredentials> credentials;  // for servers that ask for a name and password
  // Taken anew by each run, before anything else: Crawler::log_in(). Needs `cookies`. With it, with `given_cookies`,
  // and in later runs that go on with those cookies, links that read as if they logged out are left out
  // (Exclusion::logout), unless a pattern of `include` names them.
  std::optional<LoginStep> login;

  // Called with each answer, whatever its status, before it is written down that it came; not with those that are tried
  // again, that have not changed (304), that are of a type that is not accepted, or that only told whether a link is
  // broken. While it runs, its request still counts as under way. When the crawl is cancelled or killed meanwhile, the
  // page comes again in the next run: at least once.
  // Its exceptions are logged, counted, and kept with the URL; the page counts as done.
  // Threads: that of the shard that has fetched the page; with several, from several at a time.
  PageHandler on_page;
  // See CrawlSink.
  std::vector<std::shared_ptr<CrawlSink>> sinks;

  // --- pages as JavaScript makes them
  // Renders the HTML pages of the crawl that were answered with 200: what it makes of them takes their body's place for
  // links, on_page, the sinks (Exchange::rendered) and what is stored of the page. Opened before the first request and
  // closed after the last, on the crawl's loop; a crawl with it has one shard. Null: pages are as they were fetched.
  // A page's requests are sent as the crawl's own are: by robots.txt, at the pace of its host, past the same guard.
  // Requests to its own site go with the crawl's cookies, those to others without.
  std::shared_ptr<PageRenderer> renderer;
  // Patterns as `include`'s: only such pages are rendered; empty: all.
  std::vector<std::string> render_only;
  RenderLimits render_limits;

  // --- what the store keeps beside what the crawl goes by
  // Each link and asset of each page, with its text and line.
  bool keep_links = false;
  // How long each answer took, and what the head of each page says.
  bool keep_facts = false;

  // --- the run
  // Fetch again what was fetched longer ago than this; nullopt: never again.
  std::optional<Duration> age;
  // Each page has an interval of its own instead: `age`, or the middle of these, at first; shorter by half after a
  // visit that found it changed, longer by half after one that did not. Kept in the store.
  std::optional<RevisitBounds> adaptive;
  // Fetch again within the run, too, and go on until stop(): what was fetched is due after its age or interval. A host
  // that was given up is asked again after an hour, or the age where that is shorter. A URL to check is asked once.
  // Needs `age` or `adaptive`.
  bool forever = false;
  std::optional<Duration> max_time;
  // Stop (resumably) when nothing was fetched for so long though work is waiting; nullopt: wait.
  std::optional<Duration> max_idle;
  // When nothing is left to do, wait so long for URLs that other programs put into the database; nullopt: end.
  std::optional<Duration> linger;
  // Queued URLs held in memory; the others wait in the store.
  std::size_t queue_size = 100'000;
  // The longest the crawler sleeps between two looks at its queue, whatever its deadlines say; and how often it looks
  // for URLs that other programs have put into the database.
  Duration schedule_interval = std::chrono::seconds{1};
  // How long running requests may go on after stop().
  Duration drain_limit = std::chrono::seconds{10};
};

}  // namespace argiope
