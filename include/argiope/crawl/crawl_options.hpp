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
#include "argiope/web/http.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

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
  // and the port: http://h:8080/ is in scope where https://h/ is.
  std::vector<std::string> whitelist;
  // Links followed from a seed; nullopt: no limit. With a limit the store also keeps where each page leads, so that a
  // shorter way found late is followed as far as one found early.
  std::optional<std::uint32_t> max_depth;
  std::uint64_t max_pages = 0;  // responses fetched in this run; 0: no limit
  std::uint64_t quota = 0;      // bytes received in this run, after which it stops (resumably); 0: no limit
  // HEAD off-scope links, to learn whether they are broken.
  bool check_links = false;
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

  // Called with each answer, whatever its status, before it is written down that it came; not with those that are tried
  // again, that have not changed (304), or that only told whether a link is broken. While it runs, its request still counts
  // as under way. When the crawl is cancelled or killed meanwhile, the page comes again in the next run: at least once.
  // What it throws is logged, counted, and kept with the URL; the page counts as done.
  // Threads: that of the shard that has fetched the page; with several, from several at a time.
  PageHandler on_page;
  // See CrawlSink.
  std::vector<std::shared_ptr<CrawlSink>> sinks;

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
