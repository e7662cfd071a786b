// Depths are counted again: a shorter way to a page may be found when it was fetched already by a longer one.
#include <spdlog/spdlog.h>

#include <limits>

#include "crawl/run/shared.hpp"
#include "web/html/internal/link_kind_names.hpp"

namespace argiope {
namespace {

constexpr std::uint32_t kUnknownDepth = std::numeric_limits<std::uint32_t>::max();
// A site can lead back and forth so that each round finds one URL: its depths are left as they are then.
constexpr int kMostDepthRounds = 100;

// Whether what is linked so is checked with its page, and not followed.
bool is_checked_with_page(std::string_view name) {
  const auto kind = link_kind_named(name);
  return kind && !is_followed(*kind);
}

}  // namespace

// By all links that are stored, and by what pages refer to where that is kept. Empty: none is nearer than it is stored.
Result<std::vector<std::uint32_t>> Crawler::Shared::depths_by_links() {
  std::vector<std::uint32_t> depths(static_cast<std::size_t>(store.next_id()), kUnknownDepth);
  std::vector<bool> is_of_pages(depths.size());
  bool has_assets = options.check_assets;
  bool is_nearer = false;
  auto read = store.scan(
      1,
      [&](const UrlRecord& record) {
        const auto id = static_cast<std::size_t>(record.url_id);
        depths.at(id) = depth_of(record);
        is_of_pages[id] = record.reason == UrlReason::asset || record.reason == UrlReason::requisite;
        has_assets = has_assets || record.reason == UrlReason::asset;
        is_nearer = is_nearer || depths[id] < record.depth;
        return true;
      },
      UrlStore::Fields::to_go_on);
  if (!read) return std::unexpected(std::move(read.error()));
  const auto depth_by_now = [&](std::int64_t id) {
    return id > 0 && id < std::ssize(depths) ? depths[static_cast<std::size_t>(id)] : kUnknownDepth;
  };
  const auto is_shorter = [&](std::uint32_t depth, std::int64_t target) {
    return depth < depth_by_now(target) && depth_by_now(target) != kUnknownDepth;
  };
  bool changed = true;
  const auto reach = [&](std::int64_t target, std::uint32_t depth) {
    depths[static_cast<std::size_t>(target)] = depth;
    changed = true;
  };
  const auto follow = [&](const UrlLinks& links) {
    const std::uint32_t from = depth_by_now(links.url_id);
    if (from == kUnknownDepth) return true;
    const std::uint32_t there = from + (links.redirect ? 0 : 1);
    for (const std::int64_t target : links.targets) {
      if (is_shorter(there, target)) reach(target, there);
    }
    return true;
  };
  // As Discovery::discover_asset() counts.
  const auto follow_kept = [&](std::int64_t page, std::uint32_t, const KeptLink& link) {
    const std::uint32_t from = depth_by_now(page);
    if (from == kUnknownDepth) return true;
    const std::uint32_t there = from + (is_of_pages[static_cast<std::size_t>(page)] ? 0 : 1);
    if (is_shorter(there, link.target) && is_checked_with_page(link.kind)) reach(link.target, there);
    return true;
  };
  // Each round goes one link farther at least; links to later ids, which are most, are all followed in one. What pages
  // refer to leads hardly anywhere.
  for (int round = 0; changed && round < kMostDepthRounds; ++round) {
    changed = false;
    auto followed = store.scan_links(follow);
    if (followed && !changed && has_assets) followed = store.scan_kept_links(follow_kept);
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
