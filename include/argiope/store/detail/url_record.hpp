// The facts known of one URL, and those that change about it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/jobs/detail/shelf.hpp"

namespace argiope {

enum class UrlState : std::uint8_t {
  queued,    // to be fetched
  done,      // answered, with a status that another attempt would not change
  failed,    // given up without a usable answer, 429 and 5xx included; the next run tries again
  excluded,  // not to be fetched, see `reason`
};
constexpr std::string_view to_string(UrlState state) noexcept {
  constexpr std::string_view kNames[] = {"queued", "done", "failed", "excluded"};
  return kNames[static_cast<std::size_t>(state)];
}

// Why a URL is excluded, or done or failed though not as a page of the crawl is: what would have to change. With
// `limit` it tells a later run with other options whether it may take the URL up.
enum class UrlReason : std::uint8_t {
  none,
  // Excluded:
  off_scope,         // another host than the crawl's
  robots,            // robots.txt forbids it
  depth,             // farther from a seed than max_depth
  url_length,        // longer than max_url_length
  repeated_segment,  // /a/b/a/b/a/b/…: more repeats than max_segment_repeats
  pages_per_host,    // its host had `limit` URLs
  exclude,           // it fits a pattern that is excluded
  include,           // it fits none of the patterns that are included
  path_prefix,       // its path begins otherwise
  parent,            // outside of the seeds' folders
  extension,         // of its name
  content_type,      // answered, and of another type than is accepted; the body was not read
  // Done:
  checked,         // only asked by HEAD, because it is off scope; also of failed ones, and of those to be tried again
  cut_off,         // the body ended at `limit` bytes
  links_per_page,  // only the first `limit` links were followed
  redirects,       // it would have been one more than `limit` redirects in a row
  // Failed:
  host_down,  // not asked at all: its host did not answer
  // Excluded, or done or failed once it was asked:
  asset,  // only pages' pictures, styles and the like lead there, and no link: it is asked by HEAD, if at all
  // Excluded:
  logout,     // it reads as if it ended the login of the run that has met it
  parameter,  // followed without some of its parameters, in place of this and of others that come to the same
  // Done, and its links not followed; `limit` is the url_id of the other:
  duplicate,       // another has the same content
  alias,           // another is its canonical URL
  near_duplicate,  // another has nearly the same words
  // Excluded:
  trap,  // of the shape of URLs whose pages were all copies of others
  // Excluded, or done, failed or queued again once it was asked:
  requisite,  // as `asset`, but it is fetched, for what is kept of the crawl
  // The same:
  sitemap,  // a sitemap or feed: read for what it lists, if at all, and no page
};
inline constexpr std::size_t kUrlReasons = 27;
// As written in reports and databases; empty for `none`.
constexpr std::string_view to_string(UrlReason reason) noexcept {
  constexpr std::string_view kNames[kUrlReasons] = {
      "",          "off_scope",      "robots",         "depth",     "url_length", "repeated_segment", "pages_per_host",
      "exclude",   "include",        "path_prefix",    "parent",    "extension",  "content_type",     "checked",
      "cut_off",   "links_per_page", "redirects",      "host_down", "asset",      "logout",           "parameter",
      "duplicate", "alias",          "near_duplicate", "trap",      "requisite",  "sitemap"};
  return kNames[static_cast<std::size_t>(reason)];
}

// Of 1 to 2³¹ parts, the one to which a site belongs, given its fingerprint.
constexpr std::uint32_t part_of_site(std::uint64_t site, std::uint32_t parts) noexcept {
  return static_cast<std::uint32_t>((site & 0x7fffffff) % parts);
}

// One row of the table `urls`.
struct UrlRecord {
  std::int64_t url_id = 0;  // from 1
  std::string url;
  WallTime ctime{};  // first met; milliseconds are kept
  WallTime mtime{};  // last fetched or given up; the epoch: never
  UrlState state = UrlState::queued;
  WallTime due{};  // not to be fetched before; the epoch: at any time
  std::uint32_t depth = 0;
  std::int32_t priority = 0;  // higher first
  int status_code = 0;        // 0: none yet
  std::string content_type;
  std::int64_t size = 0;  // of the decoded body
  std::uint32_t attempts = 0;
  std::int64_t referrer = 0;  // url_id of the page that first linked here; 0: a seed
  std::string redirect_to;
  std::string etag;
  std::string last_modified;
  std::string digest;
  std::string error;
  // Where it waits while it is not in the memory of its crawl; nullopt: on no shelf. The store reads each shelf in its
  // own order, set_aside for each site by itself, and has an index of nothing else.
  std::optional<Shelf> shelf;
  std::uint64_t site = 0;  // on a shelf: the fingerprint of scheme, host and port
  UrlReason reason = UrlReason::none;
  // The one that was met, for reasons that have one; of duplicates and aliases the other's url_id; of what has failed,
  // how many runs in a row have given it up. Below 0, of what is queued: so many redirects in a row have led back to
  // it.
  std::int64_t limit = 0;

