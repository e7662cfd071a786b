// Which pages of a crawl say the same, and whose canonical URLs lead astray: found in its store, for reports and
// exports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

// A page that says what another one says, which has the smaller id.
struct PageCopy {
  std::int64_t url_id = 0;
  std::int64_t of = 0;
  int distance = 0;  // of their simhashes, in bits
};

// A page that names another URL as its canonical one, and what is wrong with that.
struct CanonicalConflict {
  std::int64_t url_id = 0;
  std::string canonical;
  std::string what;
};

struct DuplicatePages {
  std::vector<PageCopy> exact;  // the same bytes
  // Nearly the same words, on one host: of pages with other bytes, and where the crawl kept simhashes. Each of the
  // first such page, so that a row of pages that differ a little more each is no group.
  std::vector<PageCopy> near;
  std::vector<CanonicalConflict> conflicts;  // where the crawl kept what heads of pages say
};

// Each list by url_id. Simhashes may differ in as many bits as the last crawl that kept them has noted.
// Memory: some 100 bytes a page. Errors: the store's.
Result<DuplicatePages> find_duplicate_pages(UrlStore& store);

// The note by which a crawl that keeps simhashes tells how near pages are that it takes for the same.
UrlNote near_distance_note(unsigned distance);

}  // namespace argiope
