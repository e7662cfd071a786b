// The results of a crawl: counters while it runs, a report at its end.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/crawl/detail/scope.hpp"
#include "argiope/web/http.hpp"

namespace argiope {

// A snapshot; each number is exact, their sum may straddle a step.
// URLs that other programs have put into the database (its table `inbox`), as far as this run has taken them.
struct InboxStats {
  std::uint64_t taken = 0;     // new, and fetched
  std::uint64_t known = 0;     // already
  std::uint64_t left_out = 0;  // out of scope and the like; stored as excluded
  std::uint64_t skipped = 0;   // no URLs of http or https
  std::uint64_t all() const noexcept { return taken + known + left_out + skipped; }
};

struct CrawlStats {
  std::uint64_t pages = 0;       // responses with status 200 whose type is HTML
  std::uint64_t fetched = 0;     // all responses but robots.txt
  std::uint64_t requisites = 0;  // those of them that pages are shown with: CrawlOptions::requisites
  std::uint64_t urls = 0;        // known, those of earlier runs included
  std::uint64_t bytes = 0;       // received, robots.txt included
  std::uint64_t errors = 0;      // URLs given up without a usable response, and responses with status 400 and above
  std::uint64_t retries = 0;
  std::uint64_t handler_errors = 0;  // pages whose CrawlOptions::on_page has thrown
  std::uint64_t not_asked = 0;       // URLs passed over because their host was given up; the next run asks them
  std::uint64_t rendered = 0;        // pages that a renderer has made
  std::uint64_t render_errors = 0;   // attempts at it that failed
  std::uint64_t parts = 0;           // requests of theirs that were answered; not among `fetched`
  std::uint64_t queued = 0;          // waiting, in memory and in the store
  std::uint64_t in_memory = 0;       // those of them in memory, and those in flight
  std::uint64_t in_flight = 0;
  std::uint64_t hosts = 0;
  std::uint64_t kept_fresh = 0;  // that were fetched, and wait until they are due again; CrawlOptions::forever
  // When no request is under way: when the next is due. kNever: it is not known.
  TimePoint next_due = kNever;
  std::uint64_t hosts_waiting = 0;  // hosts with queued URLs that may not be asked yet
  // The one of them that rests longest, as of the last second; empty: none rests.
  std::string resting_site;
  TimePoint resting_until{};
  InboxStats inbox;
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

// A parameter of a site's URLs without which its links are followed, because it never changed a page
// (DuplicateOptions).
struct LearnedParameter {
  std::string site;  // "http://example.org:8080"
  std::string name;
  std::uint64_t pages = 0;     // that were met under two URLs which differ in it alone, and said the same
  std::uint64_t stripped = 0;  // links in this run
};

// URLs of one shape that are not followed any more, because all of its pages were copies of others.
struct FoundTrap {
  std::string shape;           // "http://example.org/calendar/#-#"
  std::string example;         // the URL with which it was found
  std::uint64_t pages = 0;     // of the shape that were fetched by then
  std::uint64_t left_out = 0;  // URLs and links in this run
};

// Totals of the sitemaps and feeds that a run has read.
struct SitemapTotals {
  std::uint64_t files = 0;       // answered with 200, and read
  std::uint64_t unchanged = 0;   // the same as when they were last read
  std::uint64_t links = 0;       // that stand in them
  std::uint64_t dropped = 0;     // entries without a URL, or with what is none
  std::uint64_t cut = 0;         // files of which a part was not read
  std::uint64_t unreadable = 0;  // what is neither sitemap nor feed, or was not answered with 200
  std::uint64_t news = 0;        // pages asked again because they say that they have changed
};

struct CrawlReport {
  CrawlStats stats;
  std::map<int, std::uint64_t> statuses;          // this run's
  std::map<std::string, std::uint64_t> failures;  // error name → URLs given up for it, this run's
  // The first `kMostBroken` of the whole database, but for those to which nothing leads any more, as far as that is
  // known. Of a run that checks links those of the crawl's own hosts come first.
  std::vector<BrokenLink> broken;
  std::uint64_t broken_count = 0;
  std::vector<LostHost> lost_hosts;  // the first `kMostLostHosts`, by name
  std::uint64_t lost_host_count = 0;
  std::uint64_t broken_before = 0;  // those of them that an earlier run has asked, and this one has not
  // URLs of the whole database by the reason (UrlReason) for which this run leaves them out, or has them in part.
  std::map<std::string, std::uint64_t> left_out;
  std::uint64_t waiting = 0;  // queued by runs with another scope or depth; they go on waiting
  // Known pages that were asked again, whole, because earlier runs have not kept of them what this one is to produce.
  std::uint64_t asked_for_outputs = 0;
  // Pages that earlier runs have fetched, and that this one has left, so that they are not in what it has produced: by
  // that, "archive", "records" or "rendered pages".
  std::map<std::string, std::uint64_t> unseen;
  // Given up by several runs in a row: a run with a limit does not ask them yet, so that it gets on.
  std::uint64_t resting = 0;
  SitemapTotals sitemaps;
  std::uint64_t taken_up = 0;  // URLs of earlier runs, and seeds, that this run had to do; 0: nothing was due
  // Lessons on duplicates, in this run or an earlier one, by site and name, or by shape.
  std::vector<LearnedParameter> learned_parameters;
  std::vector<FoundTrap> traps;
  bool finished = false;
  // Why not: "signal", "max_pages", "quota", "max_time", "idle", "store".
  std::string stopped_by;
  Duration elapsed{};

  static constexpr std::size_t kMostBroken = 1000;
  static constexpr std::size_t kMostLostHosts = 1000;

  // The number of URLs that guards against traps have left out; see CrawlOptions.
  std::uint64_t cut_by_guards() const;
  // Finished, and no guard against traps has left anything out.
  bool complete() const { return finished && cut_by_guards() == 0; }
};

}  // namespace argiope
