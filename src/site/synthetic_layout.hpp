// Where everything in a synthetic web is: the URL of each place, what stands at a URL, and the links of each page. Pure
// arithmetic on host and page numbers; no markup (synthetic_page.hpp) and no replies (synthetic_web.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/random.hpp"
#include "site/internal/synthetic_web.hpp"

namespace argiope {

// The place that a URL leads to. All but `leave` are numbered, mostly with the number of the page that links there.
enum class WebPlace : std::uint8_t {
  page,     // 0 is the front page
  print,    // a page's second URL
  query,    // a page's URL with a query in the encoding of the page that links to it
  session,  // a page's URL with a session, which robots.txt forbids
  old,      // redirects to `page` or to `moved`
  moved,    // redirects to `page`
  leave,    // redirects off-site
  missing,  // 404 or 410
  flaky,
  press,      // allowed inside what robots.txt forbids
  note,       // forbidden by robots.txt
  sponsored,  // a page that asks not to be followed
  ad,         // where nofollow links lead
  phantom,    // where what is no link would lead
  step,       // of the chain, from 1
  paper,      // PDF
  figure,     // PNG
};

struct SyntheticLink {
  WebPlace place;
  std::uint32_t host;
  std::uint32_t number;
  std::uint64_t chance = 0;  // for the way it is written
};

// Which pages have something: those with (host + page) % period == phase.
struct PageMark {
  WebFeature feature;
  std::uint32_t period;
  std::uint32_t phase;
};
inline constexpr PageMark kRedirectedMark{WebFeature::redirects, 15, 7};
inline constexpr PageMark kCompressedMark{WebFeature::compressed, 8, 3};
inline constexpr PageMark kOddEncodingMark{WebFeature::encodings, 16, 5};  // never on a compressed page
inline constexpr PageMark kBasedMark{WebFeature::base, 20, 9};
inline constexpr PageMark kPrintMark{WebFeature::duplicates, 25, 11};
inline constexpr PageMark kPrivateMark{WebFeature::robots, 20, 13};
inline constexpr PageMark kNofollowMark{WebFeature::nofollow, 20, 17};
inline constexpr PageMark kSponsoredMark{WebFeature::nofollow, 20, 19};
inline constexpr PageMark kPhantomMark{WebFeature::phantoms, 10, 1};
inline constexpr PageMark kFilesMark{WebFeature::resources, 10, 5};
inline constexpr PageMark kOffsiteMark{WebFeature::offsite, 10, 9};
inline constexpr PageMark kPartlessMark{WebFeature::broken, 50, 21};  // without the part to which fragments lead

inline constexpr std::uint32_t kIndexLinks = 400;
inline constexpr std::uint32_t kFlakyPages = 2;
inline constexpr std::uint32_t kChainSteps = 20;
inline constexpr std::uint32_t kMissingPages = 1000;  // distinct broken links of a host
inline constexpr std::uint32_t kPhantomKinds = 4;     // phantoms of a page
inline constexpr std::uint32_t kHiddenPages = 10;     // of a host, that its sitemaps alone list
inline constexpr std::uint32_t kPosts = 8;            // of a host, that its feeds alone list
inline constexpr std::string_view kOffsiteOrigin = "http://www.example.invalid";

// The encodings that pages are written in where kOddEncodingMark is.
struct OddEncoding {
  enum class Unit : std::uint8_t { byte, utf16_le, utf16_be };
  std::string_view content_type;
  std::string_view meta;  // into the head
  std::string_view mark;  // before everything
  Unit unit;
  std::string_view sample;  // a name in the encoding; in UTF-8 where the unit is not a byte
  std::string_view query;   // the same, as it must be percent-encoded in a URL's query
};
const OddEncoding& odd_encoding_of(std::uint32_t page) noexcept;

// Guarded pages that are numbered from 1, the first linked from the front page and each from the one before.
struct GuardedPages {
  WebFeature feature;
  std::string_view folder;
};
inline constexpr std::array kGuardedPages = {
    GuardedPages{WebFeature::cookies, "/cookies/step-"}, GuardedPages{WebFeature::members, "/members/"},
    GuardedPages{WebFeature::basic, "/basic/"}, GuardedPages{WebFeature::digest, "/digest/"}};
inline constexpr std::uint32_t kGuardedPagesOfEach = 6;

// Threads: any; it never changes.
class SyntheticLayout {
 public:
  struct Location {
    WebPlace place;
    std::uint32_t number;
  };

