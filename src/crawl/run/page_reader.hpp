// Reads pages and style sheets: for the links that are followed, for the files that pages are shown with, and for
// whether a page is there in another place.
#pragma once

#include <cstdint>
#include <vector>

#include "crawl/page/internal/link_harvester.hpp"
#include "crawl/run/shard.hpp"
#include "web/html/internal/page_references.hpp"

namespace argiope {

class Crawler::Shard::PageReader : private Part {
 public:
  PageReader(Core& core, Discovery& discovery, SitemapDesk& sitemaps);

  // The page is there: how it is read from here on.
  void begin(Visit& visit);
  // Follows the links of a page, and finds what the answer is shown with, if that is saved.
  void take(Visit& visit, VisitOutcome& outcome);
  // Before it is shown to the sinks: its references, if they are those of the body as it came. Null: not looked for.
  const PageReferences* scan_early(Visit& visit);

 private:
  void follow_links(Visit& visit, UrlBatch& batch);
  void find_requisites(Visit& visit, UrlBatch& batch);
  // The files it is shown with may be looked for in it.
  bool has_requisites(const Visit& visit) const;
  bool follow_link(const UrlTask& from, const Url& url, UrlBatch& batch);
  void follow_refresh(const Visit& visit, UrlBatch& batch);
  void discover_own_urls(const Visit& visit, UrlBatch& batch);

  // --- what is there in several places; with `shared_.duplicates` alone
  bool is_copy(Visit& visit, UrlBatch& batch);
  bool is_alias(Visit& visit, UrlBatch& batch);
  DuplicateBook::Copy find_copy(Visit& visit, const UrlBatch& batch);
  void learn_parameters(Visit& visit, UrlBatch& batch);
  void note_copy(UrlBatch& batch, Exclusion why, std::int64_t other);

  Discovery& discovery_;
  SitemapDesk& sitemaps_;
  PageBufferPool buffers_;
  LinkHarvester harvester_;
  Url found_;      // the link or reference being looked at
  Url canonical_;  // what the page is in another place
  std::vector<std::uint64_t> known_requisites_;
};

}  // namespace argiope
