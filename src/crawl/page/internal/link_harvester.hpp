// From a page's links as they are written to absolute URLs. Called once a page by the crawl shard and by the rules of
// projects, which decide what to do with each URL.
//
// Pages of a site repeat the same links by the hundred. A direct-mapped cache of (directory, link text) pairs that
// were dealt with already lets them pass without being resolved again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/web/http.hpp"
#include "argiope/web/link_scanner.hpp"
#include "argiope/web/url.hpp"
#include "base/internal/fingerprint.hpp"
#include "crawl/page/internal/page_view.hpp"

namespace argiope {

class LinkHarvester {
 public:
  struct Link {
    const Url& url;  // absolute, http or https, without fragment
    LinkKind kind;
    bool nofollow;
  };
  struct Summary {
    std::size_t links = 0;         // found on the page
    std::size_t invalid = 0;       // not URLs at all
    std::size_t other_scheme = 0;  // mailto:, javascript: …
    std::size_t dropped = 0;       // beyond `max_links`, or far too long
    bool noindex = false;
    bool nofollow = false;  // the page's meta robots says so; none of its links was reported
  };

  // `agent` is the name a meta element may address instead of "robots", of pages that harvest() reads; of a page's
  // links the first `max_links` are taken.
  explicit LinkHarvester(std::string agent, std::size_t max_links = ScanOptions{}.max_links);
  LinkHarvester(const LinkHarvester&) = delete;
  LinkHarvester& operator=(const LinkHarvester&) = delete;

  // Calls `visit(Link)` for each link that was not seen from the same directory before. `context` is mixed into that
  // memory: links of different contexts (depths, say) do not hide each other.
  template <class Visit>
  Summary harvest(const Url& url, const HttpResponse& response, std::uint64_t context, Visit&& visit) {
    PageView page(url, response.body, response.headers.content_type);
    return harvest(page, context, std::forward<Visit>(visit));
  }
  // Of a page of which nothing has been read but its text. It is read no longer than this lives.
  template <class Visit>
  Summary harvest(PageView& page, std::uint64_t context, Visit&& visit) {
    page.read_as({.agent = agent_, .max_links = max_links_, .pool = &pool_});
    Summary summary = summary_of(page);
    follow(page, summary, context, std::forward<Visit>(visit));
    return summary;
  }
  // The same in two steps, of a page that is read as its owner has said.
  Summary summary_of(PageView& page) const;
  template <class Visit>
  void follow(PageView& page, Summary& summary, std::uint64_t context, Visit&& visit) {
    const auto visit_once = [&visit](const Link& link) -> std::uint64_t {
      visit(link);
      return 0;
    };
    follow(page, summary, context, visit_once, [](std::uint64_t) {});
  }
  // `visit` gives what to remember of the link, and `again` is called with it where the link is met once more, unless
  // that is 0.
  template <class Visit, class Again>
  void follow(PageView& page, Summary& summary, std::uint64_t context, Visit&& visit, Again&& again) {
    if (summary.nofollow) return;
    const LinkResolver& links = page.resolver();
    // Queries are written in the page's encoding.
    const std::uint64_t directory = fingerprint(directory_of(links.base()), context ^ fingerprint(links.encoding()));
    for (const ScannedLink& link : links_of(page)) {
      const std::string_view text = without_fragment(link.url);
      if (text.empty() && &links.base() == &page.url()) continue;  // the page itself
      // A reference that is empty or begins with "?" is resolved against more than the directory.
      const bool by_directory = !text.empty() && text.front() != '?';
      KnownLink passing;
      KnownLink* known = &passing;
      if (!link.nofollow && by_directory) {
        const std::uint64_t pair = fingerprint(text, directory);
        known = &known_[pair & (kKnownLinks - 1)];
        if (is_met(*known, pair)) {
          if (known->what != 0) again(known->what);
          continue;
        }
      }
      const UrlStatus parsed = links.resolve(text, resolved_);
      if (parsed == UrlStatus::ok) {
        known->what = visit(Link{resolved_, link.kind, link.nofollow});
      } else if (parsed == UrlStatus::unsupported) {
        ++summary.other_scheme;
      } else {
        ++summary.invalid;
      }
    }
  }
  // The URL that the page's first `link rel=canonical` names, without fragment; else the one that `header` does, a
  // reference as it is written. False: there is none.
  bool find_canonical(PageView& page, std::string_view header, Url& canonical) const;

 private:
  static constexpr std::size_t kKnownLinks = std::size_t{1} << 15;
  // Those that are taken.
  std::span<const ScannedLink> links_of(PageView& page) const {
    const std::span<const ScannedLink> found = page.scan().links;
    return found.first(std::min(found.size(), max_links_));
  }
  static std::string_view without_fragment(std::string_view text) noexcept;
  static std::string_view directory_of(const Url& url) noexcept;

  struct KnownLink {
    std::uint64_t pair = 0;  // of directory and text
    std::uint64_t what = 0;  // is remembered of it
  };
  // Whether the pair was met before; else it is remembered.
  static bool is_met(KnownLink& slot, std::uint64_t pair) noexcept {
    if (slot.pair == pair) return true;
    slot = {pair, 0};
    return false;
  }

  const std::string agent_;
  const std::size_t max_links_;
  PageBufferPool pool_;  // of pages that harvest() reads
  Url resolved_;
  std::vector<KnownLink> known_;
};

}  // namespace argiope