  // Throws std::invalid_argument as SyntheticWeb does.
  SyntheticLayout(SyntheticWebOptions options, std::vector<std::string> origins);

  const SyntheticWebOptions& options() const noexcept { return options_; }
  const std::vector<std::string>& origins() const noexcept { return origins_; }

  bool has(std::uint32_t host, WebFeature feature) const noexcept {
    return (options_.features & bit(feature)) != 0 && (!is_hostile(feature) || is_evil(host));
  }
  bool marked(const PageMark& mark, std::uint32_t host, std::uint32_t page) const noexcept {
    return has(host, mark.feature) && (host + std::uint64_t{page}) % mark.period == mark.phase;
  }
  // Pages that are linked at their old address.
  bool is_redirected(std::uint32_t host, std::uint32_t page) const noexcept {
    return page != 0 && marked(kRedirectedMark, host, page);
  }
  static bool in_two_hops(std::uint32_t page) noexcept { return page / kRedirectedMark.period % 2 == 1; }
  // 64 bits of chance that follow from the seed and the arguments.
  std::uint64_t draw(std::uint32_t host, std::uint64_t page, std::uint64_t what) const noexcept {
    return mix64(mix64(mix64(options_.seed + host) + page) + what);
  }

  // When a page was last modified: within a year before 2026.
  WallTime modified_at(std::uint32_t host, std::uint32_t page) const noexcept;

  // Appends path and query as they stand in a request line.
  void append_path(std::string& out, WebPlace place, std::uint32_t number) const;
  std::string url(std::uint32_t host, WebPlace place, std::uint32_t number) const;
  // The place at a path, with or without query; nullopt when the path is nowhere on `host`.
  std::optional<Location> locate(std::uint32_t host, std::string_view target) const;
  // Calls `visit(path)` for each page that is guarded.
  template <class Visit>
  void for_each_guarded(std::uint32_t host, Visit&& visit) const {
    if (has(host, WebFeature::cookies)) {
      for (const std::string_view path : {"/cookies/", "/cookies/there"}) visit(std::string(path));
    }
    for (const GuardedPages& guarded : kGuardedPages) {
      if (!has(host, guarded.feature)) continue;
      for (std::uint32_t i = 1; i <= kGuardedPagesOfEach; ++i) visit(std::string(guarded.folder) + std::to_string(i));
    }
  }

  // Calls `visit(SyntheticLink)` for each link of a page but off-site and hostile ones: the tree's, then random ones,
  // then what features add.
  template <class Visit>
  void for_each_link(std::uint32_t host, std::uint32_t page, Visit&& visit) const {
    const std::uint32_t children = for_each_child(host, page, visit);
    for (std::uint32_t slot = children; slot < options_.links; ++slot) visit(random_link(host, page, slot));
    if (page == 0) for_each_entrance(host, visit);
    const auto extra = [&](const PageMark& mark, WebPlace place) {
      if (marked(mark, host, page)) visit(SyntheticLink{place, host, page});
    };
    extra(kPrintMark, WebPlace::print);
    extra(kOddEncodingMark, WebPlace::query);
    extra(kPrivateMark, WebPlace::press);
    extra(kPrivateMark, WebPlace::note);
    extra(kPrivateMark, WebPlace::session);
    extra(kNofollowMark, WebPlace::ad);
    extra(kSponsoredMark, WebPlace::sponsored);
    extra(kFilesMark, WebPlace::paper);
    extra(kFilesMark, WebPlace::figure);
    if (marked(kPhantomMark, host, page)) {
      for (std::uint32_t kind = 0; kind < kPhantomKinds; ++kind) {
        visit(SyntheticLink{WebPlace::phantom, host, page * kPhantomKinds + kind});
      }
    }
  }

