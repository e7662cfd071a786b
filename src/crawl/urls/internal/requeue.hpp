// Having URLs fetched again that a crawl has dealt with: `--requeue` of a run, and `argiope crawl requeue` between two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "crawl/urls/internal/url_query.hpp"

namespace argiope {

// The outcome by which a URL is fetched anew: whole, since its validators go; for what it was fetched for, so that it
// is only checked if it was; and what its last answer was stays, so that a change is found.
UrlOutcome queued_anew(const UrlRecord& record);

// The outcome that makes the next run fetch it anew and whole, whatever its age. nullopt: nothing does, because it
// waits already, or because it is for the run's options to say whether it belongs to the crawl.
std::optional<UrlOutcome> requeued(const UrlRecord& record);

struct RequeueCounts {
  std::uint64_t queued = 0;   // to be fetched again
  std::uint64_t waiting = 0;  // they were already
  std::uint64_t left = 0;     // options leave them out
};

// Those that match, at most `most` of which are queued. Unless `dry_run`, they are durable when this returns. Errors:
// the store's.
Result<RequeueCounts> requeue_matching(UrlStore& store, const UrlMatcher& matches, std::uint64_t most, bool dry_run);
// The same while a crawl writes the database at `path`, by its inbox: that crawl takes them up, or the next one.
// `store` was opened to look at it.
Result<RequeueCounts> requeue_by_inbox(UrlStore& store, const std::string& path, const UrlMatcher& matches,
                                       std::uint64_t most);

}  // namespace argiope
