// The sinks of a crawl, one after the other: archives, mirrors, records.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/base/error.hpp"
#include "argiope/crawl/page.hpp"

namespace argiope {

// Threads: as those of each CrawlSink.
class CrawlSinks {
 public:
  // `sinks` outlives it.
  explicit CrawlSinks(const std::vector<std::shared_ptr<CrawlSink>>& sinks)
      : sinks_(sinks),
        wants_wire_(std::ranges::any_of(sinks, [](const auto& sink) { return sink->wants_wire(); })),
        can_lack_(std::ranges::any_of(sinks, [](const auto& sink) { return sink->can_lack(); })) {}

  bool empty() const noexcept { return sinks_.empty(); }
  bool wants_wire() const noexcept { return wants_wire_; }
  // Whether lacks() is worth asking.
  bool can_lack() const noexcept { return can_lack_; }
  // Whether one of them should have what earlier runs have fetched of the URL, and has not.
  bool lacks(std::string_view url) const {
    return can_lack_ && std::ranges::any_of(sinks_, [&](const auto& sink) { return sink->lacks(url); });
  }

  // Errors: that of the first that cannot take it.
  Result<void> take(const Exchange& exchange) const {
    for (const auto& sink : sinks_) {
      if (auto taken = sink->take(exchange); !taken) return taken;
    }
    return {};
  }
  // Whether they have more to work off than there should be.
  bool are_behind() const {
    return std::ranges::any_of(sinks_, [](const auto& sink) { return sink->backlog() > kMostBacklogOfOne; });
  }
  // All of them, whatever becomes of one. Errors: the first.
  Result<void> finish() const {
    Result<void> finished;
    for (const auto& sink : sinks_) {
      if (auto done = sink->finish(); finished && !done) finished = std::move(done);
    }
    return finished;
  }

 private:
  static constexpr std::size_t kMostBacklogOfOne =
      16 * 1024 * 1024;  // bytes that one may lag behind before fetching pauses

  const std::vector<std::shared_ptr<CrawlSink>>& sinks_;
  const bool wants_wire_;
  const bool can_lack_;
};

}  // namespace argiope
