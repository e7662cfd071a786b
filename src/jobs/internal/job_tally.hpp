// The tally of a row, from which a JobTally can be told, in one number that is 0 for nearly all jobs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "argiope/jobs/job.hpp"

namespace argiope::job_tally {

// Some bits of the number, which stay at their most. They are in files.
struct Field {
  unsigned shift;
  unsigned bits;
  constexpr std::uint64_t most() const noexcept { return (std::uint64_t{1} << bits) - 1; }
  constexpr std::uint32_t of(std::uint64_t packed) const noexcept {
    return static_cast<std::uint32_t>(packed >> shift & most());
  }
  constexpr void add(std::uint64_t& packed, std::uint64_t count) const noexcept {
    const std::uint64_t sum = std::min(most(), of(packed) + std::min(count, most()));
    packed = (packed & ~(most() << shift)) | sum << shift;
  }
};
inline constexpr Field kReleases{0, 16};
inline constexpr Field kBuries{16, 12};
inline constexpr Field kKicks{28, 12};
// Runs and leases that attempts and expiries do not count: from before it was kicked, and what ended as done or
// cancelled.
inline constexpr Field kOtherRuns{40, 12};
inline constexpr Field kOtherExpiries{52, 11};

constexpr JobTally tally_of(std::uint64_t packed, std::uint32_t attempts, std::uint32_t expiries, bool runs) noexcept {
  return {.runs = kOtherRuns.of(packed) + attempts + kReleases.of(packed) + (runs ? 1 : 0),
          .timeouts = kOtherExpiries.of(packed) + expiries,
          .releases = kReleases.of(packed),
          .buries = kBuries.of(packed),
          .kicks = kKicks.of(packed)};
}

}  // namespace argiope::job_tally
