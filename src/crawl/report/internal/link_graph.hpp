// The pages of a crawl as a graph: who links to whom, how much of it there is, and how much each page matters by that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

// A page: what was answered with 2xx and is no asset and no link that was only checked.
struct GraphPage {
  std::int64_t url_id = 0;
  std::uint32_t depth = 0;
  std::uint32_t inbound = 0;   // other pages that link to it, by redirects too
  std::uint32_t outbound = 0;  // other pages to which it links
  double rank = 0;             // PageRank; that of all pages is 1
  bool is_listed = false;      // a sitemap has it
  // No page links to it, though it was not given: a sitemap has it, or a page linked to it once.
  bool is_orphan = false;
};

// Links count once a page, whatever their number; those with nofollow do not, nor those of a page to itself.
//
// PageRank: damping 0.85, teleports to all pages alike, and so does who links to nobody; until no more than 10⁻⁹ moves
// in a round, or for 200 rounds. The same pages and links give the same bits.
// Memory:   some 50 bytes a page, and 12 a URL; links are read anew in each round.
// Errors:   the store's.
class LinkGraph {
 public:
  static Result<LinkGraph> read(UrlStore& store);

  const std::vector<GraphPage>& pages() const noexcept { return pages_; }  // by url_id
  // Null for what is no page.
  const GraphPage* find(std::int64_t url_id) const noexcept;
  std::uint64_t links() const noexcept { return links_; }
  int rounds() const noexcept { return rounds_; }
  bool converged() const noexcept { return converged_; }

 private:
  friend class GraphReader;
  std::vector<GraphPage> pages_;
  std::uint64_t links_ = 0;
  int rounds_ = 0;
  bool converged_ = true;
};

}  // namespace argiope
