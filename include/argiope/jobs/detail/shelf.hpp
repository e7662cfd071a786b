// Shelves: ordered sets of what waits in a store, jobs or pages. A window reads them from their beginnings.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "argiope/base/clock.hpp"
#include "argiope/jobs/job.hpp"

namespace argiope {

// Two of them hold what is ready: what is found by its rank in the whole queue, and what was set aside because so much
// of its key lies before it, found by its rank in the key. A page's key is its site, and its id its url_id.
enum class Shelf : std::uint8_t { ready, set_aside, delayed, waiting /* for other jobs */ };

// A place in the order of what is ready: higher (ranked) priority first, then smaller id. Later is less important.
struct Rank {
  std::int32_t priority = std::numeric_limits<std::int32_t>::max();
  JobId id = 0;

  static constexpr Rank last() noexcept {
    return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<JobId>::max()};
  }
  // The place next to it. There is none before the first id; that one may be read again.
  constexpr Rank before() const noexcept { return {priority, id == 0 ? 0 : id - 1}; }
  constexpr Rank after() const noexcept { return {priority, id + 1}; }
  friend bool operator==(const Rank&, const Rank&) = default;
};
constexpr bool more_important(const Rank& a, const Rank& b) noexcept {
  return a.priority != b.priority ? a.priority > b.priority : a.id < b.id;
}
constexpr bool comes_before(const Rank& a, const Rank& b) noexcept { return more_important(a, b); }

// A place in the order of what is delayed: the earliest first, then smaller id.
struct DueRank {
  WallTime due_at = WallTime::min();
  JobId id = 0;

  static constexpr DueRank last() noexcept { return {WallTime::max(), std::numeric_limits<JobId>::max()}; }
  constexpr DueRank before() const noexcept { return {due_at, id == 0 ? 0 : id - 1}; }
  constexpr DueRank after() const noexcept { return {due_at, id + 1}; }
  friend bool operator==(const DueRank&, const DueRank&) = default;
};
constexpr bool comes_before(const DueRank& a, const DueRank& b) noexcept {
  return a.due_at != b.due_at ? a.due_at < b.due_at : a.id < b.id;
}

// The part of a shelf to read: at most `limit` rows after a place in its order.
struct ShelfRead {
  Shelf shelf = Shelf::ready;  // not waiting
  Rank after{};                // ready, set_aside
  DueRank due_after{};         // delayed
  std::size_t limit = 0;
};

}  // namespace argiope
