// Depths are counted again: a shorter way to a page may be found when it was fetched already by a longer one.
#include <spdlog/spdlog.h>

#include <limits>

#include "crawl/run/shared.hpp"

namespace argiope {
namespace {

constexpr std::uint32_t kUnknownDepth = std::numeric_limits<std::uint32_t>::max();
// A site can lead back and forth so that each round finds one URL: its depths are left as they are then.
constexpr int kMostDepthRounds = 100;

}  // namespace

// By all links that are stored. Empty: none is nearer than it is stored.
Result<std::vector<std::uint32_t>> Crawler::Shared::depths_by_links() {
  std::vector<std::uint32_t> depths(static_cast<std::size_t>(store.next_id()), kUnknownDepth);
  const auto depth_of = [&](std::int64_t id) -> std::uint32_t& { return depths.at(static_cast<std::size_t>(id)); };
  bool is_nearer = false;
  auto read = store.scan(
      1,
      [&](const UrlRecord& record) {
        depth_of(record.url_id) = scope.is_seed(record.url) ? 0 : record.depth;
        is_nearer = is_nearer || depth_of(record.url_id) < record.depth;
        return true;
      },
      UrlStore::Fields::to_go_on);
  if (!read) return std::unexpected(std::move(read.error()));
  // Each round goes one link farther at least; links to later ids, which are most, are all followed in one.
  bool changed = true;
  for (int round = 0; changed && round < kMostDepthRounds; ++round) {
    changed = false;
    auto followed = store.scan_links([&](const UrlLinks& links) {
      const std::uint32_t from = depth_of(links.url_id);
      if (from == kUnknownDepth) return true;
      for (const std::int64_t target : links.targets) {
        if (target <= 0 || target >= std::ssize(depths) || depth_of(target) == kUnknownDepth) continue;
        const std::uint32_t depth = from + (links.redirect ? 0 : 1);
        if (depth >= depth_of(target)) continue;
        depth_of(target) = depth;
        changed = true;
      }
      return true;
    });
    if (!followed) return std::unexpected(std::move(followed.error()));
    is_nearer = is_nearer || changed;
  }
  if (changed)
    spdlog::warn("not all depths are those of the shortest ways: they change after {} looks at all links",
                 kMostDepthRounds);
  if (!is_nearer) depths.clear();
  return depths;
}

Result<void> Crawler::Shared::shorten_depths() {
  std::vector<std::uint32_t> nearer;  // by id
  if (keeps_links) {
    auto counted = depths_by_links();
    if (!counted) return std::unexpected(std::move(counted.error()));
    nearer = std::move(*counted);
  } else {
    nearer = depth_book.recount();
  }
  if (nearer.empty()) return {};
  UrlBatch batch;
  auto written = store.scan(
      1,
      [&](const UrlRecord& record) {
        const auto id = static_cast<std::size_t>(record.url_id);
        if (id < nearer.size() && nearer[id] < record.depth) {
          batch.depths.push_back({record.url_id, nearer[id], crawl_priority(options, nearer[id], record.url)});
        }
        return true;
      },
      UrlStore::Fields::to_go_on);
  if (!written || batch.size() == 0) return written;
  store.submit(std::move(batch));
  return store.flush();
}

}  // namespace argiope
