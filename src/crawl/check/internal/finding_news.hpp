// The faults that a run has found and the run before it had not; and where the first of them is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "argiope/base/error.hpp"
#include "argiope/store/detail/url_store.hpp"
#include "crawl/check/internal/link_check.hpp"

namespace argiope {

// Of findings errors alone count: warnings are no news.
struct FindingNews {
  // How many the last run that looked for the same kinds had not found. nullopt: there was none, or it had found too
  // many.
  std::optional<std::uint64_t> fresh;
  // The first of those, or else of all, and where it is: "http://a.test/x on http://a.test/ and 2 more pages". Empty:
  // there is none.
  std::string first;
};

// Compares, and remembers in the store what was found, for the next run. `is_whole`: `findings` are all that there are;
// what is not whole is not compared, and is forgotten. At most 100,000 errors are remembered, in 17 bytes each.
// Errors: the store's.
Result<FindingNews> note_findings(UrlStore& store, std::span<const LinkFinding> findings, std::uint32_t kinds,
                                  bool is_whole);

}  // namespace argiope