  SyntheticTruth truth(std::uint32_t host) const;

 private:
  bool is_evil(std::uint32_t host) const noexcept {
    return host + std::uint64_t{options_.evil_hosts} >= options_.hosts;
  }
  // Appends a page's path.
  static void append_page_path(std::string& out, std::uint32_t number);
  std::optional<std::uint32_t> page_at(std::string_view path) const;
  SyntheticLink random_link(std::uint32_t host, std::uint32_t page, std::uint32_t slot) const noexcept;

  // The tree: the front page is an index, and each of the others has some of those beyond. Returns how many there were.
  template <class Visit>
  std::uint32_t for_each_child(std::uint32_t host, std::uint32_t page, Visit& visit) const {
    const std::uint64_t index = kIndexLinks;
    const std::uint64_t width = page == 0 ? index : std::max(options_.links / 2, 1u);
    const std::uint64_t first = page == 0 ? 1 : index + (std::uint64_t{page} - 1) * width + 1;
    std::uint32_t count = 0;
    for (std::uint64_t child = first; child < first + width && child < options_.pages; ++child, ++count) {
      const auto number = static_cast<std::uint32_t>(child);
      visit(SyntheticLink{is_redirected(host, number) ? WebPlace::old : WebPlace::page, host, number,
                          draw(host, page, (std::uint64_t{1} << 32) + child)});
    }
    return count;
  }

  // From the front page: other hosts, the chain, and what there is once.
  template <class Visit>
  void for_each_entrance(std::uint32_t host, Visit& visit) const {
    const std::uint64_t hosts = options_.hosts;
    if (options_.cross_links) {
      // From h to 2h + 1 and 2h + 2: any host is reached from any other in log2(hosts) steps.
      for (const std::uint64_t other : {(host + std::uint64_t{1}) % hosts, (2 * std::uint64_t{host} + 1) % hosts,
                                        (2 * std::uint64_t{host} + 2) % hosts}) {
        if (other != host) visit(SyntheticLink{WebPlace::page, static_cast<std::uint32_t>(other), 0});
      }
    }
    if (has(host, WebFeature::chain)) visit(SyntheticLink{WebPlace::step, host, 1});
    if (has(host, WebFeature::redirects) && has(host, WebFeature::offsite))
      visit(SyntheticLink{WebPlace::leave, host, 0});
    for (std::uint32_t i = 0; i < kFlakyPages && has(host, WebFeature::flaky); ++i) {
      visit(SyntheticLink{WebPlace::flaky, host, i});
    }
  }

  const SyntheticWebOptions options_;
  const std::vector<std::string> origins_;
};

// The entrance to each hostile feature, below "/NAME/". Few, so that a crawler which gives up a host after some
// failures in a row still meets them all; other numbers answer too.
struct HostileEntrance {
  WebFeature feature;
  std::array<std::string_view, 4> entrances;
};
inline constexpr std::array kHostileEntrances = {
    HostileEntrance{WebFeature::loops, {"0", "2", "3"}},
    HostileEntrance{WebFeature::endless, {"0", "mirror/", "deep/", "search?q=silk&amp;page=1"}},
    HostileEntrance{WebFeature::drip, {"0"}},
    HostileEntrance{WebFeature::reset, {"0", "all"}},
    HostileEntrance{WebFeature::lengths, {"0", "1"}},
    HostileEntrance{WebFeature::silent, {"0"}},
    HostileEntrance{WebFeature::garbage, {"0"}},
    HostileEntrance{WebFeature::bomb, {"0"}},
    HostileEntrance{WebFeature::flood, {"0"}},
    HostileEntrance{WebFeature::closed, {"0"}},
    HostileEntrance{WebFeature::throttling, {"0"}},
    HostileEntrance{WebFeature::failing, {"0"}},
    HostileEntrance{WebFeature::headers, {"0", "1"}},
    HostileEntrance{WebFeature::odd, {"0"}},
};

}  // namespace argiope
