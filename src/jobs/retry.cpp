#include <algorithm>
#include <cmath>

#include "argiope/jobs/job_queue.hpp"

namespace argiope {

std::optional<Duration> RetryPolicy::delay_after(std::uint32_t attempts, Random& random) const {
  if (attempts >= max_attempts || attempts == 0) return std::nullopt;
  double seconds = 0;
  if (!table.empty()) {
    seconds = to_seconds(table[std::min<std::size_t>(attempts - 1, table.size() - 1)]);
  } else if (first > Duration::zero()) {
    seconds = std::min(to_seconds(first) * std::pow(factor, attempts - 1), to_seconds(longest));
  }
  return from_seconds(std::max(0.0, seconds * (1 - std::clamp(jitter, 0.0, 1.0) * random.unit())));
}

}  // namespace argiope
