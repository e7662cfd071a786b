// A crawl as the owner of a site wants to see it, gathered from its store: values here, one HTML file by
// html_site_report().
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "crawl/check/internal/link_check.hpp"

namespace argiope {

// Lists hold the first `kMostListed` of what they are of, and the counts beside them count all.
inline constexpr std::size_t kMostListed = 200;

struct ReportedPlace {
  std::string page;  // empty: the URL was given
  std::uint32_t line = 0;
  std::string text;
};
struct ReportedFinding {
  LinkFinding finding;  // without its places
  std::vector<ReportedPlace> places;
  std::uint64_t place_count = 0;
};
struct ReportedHost {
  SilentHost host;
  std::vector<ReportedFinding> findings;  // the first of it
};

// Pages that have something in common: a title, a description, their content.
struct PageGroup {
  std::string what;
  std::vector<std::string> pages;
  std::uint64_t count = 0;
};
struct PageGroups {
  std::vector<PageGroup> groups;  // the largest first
  std::uint64_t count = 0;        // of groups
  std::uint64_t pages = 0;        // in them
};
struct PageList {
  std::vector<std::string> pages;
  std::uint64_t count = 0;
  void add(const std::string& url) {
    if (++count <= kMostListed) pages.push_back(url);
  }
};
// Pages by a text of theirs.
struct TextFindings {
  PageList missing, several;
  PageGroups repeated;
};

// A page that names another URL as its canonical one, and what is wrong with that.
struct CanonicalFinding {
  std::string page, canonical, what;
};

struct ReportedUrl {
  std::string url;
  std::string title;
  Duration took{};
  std::int64_t size = 0;
  std::uint32_t depth = 0;
  std::uint32_t inbound = 0;
  double rank = 0;
};

struct HostFindings {
  std::uint64_t urls = 0;    // that were asked
  std::uint64_t pages = 0;   // HTML answered with 200
  std::uint64_t errors = 0;  // no answer, or one from 400 on
  std::int64_t bytes = 0;    // of decoded bodies
  Duration median{};         // of answers that were timed
};

struct SiteReport {
  std::string title;              // the site of the first URL
  std::uint64_t other_sites = 0;  // of further URLs that were given
  WallTime from{}, until{};       // of answers; the epoch: there are none
  std::uint64_t urls = 0, asked = 0, pages = 0, queued = 0;
  std::int64_t bytes = 0;
  std::map<int, std::uint64_t> statuses;                    // 0: no answer
  std::map<std::string, std::uint64_t> failures;            // of those without an answer, by the error's name
  std::map<std::string, std::uint64_t> content_types;       // of answers with 2xx
  std::map<std::string, std::uint64_t> left_out;            // by reason
  std::map<std::uint32_t, std::uint64_t> depths;            // of pages
  std::vector<std::pair<std::string, HostFindings>> hosts;  // those with most URLs first
  std::uint64_t host_count = 0;

  // Without its findings, which are here: at most kMostListed of a kind of the site, and as many elsewhere.
  CheckResult check;
  std::vector<ReportedFinding> findings;
  std::vector<ReportedHost> silent_hosts;

  std::uint64_t redirects = 0;
  std::vector<std::vector<std::string>> chains;  // of two redirects and more, with where they end
  std::uint64_t chain_count = 0;

  std::uint64_t unseen = 0;  // pages of whose heads, as they are now, nothing is known
  bool has_facts = false;    // what follows but duplicates and large pages is known only of crawls that kept it
  std::uint64_t timed = 0;
  Duration p50{}, p90{}, p99{}, slowest{};
  // Answers that took less than each of kTimeBounds, and not less than the one before; the last: those beyond.
  static constexpr std::array<Duration, 7> kTimeBounds{std::chrono::milliseconds{50},  std::chrono::milliseconds{100},
                                                       std::chrono::milliseconds{250}, std::chrono::milliseconds{500},
                                                       std::chrono::seconds{1},        std::chrono::seconds{2},
                                                       std::chrono::seconds{5}};
  std::array<std::uint64_t, kTimeBounds.size() + 1> times{};
  std::vector<ReportedUrl> slow, large;
  TextFindings titles, descriptions, headings;
  PageGroups duplicates;
  PageGroups near_duplicates;                // of crawls that kept simhashes
  std::vector<CanonicalFinding> canonicals;  // that lead astray
  std::uint64_t canonical_count = 0;

  // URLs that sitemaps and feeds list beside pages that answer with 200 and may be indexed, and URLs they leave out.
  std::uint64_t sitemaps = 0, listed = 0;  // files; URLs in them
  PageList listed_redirects, listed_broken, listed_noindex, listed_orphans, not_listed;

  std::vector<ReportedUrl> top;  // by PageRank
  PageList orphans;

  // The time from `from` to `until` in kSteps.
  static constexpr std::size_t kSteps = 360;
  std::array<std::uint32_t, kSteps> answers{}, errors{};
  std::array<Duration, kSteps> medians{};  // of how long answers took
};

// Memory: some 100 bytes a URL. Errors: the store's.
Result<SiteReport> gather_site_report(UrlStore& store, const CheckRules& rules);

// One file that needs no other, as html_document() makes it.
std::string html_site_report(const SiteReport& report);

// Both, to a file that is there whole or not at all. Errors: also io and disk_full naming the file.
Result<void> write_site_report(UrlStore& store, const CheckRules& rules, const std::string& path);

}  // namespace argiope
