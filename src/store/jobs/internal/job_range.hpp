// The ids among which a filter looks for jobs: the same for all stores.
#pragma once

#include <algorithm>

#include "argiope/store/store.hpp"

namespace argiope {

// From `first` to `last`, both included; none where `first` is the greater one.
struct JobRange {
  JobId first = 0, last = 0;
  bool is_empty() const noexcept { return first > last; }
};

inline JobRange range_of(const JobFilter& filter) noexcept {
  const JobId up_to = std::min(filter.up_to, kMostJobId);
  if (!filter.newest_first) return {std::min(filter.after, kMostJobId) + 1, up_to};
  return {1, filter.after == 0 ? up_to : std::min(up_to, filter.after - 1)};
}

}  // namespace argiope
