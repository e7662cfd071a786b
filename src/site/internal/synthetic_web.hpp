// A web that does not exist: every page, link, redirect and nuisance follows from a seed. For trying the crawler,
// measuring it, and showing what it does with hosts that lie.
//
// This is the content alone, without I/O or time: `argiope site` serves it on loopback, and tests put it behind a
// simulated transport. Host and page numbers decide what a page is; chance decides only its text and where its links go
// beyond the tree that reaches all pages, so that every feature is there whatever the seed. Pages have an ETag and a
// Last-Modified, and answer 304 to who knows them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

// A feature that a synthetic host can have beside plain pages.
enum class WebFeature : std::uint8_t {
  // Friendly: any site has them.
  robots,      // robots.txt with a part that is off limits, and links into it
  redirects,   // pages linked at an old address: 301, 302, 303, 307, 308, in one hop or two
  broken,      // links to what is not there (404, 410): see SyntheticWebOptions::errors
  flaky,       // pages that answer 503 with Retry-After once, then 200
  compressed,  // gzip, br or zstd, as Accept-Encoding allows
  encodings,   // UTF-16, windows-1252, Shift_JIS …, told by mark, header or meta; queries written in them
  nofollow,    // links and pages that ask not to be followed
  resources,   // PDF, PNG and CSS
  duplicates,  // pages at a second URL that differs in its query
  offsite,     // links, and a redirect, to hosts that are not of this web
  phantoms,    // what looks like links in comments, scripts and attributes; mailto: and javascript:
  base,        // pages with `base`
  chain,       // twenty pages in a row, linked by a, area, link, iframe and meta refresh
  // Hostile: each under /NAME/, linked from the front page.
  loops,       // redirects in a circle, to themselves, and without an end
  endless,     // a calendar without end, paths that deepen or repeat themselves, a search with ever more pages
  drip,        // bodies that come byte by byte
  reset,       // connections torn down in the middle of a body, once and thirty times in a row
  lengths,     // a Content-Length that is too long, and one too short
  silent,      // no answer, ever
  garbage,     // answers that are not HTTP
  bomb,        // small bodies that decode to large ones
  flood,       // a body without an end
  closed,      // the connection ends before an answer
  throttling,  // 429 with Retry-After twice, then 200
  failing,     // 500, 502, 503 and 504, always
  headers,     // a thousand header fields; one of a megabyte
  odd,         // answers that break the rules, yet are read: a chain, each page of which leads to the next
  // Extreme: the whole host is useless. Not part of "hostile", since one would hide the others.
  slow,           // every answer takes SyntheticWebOptions::slow_latency
  robots_500,     // robots.txt answers 500, so nothing may be fetched
  robots_silent,  // robots.txt never answers
  robots_reset,   // robots.txt's connection is torn down
  mute,           // nothing is ever answered; where connections are simulated, there is none
  // Guarded: pages that are shown to who knows how, each below /NAME/, linked from the front page. Beside the friendly
  // ones, and not among them.
  // walls that let in who sends a cookie back: by a redirect to the same page, by one there and back, step by step
  cookies,
  members,  // a login with a token at /login, without which /members/ leads back to it; and /logout
  basic,    // HTTP authentication
  digest,   // the same, with a nonce that grows stale
  // Repeated: what is there under many URLs, each below /NAME/, linked from the front page. Not among the others, since
  // the last two have no end.
  copies,    // documents with mirrors, tracking parameters, small edits, and views that name them as canonical
  sessions,  // links with a session of their own on every page: in parameters that are known, and in one to be learned
  traps,     // a calendar without end, a folder in itself, a query that grows; their pages say the same, or nearly so
  // Listed: pages to which no link leads. Beside the friendly ones, too.
  sitemaps,  // an index of three sitemaps, packed and as text; on even hosts robots.txt names it. Below /hidden/
  feeds,     // RSS and Atom, announced by the first two pages. Below /posts/
  scripts,   // pages below /scripts/ that are something to who runs their scripts
};
inline constexpr std::size_t kWebFeatures = 42;
using WebFeatures = std::uint64_t;  // bit() of each
// Hostile and extreme ones: only evil hosts have them.
constexpr bool is_hostile(WebFeature feature) noexcept {
  return feature >= WebFeature::loops && feature <= WebFeature::mute;
}
// As on the command line: "robots-500".
std::string_view to_string(WebFeature feature) noexcept;
// Comma-separated names; "none", "friendly", "hostile" (without the extreme ones), "guarded", "repeated", "listed", or
// "all" for friendly and hostile ones.
// Errors: invalid_input naming the word.
Result<WebFeatures> parse_web_features(std::string_view names);
constexpr WebFeatures bit(WebFeature feature) noexcept { return WebFeatures{1} << static_cast<unsigned>(feature); }
inline constexpr WebFeatures kFriendlyFeatures = bit(WebFeature::loops) - 1;
inline constexpr WebFeatures kHostileFeatures = (bit(WebFeature::slow) - 1) & ~kFriendlyFeatures;
inline constexpr WebFeatures kGuardedFeatures =
    bit(WebFeature::cookies) | bit(WebFeature::members) | bit(WebFeature::basic) | bit(WebFeature::digest);
inline constexpr WebFeatures kRepeatedFeatures =
    bit(WebFeature::copies) | bit(WebFeature::sessions) | bit(WebFeature::traps);
