// What a crawl is asked to do. The command line fills it in; so may a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/web/http.hpp"
#include "argiope/web/url.hpp"

namespace argiope {

enum class CrawlOrder : std::uint8_t {
  bfs,       // nearest to a seed first
  dfs,       // deepest first
  priority,  // fewest path segments and query parameters first: front pages before leaves
};

struct CrawlOptions {
  std::vector<Url> seeds;

  // --- what belongs to the crawl
  // Registrable domains or hosts that are in scope beside the seeds' own hosts; a domain includes its subdomains.
  std::vector<std::string> whitelist;
  // Links followed from a seed; nullopt: no limit but `trap_depth`.
  std::optional<std::uint32_t> max_depth;
  std::uint64_t max_pages = 0;  // responses fetched in this run; 0: no limit
  // HEAD off-scope links, to learn whether they are broken.
  bool check_links = false;
  CrawlOrder order = CrawlOrder::bfs;

  // --- guards against traps; what they drop is counted by reason
  std::uint32_t trap_depth = 100;
  std::size_t max_url_length = 2000;
  std::uint32_t max_segment_repeats = 3;
  std::uint64_t max_pages_per_host = 1'000'000;

  // --- pace
  std::size_t concurrency = 256;  // requests under way in all
  // Requests under way at one host; nullopt: 1, or 8 where the host is a loopback address.
  std::optional<std::uint32_t> per_host;
  std::optional<Duration> delay;  // between the end of one request to a host and the start of the next
  // Requests a second to one host; nullopt: 5, or no limit where the host is a loopback address or `delay` is given.
  std::optional<double> rate;
  std::uint32_t per_address = 8;  // requests under way at one public IP address, whatever its host names
  bool robots = true;
  std::string user_agent = "argiope";
  // The name robots.txt groups are matched with.
  std::string product_token = "argiope";

  // --- each request
  std::size_t size_limit = 10 * 1024 * 1024;  // decoded bytes of a page
  Duration timeout = std::chrono::seconds{30};
  Duration connect_timeout = std::chrono::seconds{10};  // of one address; for who makes the transport
  std::uint32_t retries = 2;  // after the first attempt
  std::uint32_t max_redirects = 10;
  std::vector<HeaderFor> headers_for;  // fields for some hosts only

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
