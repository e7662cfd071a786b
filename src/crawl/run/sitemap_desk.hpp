// Sitemaps and feeds: how they are found, and what becomes of what they list. Nothing here runs in a crawl that asks
// for neither.
//
// A sitemap is a URL of the crawl with the reason `sitemap`: it is fetched with the politeness and the attempts of
// any other, and with what is stored of it the next run asks whether it has changed. Its list is stored in one batch
// with its outcome, so that it is read whole or not at all.
#pragma once

#include <cstdint>
#include <deque>

#include "argiope/web/robots.hpp"
#include "crawl/run/shard.hpp"

namespace argiope {

class Crawler::Shard::SitemapDesk : private Part {
 public:
  SitemapDesk(Core& core, Discovery& discovery, HostHops& hops);

  // --- finding them
  void add_given_sitemaps();
  // Those that robots.txt names may be anywhere: it speaks for its host (sitemaps.org, "Cross Submits").
  void find_sitemaps(Host& host, const RobotsRules* rules);
  // Whether there is something at the next of the usual places: what is not there is no broken link.
  Coro<void> guess_sitemap(Host& host);
  // The feeds that a page announces. Called before its links are followed, which would take them for pages.
  void add_feeds_of(Visit& visit, UrlBatch& batch);
  // A page that should be a sitemap redirects: what it leads to should be one, too.
  void pass_on_sitemap(const Visit& visit, const UrlTask& task, UrlBatch& batch);

  // --- reading them
  // False: as many as may be are being read; the host is pinned, and asked again when it is its turn.
  bool enter(Visit& visit);
  void leave(TimePoint now);
  // Whether the answer is to be read as a sitemap; one that was queued as a page is none from now on, if it is a
  // list. Some sites name their front page.
  bool is_sitemap(Visit& visit);
  // False: it is none.
  bool on_sitemap(Visit& visit, UrlBatch& batch);

 private:
  struct Origin {
    std::int64_t id = 0;  // of what named it; 0: robots.txt or the options
    std::uint32_t depth = 0;
    std::uint8_t nesting = 0;
    std::uint8_t redirects = 0;
  };
  void add_sitemap(const Url& url, const Origin& origin, UrlBatch& batch);
  void add_sitemap_by_itself(const Url& url);
  bool read_sitemap_of(Visit& visit, UrlBatch& batch);
  void note_no_sitemap(const UrlTask& task);
  void ask_if_newer(const Url& url, WallTime modified, UrlBatch& batch);

  Discovery& discovery_;
  HostHops& hops_;
  std::size_t under_way_ = 0;
  std::deque<Host*> waiting_;  // hosts whose sitemaps wait for their turn to be read; each pinned
};

}  // namespace argiope