  friend bool operator==(const UrlRecord&, const UrlRecord&) = default;
};

// Answered, and nothing more: no reason to be taken up again, and it leads nowhere.
inline bool is_settled(const UrlRecord& record) noexcept {
  return record.state == UrlState::done && record.reason == UrlReason::none && record.redirect_to.empty() &&
         !record.shelf;
}

// A redirect that leads nowhere: in a circle, beyond the limit, or to what is no URL. `error` says which.
inline bool is_redirect_to_nowhere(const UrlRecord& record) noexcept {
  const int status = record.status_code;
  const bool redirect = (status >= 301 && status <= 303) || status == 307 || status == 308;
  return record.state == UrlState::done && redirect && !record.error.empty();
}

// Given up, answered with an error, or a redirect to nowhere: what a report lists as a broken link.
inline bool is_broken(const UrlRecord& record) noexcept {
  return (record.state == UrlState::failed && record.reason != UrlReason::host_down) ||
         (record.state == UrlState::done && record.status_code >= 400) || is_redirect_to_nowhere(record);
}

// A URL met for the first time: queued, or with a reason excluded.
struct NewUrl {
  std::int64_t url_id = 0;
  std::string url;
  std::uint32_t depth = 0;
  std::int32_t priority = 0;
  std::int64_t referrer = 0;
  WallTime ctime{};
  UrlReason reason = UrlReason::none;
};

// The result of a fetch. With state `queued` it is tried again when `due`. Takes the URL from its shelf.
struct UrlOutcome {
  std::int64_t url_id = 0;
  UrlState state = UrlState::done;
  WallTime mtime{};
  WallTime due{};
  int status_code = 0;
  std::uint32_t attempts = 0;
  // 304: what was known of the content stays, and so does the reason.
  bool not_modified = false;
  std::string content_type;
  std::int64_t size = 0;
  std::string redirect_to;
  std::string etag;
  std::string last_modified;
  std::string digest;
  std::string error;
  UrlReason reason = UrlReason::none;
  std::int64_t limit = 0;
};

// A URL goes to a shelf, or leaves one; and what may have changed about its place there.
struct UrlMove {
  std::int64_t url_id = 0;
  std::optional<Shelf> shelf{};  // delayed: for those that have a due
  std::uint64_t site = 0;        // 0 with nullopt
  std::int32_t priority = 0;
  std::uint32_t depth = 0;
};

// Where a URL leads. A crawl with a depth limit needs it to count depths again when it finds a shorter way, one that
// checks links to name every page that has a broken one.
struct UrlLinks {
  std::int64_t url_id = 0;
  bool redirect = false;              // to one target, at the same depth; else they are one deeper
  std::vector<std::int64_t> targets;  // url_ids; read back sorted, each once
  friend bool operator==(const UrlLinks&, const UrlLinks&) = default;
};

// A URL may be nearer to a seed than was known; one that is not stays as it is.
struct UrlDepth {
  std::int64_t url_id = 0;
  std::uint32_t depth = 0;
  std::int32_t priority = 0;
  // On a shelf it stays where it is: while the shelf is read, a place farther ahead may have been passed already.
  bool keeps_place = false;
};

// A link or an asset as a page has it. Of crawls that keep them (CrawlOptions::keep_links).
struct KeptLink {
  std::int64_t target = 0;  // url_id; 0: no URL that the store knows
  std::string href;         // where there is no target: as the page writes it, without space around it
  std::string kind;         // to_string(LinkKind)
  std::string text;         // of an `a` element; the `alt` of an image
  std::string rel;
  std::uint32_t line = 0;  // of the page, from 1
  std::string fragment;    // without "#", as the URL spells it
  std::string error;       // what is wrong with the link as it is written; empty: nothing
  friend bool operator==(const KeptLink&, const KeptLink&) = default;
};

// All of one page, in its order. Kept links replace those kept of the page before; no links take them away.
struct KeptLinks {
  std::int64_t url_id = 0;
  std::vector<KeptLink> links;
};

// The facts seen of an answer beside those a crawl goes by. Of crawls that keep it (CrawlOptions::keep_facts).
struct PageFacts {
  std::int64_t url_id = 0;
  Duration took{};              // from the request to the end of the answer; microseconds are kept
  std::int64_t wire_bytes = 0;  // received, headers and undecoded body
  // Of an HTML page; the first ones, and how many there are.
  std::string title, description, heading;
  std::uint32_t titles = 0, descriptions = 0, headings = 0;
  std::string canonical;  // absolute
  bool noindex = false;
  // How many words it has, and their simhash, where nearly equal pages are looked for; else 0.
  std::uint32_t words = 0;
  std::uint64_t simhash = 0;
  // Targets of fragments: fingerprint() of each id, ascending; of a redirect, of the fragment that its Location has, if
  // it has one. nullopt: not asked for, or not all are known.
  std::optional<std::vector<std::uint64_t>> anchors{};
  friend bool operator==(const PageFacts&, const PageFacts&) = default;
};

// Something small that a crawl keeps beside its URLs, by a name of its own: "cookies/example.org".
struct UrlNote {
  std::string name;
  std::string text;  // without NUL; empty: there is no such note any more
  // A file that has it is for its owner alone from then on (mode 0600), as far as that may be changed.
  bool is_secret = false;
};

// A URL that another program has put into the database. Nothing of it is believed.
struct GivenUrl {
  std::int64_t number = 0;  // of its row there
  std::string url;          // or the first 64 KiB of it
  std::int64_t depth = 0;
  std::int64_t again = 0;  // url_id of this URL, which is to be fetched again; 0: it may be new
};

// A run of a crawl on this store.
struct UrlRun {
  std::int64_t run_id = 0;  // from 1
  WallTime began{};
  WallTime ended{};  // the epoch: it goes on, or was killed
  bool finished = false;
  std::string stopped_by;  // why not, as CrawlReport::stopped_by
  std::uint64_t fetched = 0;
  friend bool operator==(const UrlRun&, const UrlRun&) = default;
};

// The change that a fetch has found in a URL that was fetched before.
enum class UrlChangeKind : std::uint8_t {
  changed,  // other content
  moved,    // redirects now, or elsewhere than before
  gone,     // 404 or 410
  broken,   // another status from 400 on, or no answer
  mended,   // answers again
};
inline constexpr std::size_t kUrlChangeKinds = 5;
// As written in reports and databases.
constexpr std::string_view to_string(UrlChangeKind kind) noexcept {
  constexpr std::string_view kNames[kUrlChangeKinds] = {"changed", "moved", "gone", "broken", "mended"};
  return kNames[static_cast<std::size_t>(kind)];
}
struct UrlChange {
  std::int64_t url_id = 0;
  WallTime at{};
  UrlChangeKind kind{};
  int status_before = 0;  // 0: no answer
  int status_after = 0;
  std::string detail;  // moved: where to; broken: the error
  friend bool operator==(const UrlChange&, const UrlChange&) = default;
};

// A URL that was stored as no page of the crawl, and as what it waits to be asked: a requisite, or with `none` a page.
struct UrlPart {
  std::int64_t url_id = 0;
  UrlReason reason = UrlReason::none;
};

// The things that are stored together or not at all: a page settled, and the links found on it. New URLs come first,
// then outcomes, then moves, then depths; links replace those that were known of the same URL.
struct UrlBatch {
  std::vector<UrlOutcome> outcomes;
  std::vector<NewUrl> discovered;
  std::vector<UrlMove> moves = {};
  std::vector<UrlDepth> depths = {};
  std::vector<UrlLinks> links = {};
  std::vector<KeptLinks> kept_links = {};
  std::vector<PageFacts> facts = {};
  // URLs that were assets alone, and to which a link leads now: what has reason `asset` is excluded as off_scope, or
  // else `checked`, so that a run which has it in scope fetches it.
  std::vector<std::int64_t> linked = {};
  // A URL with another reason waits with this one, without validators. One without a reason stays a page.
  std::vector<UrlPart> parts = {};
  std::vector<UrlNote> notes = {};
  std::vector<std::int64_t> taken = {};  // numbers of GivenUrls that are to be there no more
  // New, or in the place of one with the same id.
  std::vector<UrlRun> runs = {};
  std::vector<UrlChange> changes = {};
  std::size_t size() const noexcept {
    std::size_t kept = 0;
    for (const KeptLinks& page : kept_links) kept += 1 + page.links.size();
    return outcomes.size() + discovered.size() + moves.size() + depths.size() + links.size() + kept + facts.size() +
           linked.size() + parts.size() + notes.size() + taken.size() + runs.size() + changes.size();
  }
};

// The id of a URL as that of a place on a shelf, and back. There are places after all ids.
constexpr JobId job_id_of(std::int64_t url_id) noexcept { return static_cast<JobId>(url_id); }
constexpr std::int64_t url_id_of(JobId id) noexcept {
  return static_cast<std::int64_t>(std::min<JobId>(id, std::numeric_limits<std::int64_t>::max()));
}

// Of whose URLs to read a shelf; see ShelfRead.
struct ShelfSites {
  std::uint64_t site = 0;  // set_aside: of this one
  // ready, delayed: of those of one part of `parts`
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
};

}  // namespace argiope
