// What a crawl did: counters while it runs, a report at its end.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/crawl/scope.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

// A snapshot; each number is exact, their sum may straddle a step.
struct CrawlStats {
  std::uint64_t pages = 0;    // responses with status 200 whose type is HTML
  std::uint64_t fetched = 0;  // all responses but robots.txt
  std::uint64_t urls = 0;     // known, those of earlier runs included
  std::uint64_t bytes = 0;    // received, robots.txt included
  std::uint64_t errors = 0;   // URLs given up without a usable response, and responses with status 400 and above
  std::uint64_t retries = 0;
  std::uint64_t handler_errors = 0;  // pages whose CrawlOptions::on_page has thrown
  std::uint64_t not_asked = 0;       // URLs passed over because their host was given up; the next run asks them
  std::uint64_t queued = 0;          // waiting, in memory and in the store
  std::uint64_t in_memory = 0;       // those of them in memory, and those in flight
  std::uint64_t in_flight = 0;
  std::uint64_t hosts = 0;
  std::uint64_t hosts_waiting = 0;  // hosts with queued URLs that may not be asked yet
  std::array<std::uint64_t, kExclusions> excluded{};
  std::array<std::uint64_t, kHttpOddities> odd{};  // responses that were read in spite of an HttpOddity, by which
};

struct BrokenLink {
  std::string url;
  int status = 0;        // 0: no response
  std::string error;     // when there was none
  std::string referrer;  // a page that links to it, or to where redirects to it begin; empty for a seed
};

// A host of which nothing more was asked in this run.
struct LostHost {
  std::string site;             // "http://example.org:8080"
  std::string error;            // "dns: …", "tls: …", "timeout: …", "network: …", "refused: …"
  std::uint64_t not_asked = 0;  // its URLs that were passed over
};

struct CrawlReport {
  CrawlStats stats;
  std::map<int, std::uint64_t> statuses;          // this run's
  std::map<std::string, std::uint64_t> failures;  // error name → URLs given up for it, this run's
  std::vector<BrokenLink> broken;                 // the first `kMostBroken` of the whole database
  std::uint64_t broken_count = 0;
  std::vector<LostHost> lost_hosts;  // the first `kMostLostHosts`, by name
  std::uint64_t lost_host_count = 0;
  std::uint64_t broken_before = 0;  // those of them that an earlier run has asked, and this one has not
  // URLs of the whole database by the reason (UrlReason) for which this run leaves them out, or has them in part.
  std::map<std::string, std::uint64_t> left_out;
  std::uint64_t waiting = 0;   // queued by runs with another scope or depth; they go on waiting
  std::uint64_t taken_up = 0;  // URLs of earlier runs, and seeds, that this run had to do; 0: nothing was due
  bool finished = false;
  // Why not: "signal", "max_pages", "quota", "max_time", "idle", "store".
  std::string stopped_by;
  Duration elapsed{};

  static constexpr std::size_t kMostBroken = 1000;
  static constexpr std::size_t kMostLostHosts = 1000;

  // What guards against traps have left out; see CrawlOptions.
  std::uint64_t cut_by_guards() const;
  // Finished, and no guard against traps has left anything out.
  bool complete() const { return finished && cut_by_guards() == 0; }
};

}  // namespace argiope
