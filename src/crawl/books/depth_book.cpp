#include "crawl/books/depth_book.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace argiope {

void DepthBook::found(std::span<const FoundUrl> urls) {
  if (is_full_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  for (const FoundUrl& url : urls) {
    if (urls_.size() >= kMostUrls) return is_full_.store(true, std::memory_order_relaxed);
    if (places_.emplace(url.fingerprint, static_cast<std::uint32_t>(urls_.size())).second) urls_.push_back(url);
  }
}

void DepthBook::linked(std::uint64_t from, std::span<const std::uint64_t> targets, bool is_redirect) {
  if (is_full_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  const auto source = places_.find(from);
  if (source == places_.end()) return;
  for (const std::uint64_t fingerprint : targets) {
    if (edges_.size() >= kMostLinks) return is_full_.store(true, std::memory_order_relaxed);
    const auto target = places_.find(fingerprint);
    if (target != places_.end()) {
      edges_.push_back({.from = source->second, .to = target->second, .is_redirect = is_redirect});
    }
  }
}

// The nearest first, so that what a URL leads to is followed when its own depth is known.
std::vector<std::uint32_t> DepthBook::recount() const {
  const std::lock_guard lock(mutex_);
  std::vector<Edge> edges = edges_;
  std::ranges::sort(edges, {}, &Edge::from);
  using Reached = std::pair<std::uint32_t, std::uint32_t>;  // depth, place
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> reached;
  std::vector<std::uint32_t> depths;
  depths.reserve(urls_.size());
  for (const FoundUrl& url : urls_) {
    reached.emplace(url.depth, static_cast<std::uint32_t>(depths.size()));
    depths.push_back(url.depth);
  }
  bool is_nearer = false;
  while (!reached.empty()) {
    const auto [depth, place] = reached.top();
    reached.pop();
    if (depth > depths[place]) continue;  // it was reached by a shorter way
    for (const Edge& edge : std::ranges::equal_range(edges, place, {}, &Edge::from)) {
      const std::uint32_t there = depth + (edge.is_redirect ? 0 : 1), to = edge.to;
      if (there >= depths[to]) continue;
      depths[to] = there;
      reached.emplace(there, to);
      is_nearer = true;
    }
  }
  std::vector<std::uint32_t> by_id;
  if (!is_nearer) return by_id;
  const auto last = std::ranges::max_element(urls_, {}, &FoundUrl::id);
  by_id.assign(static_cast<std::size_t>(last->id) + 1, std::numeric_limits<std::uint32_t>::max());
  for (std::size_t i = 0; i < urls_.size(); ++i) by_id[static_cast<std::size_t>(urls_[i].id)] = depths[i];
  return by_id;
}

}  // namespace argiope