inline constexpr WebFeatures kListedFeatures = bit(WebFeature::sitemaps) | bit(WebFeature::feeds);
// The person whom members, basic and digest let in; the form's fields are "name" and "password".
inline constexpr std::string_view kSyntheticName = "ann";
inline constexpr std::string_view kSyntheticPassword = "silk & dew";

struct SyntheticWebOptions {
  std::uint32_t hosts = 3;
  // Of each host: the front page and the numbered ones. Some features add others, in proportion.
  std::uint32_t pages = 200;
  // On a page, beside what features add; the front page is an index and has up to 400. At least 1 is taken.
  std::uint32_t links = 12;
  // The median page's bytes, before any coding; pages have from a third to three times as many.
  std::uint32_t size = 4096;
  Duration latency{};    // of every reply but robots.txt
  double errors = 0.02;  // part of the links, beside the tree's, that lead to what is not there; 0 to 1
  std::uint64_t seed = 1;
  WebFeatures features = kFriendlyFeatures;
  // The last hosts are evil: they alone have the hostile ones among `features`, beside the friendly ones.
  std::uint32_t evil_hosts = 1;
  // Pages link to pages of other hosts, and front pages to front pages, so that any one seed reaches all hosts.
  bool cross_links = true;
  Duration crawl_delay{};  // in robots.txt; none when zero
  Duration slow_latency = std::chrono::seconds{10};
};

struct SyntheticRequest {
  std::uint32_t host = 0;
  bool head = false;
  std::string_view target{};  // path and query
  std::string_view accept_encoding{};
  std::string_view if_none_match{};
  std::string_view if_modified_since{};
  std::string_view cookie{};
  std::string_view authorization{};
  bool post = false;
  std::string_view body{};
};

// The answer that a server is to send, and how.
struct SyntheticReply {
  enum class Behaviour : std::uint8_t {
    normal,
    drip,     // the body, at `drip_bytes_per_second`
    reset,    // half the body, then a torn connection
    cut,      // half the body, then an orderly end: Content-Length was too long
    surplus,  // more bytes than Content-Length says
    silent,   // nothing; the connection stays open
    garbage,  // `body` as it stands, without status or headers, then the end
    flood,    // the body again and again, in chunks
    closed,   // nothing, and the connection ends
    odd,      // `wire` as it stands, then the end; `body` is what a reader makes of it
  };
  int status = 200;
  std::string content_type = "text/html; charset=utf-8";
  // Beside Content-Type, Content-Length and Transfer-Encoding.
  std::vector<std::pair<std::string, std::string>> headers;
  // Coded already. Of a HEAD request it is what GET would bring: only its length is to be sent.
  std::string body;
  std::string wire;
  Duration latency{};  // before the first byte
  Behaviour behaviour = Behaviour::normal;
  double drip_bytes_per_second = 10;
};

// URLs of one host, absolute and as a crawler normalises them, each list sorted: what a crawl must and must not ask for
// that obeys robots.txt, has all hosts in scope and began at a front page. Of an evil host this is its friendly part;
// where its robots.txt fails, everything is disallowed and the lists are empty.
struct SyntheticTruth {
  std::vector<std::string> pages;       // HTML with status 200, at last
  std::vector<std::string> redirects;   // 3xx, as linked or as a second hop
  std::vector<std::string> broken;      // 404 and 410
  std::vector<std::string> resources;   // linked by `a`, status 200, not HTML
  std::vector<std::string> disallowed;  // linked, but off limits by robots.txt; they would answer 200
  std::vector<std::string> guarded;     // pages with status 200 for who has what it takes
  std::vector<std::string> listed;      // pages with status 200 that sitemaps alone list
  std::vector<std::string> posts;       // pages with status 200 that feeds alone list
  std::vector<std::string> scripted;    // pages with status 200 for who runs scripts; the first is among them
  std::vector<std::string> shunned;     // nofollow links and what only looks like links; they would answer 200
  // One URL of each thing that is there under many, as it is without sessions; of a trap, the one by which it is
  // entered.
  std::vector<std::string> originals;
};

// Equal options and origins give equal bytes. The only state is how often flaky and throttling pages were asked for, a
// bounded map, never reset; and the nonces of digest.
//
// Cost:    2 µs for a plain page of 4 KiB and no memory for it; a compressed one takes some 30 µs. A bomb
//          is made when first asked for, which takes a good 100 ms, and kept: up to 300 KB each.
// Threads: any.
class SyntheticWeb {
 public:
  // `origins[h]` is host h's "http://name:port"; there must be as many as `options.hosts`.
  // Throws std::invalid_argument when there are not, when there are no hosts or pages, or on numbers out of range.
  SyntheticWeb(SyntheticWebOptions options, std::vector<std::string> origins);
  ~SyntheticWeb();

  // Throws std::out_of_range when there is no such host. Any target is answered: what is nowhere is 404.
  SyntheticReply reply(const SyntheticRequest& request);

  const SyntheticWebOptions& options() const noexcept;
  const std::vector<std::string>& origins() const noexcept;
  bool has(std::uint32_t host, WebFeature feature) const noexcept;
  // Cost: as rendering every page of the host without its text.
  SyntheticTruth truth(std::uint32_t host) const;
  // How many truth(host).pages are.
  std::uint64_t expected_pages(std::uint32_t host) const { return truth(host).pages.size(); }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argiope
