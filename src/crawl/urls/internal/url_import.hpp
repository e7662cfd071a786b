// URLs of another crawler's database become those of a crawl.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/store/detail/url_store.hpp"

namespace argiope {

struct UrlImport {
  std::uint64_t rows = 0;            // of the other database
  std::uint64_t done = 0;            // taken over as answered
  std::uint64_t failed = 0;          // answered with what may pass: 408, 425, 429, 5xx
  std::uint64_t queued = 0;          // not answered yet
  std::uint64_t known = 0;           // there already, or twice: two spellings of one URL, or only another fragment
  std::uint64_t skipped = 0;         // no URL of http or https
  std::vector<std::string> remarks;  // on the first of those skipped: "url_id 7: "mailto:x": …"

  static constexpr std::size_t kMostRemarks = 10;
};

// Takes over the database of asyncio-crawler at `path`. URLs already in `store` stay as they are, so that an import
// that was interrupted is simply made again. `seed`: of the fingerprints, secret. `now`: the time of rows that have
// none.
// Errors: those of read_asyncio_crawler() and of the store.
Result<UrlImport> import_asyncio_crawler(const std::string& path, UrlStore& store, std::uint64_t seed, WallTime now);

}  // namespace argiope
