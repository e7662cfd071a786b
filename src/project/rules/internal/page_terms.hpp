// On which terms a page is visited: what its rule says, and what was said for the page itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "argiope/base/clock.hpp"
#include "argiope/crawl/crawl_options.hpp"
#include "argiope/jobs/job_queue.hpp"

namespace argiope {

// A mark of what a page is a version of (pyspider's itag): another one than at the last visit means that the page has
// changed. 0: none is given.
using PageTag = std::uint64_t;
PageTag page_tag(std::string_view text) noexcept;

// A page never grows old.
inline constexpr Duration kNeverOld{-1};

// pyspider's retry_delay: 30 s, 1 h, 6 h, 12 h, and 24 h for every further one.
RetryPolicy pyspider_retry_delay();

// A rule's terms for its pages. Taken from the rule whenever it is used, so that a changed rule reaches waiting pages.
struct PageTerms {
  std::int32_t priority = 0;  // higher first
  Duration age = kNeverOld;   // so long a visit that succeeded counts as fresh; negative: for ever
  // Instead of the age an interval that each page has of its own, between these (docs/crawl-revisits.md).
  std::optional<RevisitBounds> adaptive;
  PageTag tag = 0;
  std::uint32_t retries = 3;  // visits after the first that has failed
  bool auto_recrawl = false;  // due again when the page is `age` old, without being asked for. Needs an age, or bounds
  RetryPolicy retry_delay = pyspider_retry_delay();  // how long each waits; its max_attempts counts for nothing
};

// Terms that were given for one page, and go before its rule.
struct OwnTerms {
  std::optional<std::int32_t> priority;
  std::optional<Duration> age;
  std::optional<std::uint32_t> retries;
  std::optional<bool> auto_recrawl;

  friend bool operator==(const OwnTerms&, const OwnTerms&) = default;
};

}  // namespace argiope
