// Where a crawl is: what its store knows, counted.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "argiope/store/detail/url_store.hpp"

namespace argiope {

struct HostOverview {
  std::string site;  // "http://example.org:8080"
  std::uint64_t queued = 0, done = 0, failed = 0, excluded = 0;
  WallTime last_fetched{};        // the epoch: never
  std::uint64_t last_minute = 0;  // fetched within it
};

struct CrawlOverview {
  static constexpr std::size_t kStates = 4;
  std::uint64_t urls = 0;
  std::array<std::array<std::uint64_t, kUrlReasons>, kStates> counts{};  // by state and reason
  std::uint64_t tried = 0;                // of those queued: asked before, and to be asked again
  std::uint64_t not_due = 0;              // of those queued: not before a time that is to come
  std::map<int, std::uint64_t> statuses;  // of what was answered last
  std::uint64_t broken = 0;               // but for those to which nothing leads any more (find_unlinked())
  std::uint64_t bytes = 0;                // of the bodies that were answered last
  WallTime oldest_waiting{};              // when the queued URL was found that waits longest; the epoch: none
  std::string oldest_waiting_url;
  WallTime last_fetched{};
  std::string last_fetched_url;
  std::uint64_t last_minute = 0, last_hour = 0;  // fetched within them, up to `now`
  std::uint64_t host_count = 0;                  // what is only linked to is none
  std::vector<HostOverview> hosts;  // those with most queued first, then with most done; at most as many as asked for

  std::uint64_t of(UrlState state) const noexcept;
};

// Reads the whole store. Memory: some 64 bytes a host, and what find_unlinked() takes. Errors: those of the store.
Result<CrawlOverview> overview_of(UrlStore& store, WallTime now, std::size_t most_hosts);

}  // namespace argiope
