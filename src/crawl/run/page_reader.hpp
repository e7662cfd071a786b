// Reads pages and style sheets: for the links that are followed, for the files that pages are shown with, and for
// whether a page is there in another place.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "crawl/page/internal/link_harvester.hpp"
#include "crawl/page/internal/page_text.hpp"
#include "crawl/run/shard.hpp"
#include "web/html/internal/page_references.hpp"
#include "web/html/internal/page_words.hpp"

namespace argiope {

class Crawler::Shard::PageReader : private Part {
 public:
  PageReader(Core& core, Discovery& discovery, SitemapDesk& sitemaps);

  // Follows the links of a page.
  void on_page(Visit& visit, UrlBatch& batch);
  // Before it is shown to the sinks: its references, if they are those of the body as it came. Null: not looked for.
  const PageReferences* scan_early(Visit& visit);
  // Finds what the answer is shown with, if that is saved.
  void find_requisites(Visit& visit, UrlBatch& batch);
  // Of the visit's answer. Valid until that of another is asked for.
  PageText& text_of(Visit& visit);
  // Of the answer, which is a page; read once.
  const PageWords& words_of(Visit& visit);

 private:
  // The files it is shown with may be looked for in it.
  bool has_requisites(const Visit& visit) const noexcept;
  // Links and references that were found refer to the text.
  bool is_scanned(const Visit& visit) const noexcept {
    return visit.scan != 0 && visit.scan == scans_ && visit.text == texts_;
  }
  // Its links, and its references if it may have requisites, unless it was scanned last.
  LinkHarvester::Summary scan_page(Visit& visit);
  bool follow_link(const UrlTask& from, const Url& url, UrlBatch& batch);
  void follow_refresh(const Visit& visit, UrlBatch& batch);
  void discover_own_urls(const Visit& visit, UrlBatch& batch);

  // --- what is there in several places; with `shared_.duplicates` alone
  bool is_copy(Visit& visit, UrlBatch& batch);
  bool is_alias(Visit& visit, UrlBatch& batch);
  DuplicateBook::Copy find_copy(const Visit& visit, const UrlBatch& batch);
  void learn_parameters(const Visit& visit, UrlBatch& batch);
  void note_copy(UrlBatch& batch, Exclusion why, std::int64_t other);

  Discovery& discovery_;
  SitemapDesk& sitemaps_;
  PageText text_;            // of the answer that was read last
  std::uint64_t texts_ = 0;  // of answers, ever
  LinkHarvester harvester_;
  LinkHarvester::Summary scanned_;  // of the page that was scanned last
  std::uint64_t scans_ = 0;         // of pages, ever
  PageReferences references_;       // where assets are looked for
  Url found_;                       // the link or reference being looked at
  Url canonical_;                   // what the page is in another place
  PageWordReader words_;
  std::optional<PageWords> said_;  // by that answer, once it was read for that
  std::vector<std::uint64_t> known_requisites_;
};

}  // namespace argiope
