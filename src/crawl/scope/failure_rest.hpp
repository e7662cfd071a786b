// How long a URL that several runs have given up waits until a run with a limit asks it again. Pure.
// Runs without a limit come to everything in the end, and ask it each time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "argiope/crawl/crawl_options.hpp"
#include "argiope/store/detail/url_record.hpp"

namespace argiope {

inline constexpr Duration kFirstFailureRest = std::chrono::minutes{10};  // after the second run that gave it up
inline constexpr Duration kLongestFailureRest = std::chrono::hours{24 * 7};

// How many runs in a row have given it up, which its `limit` says unless its reason has another number there.
inline std::uint32_t times_given_up(const UrlRecord& record) noexcept {
  const bool may_count = record.state == UrlState::failed || record.state == UrlState::queued;
  switch (record.reason) {
    case UrlReason::none:
    case UrlReason::checked:
    case UrlReason::asset:
    case UrlReason::sitemap: break;
    case UrlReason::requisite:
      // One that is queued may have been cut off.
      if (record.state == UrlState::failed) break;
      return 0;
    default: return 0;
  }
  return may_count ? static_cast<std::uint32_t>(std::clamp<std::int64_t>(record.limit, 0, 1000)) : 0;
}

// When what was given up is asked again; the epoch: by the next run.
inline WallTime rests_until(const UrlRecord& record) noexcept {
  const std::uint32_t times = times_given_up(record);
  if (record.state != UrlState::failed || times < 2) return WallTime{};
  const Duration rest = kFirstFailureRest * (std::int64_t{1} << std::min<std::uint32_t>(times - 2, 16));
  return record.mtime + std::min(rest, kLongestFailureRest);
}

// Whether a run may stop before it has asked everything.
inline bool has_limit(const CrawlOptions& options) noexcept {
  return options.max_pages > 0 || options.quota > 0 || options.max_time.has_value();
}

}  // namespace argiope
