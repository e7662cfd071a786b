#include "argiope/jobs/detail/token_level.hpp"

#include <algorithm>
#include <cmath>

namespace argiope {
namespace {

// Both keep burst · interval within 127 bits, and mean "no end" in practice: 10⁹ permits; 292 years between two.
constexpr std::uint32_t kLargestBurst = 1'000'000'000;
constexpr long double kLongestInterval = 9.2e18L;

// Rounded up: a bucket may be slower than its rate by a part in 10¹⁸, and never faster.
__int128 interval_of(double rate) noexcept {
  const long double ns = std::min(1e9L / static_cast<long double>(rate), kLongestInterval);
  return std::max<__int128>(1, static_cast<__int128>(std::ceil(ns * 4294967296.0L)));
}

}  // namespace

TokenLevel::Fixed TokenLevel::narrow(__int128 value) noexcept {
  constexpr auto kLowest = std::numeric_limits<std::int64_t>::min();
  constexpr auto kHighest = std::numeric_limits<std::int64_t>::max();
  if (value < kLowest * kOne) return {kLowest, 0};
  if (value >= kHighest * kOne) return {kHighest, 0};
  return {static_cast<std::int64_t>(value >> 32), static_cast<std::uint32_t>(value)};
}

void TokenLevel::set(double rate, double burst, TimePoint now) noexcept {
  if (rate == kUnlimitedRate) {
    kind_ = Kind::unlimited;
    full_at_ = kLongAgo;
    interval_ = {};
    burst_ = 1;
    return;
  }
  const auto permits = static_cast<std::uint32_t>(burst >= 1 ? std::min<double>(burst, kLargestBurst) : 1);
  if (!(rate > 0)) {
    // Permits that were taken stay taken: stopping a bucket and starting it again makes no permits.
    kind_ = Kind::nothing;
    return;
  }
  const __int128 interval = interval_of(rate);
  const __int128 old_interval = wide(interval_);
  kind_ = Kind::limited;
  if (interval == old_interval && permits == burst_) return;
  if (old_interval != 0) {
    // Missing permits stay missing in proportion: a full bucket stays full, an empty one stays empty, and changing to
    // and fro makes no permits.
    const __int128 at = static_cast<__int128>(now.time_since_epoch().count()) * kOne;
    const auto missing = static_cast<long double>(std::max<__int128>(0, wide(full_at_) - at));
    const long double old_capacity = static_cast<long double>(old_interval) * burst_;
    const long double capacity = static_cast<long double>(interval) * permits;
    full_at_ = narrow(at + static_cast<__int128>(std::ceil(std::min(missing / old_capacity, 1.0L) * capacity)));
  }
  interval_ = narrow(interval);
  burst_ = permits;
}

TimePoint TokenLevel::next_limited(TimePoint now) const noexcept {
  const __int128 at = static_cast<__int128>(now.time_since_epoch().count()) * kOne;
  const __int128 allowed = wide(full_at_) - wide(interval_) * (burst_ - 1);
  if (allowed <= at) return now;
  return TimePoint{Duration{narrow(allowed + kOne - 1).ns}};
}

void TokenLevel::take_limited(TimePoint now) noexcept {
  const __int128 at = static_cast<__int128>(now.time_since_epoch().count()) * kOne;
  full_at_ = narrow(std::max(wide(full_at_), at) + wide(interval_));
}

void TokenLevel::undo_take() noexcept {
  if (kind_ == Kind::limited) full_at_ = narrow(wide(full_at_) - wide(interval_));
}

}  // namespace argiope
