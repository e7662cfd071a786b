#include "crawl/report/internal/crawl_overview.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/internal/fingerprint.hpp"
#include "crawl/options/internal/host_rules.hpp"
#include "crawl/scope/internal/unlinked_urls.hpp"

namespace argiope {
namespace {

struct HostTally {
  std::int64_t url_id = 0;  // of one of its URLs
  std::uint32_t queued = 0, done = 0, failed = 0, excluded = 0, last_minute = 0;
  WallTime last_fetched{};

  std::uint32_t& of(UrlState state) noexcept {
    switch (state) {
      case UrlState::queued: return queued;
      case UrlState::done: return done;
      case UrlState::failed: return failed;
      case UrlState::excluded: break;
    }
    return excluded;
  }
};

// A URL that was never asked, and is not to be, says nothing about its host.
bool is_only_linked(const UrlRecord& record) noexcept {
  return record.state == UrlState::excluded &&
         (record.reason == UrlReason::off_scope || record.reason == UrlReason::asset ||
          record.reason == UrlReason::requisite);
}

}  // namespace

std::uint64_t CrawlOverview::of(UrlState state) const noexcept {
  const auto& row = counts[static_cast<std::size_t>(state)];
  return std::accumulate(row.begin(), row.end(), std::uint64_t{0});
}

Result<CrawlOverview> overview_of(UrlStore& store, WallTime now, std::size_t most_hosts) {
  CrawlOverview overview;
  const auto unlinked = find_unlinked(store, {});
  if (!unlinked) return std::unexpected(unlinked.error());
  std::unordered_map<std::uint64_t, HostTally> hosts;  // by the fingerprint of the site
  const WallTime minute_ago = now - std::chrono::minutes{1}, hour_ago = now - std::chrono::hours{1};
  const auto count = [&](const UrlRecord& record) {
    ++overview.urls;
    ++overview.counts[static_cast<std::size_t>(record.state)][static_cast<std::size_t>(record.reason)];
    if (record.status_code != 0) ++overview.statuses[record.status_code];
    overview.broken += is_broken(record) && !unlinked->contains(record.url_id);
    overview.bytes += static_cast<std::uint64_t>(std::max<std::int64_t>(record.size, 0));
    if (record.state == UrlState::queued) {
      if (record.attempts > 0) ++overview.tried;
      if (record.due > now) ++overview.not_due;
      if (overview.oldest_waiting == WallTime{} || record.ctime < overview.oldest_waiting) {
        overview.oldest_waiting = record.ctime;
        overview.oldest_waiting_url = record.url;
      }
    }
    const bool lately = record.mtime > minute_ago && record.mtime <= now;
    overview.last_minute += lately;
    overview.last_hour += record.mtime > hour_ago && record.mtime <= now;
    if (record.mtime > overview.last_fetched) {
      overview.last_fetched = record.mtime;
      overview.last_fetched_url = record.url;
    }
    if (is_only_linked(record)) return;
    HostTally& host = hosts[fingerprint(site_in(record.url))];
    host.url_id = record.url_id;
    ++host.of(record.state);
    host.last_minute += lately;
    host.last_fetched = std::max(host.last_fetched, record.mtime);
  };
  // In stretches, so that a crawl that writes the file is not held up for long.
  constexpr std::size_t kRowsAtATime = 100'000;
  std::int64_t from = 1;
  for (bool more = true; more;) {
    std::size_t rows = 0;
    more = false;
    auto scanned = store.scan(from, [&](const UrlRecord& record) {
      count(record);
      from = record.url_id + 1;
      more = ++rows == kRowsAtATime;
      return !more;
    });
    if (!scanned) return std::unexpected(std::move(scanned.error()));
  }
  overview.host_count = hosts.size();
  std::vector<HostTally> order;
  order.reserve(hosts.size());
  for (const auto& [site, host] : hosts) order.push_back(host);
  const auto first = order.begin() + static_cast<std::ptrdiff_t>(std::min(most_hosts, order.size()));
  std::partial_sort(order.begin(), first, order.end(), [](const HostTally& a, const HostTally& b) {
    if (a.queued != b.queued) return a.queued > b.queued;
    return a.done != b.done ? a.done > b.done : a.url_id < b.url_id;
  });
  for (auto host = order.begin(); host != first; ++host) {
    const auto record = store.get(host->url_id);
    if (!record) return std::unexpected(record.error());
    if (!*record) continue;
    overview.hosts.push_back({.site = std::string(site_in((*record)->url)),
                              .queued = host->queued,
                              .done = host->done,
                              .failed = host->failed,
                              .excluded = host->excluded,
                              .last_fetched = host->last_fetched,
                              .last_minute = host->last_minute});
  }
  return overview;
}

}  // namespace argiope
