#include "argiope/web/detail/byte_rate.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace argiope {
namespace {

constexpr std::size_t kLeastPiece = 1024;
constexpr std::size_t kLargestPiece = 64 * 1024;
constexpr std::uint64_t kPiecesPerSecond = 16;

}  // namespace

ByteRate::ByteRate(std::uint64_t bytes_per_second)
    : rate_(bytes_per_second),
      piece_(static_cast<std::size_t>(
          std::clamp<std::uint64_t>(bytes_per_second / kPiecesPerSecond, kLeastPiece, kLargestPiece))),
      paid_until_(std::numeric_limits<Duration::rep>::min()) {
  if (bytes_per_second == 0) throw std::invalid_argument("a rate of 0 bytes a second: nothing would ever come");
}

TimePoint ByteRate::pay(std::size_t bytes, TimePoint now) noexcept {
  const Duration cost = from_seconds(static_cast<double>(bytes) / static_cast<double>(rate_));
  const Duration::rep full = saturating_add(now, -kBurst).time_since_epoch().count();
  Duration::rep before = paid_until_.load(std::memory_order_relaxed);
  Duration::rep after = 0;
  do {
    after = saturating_add(TimePoint{Duration{std::max(before, full)}}, cost).time_since_epoch().count();
  } while (!paid_until_.compare_exchange_weak(before, after, std::memory_order_relaxed));
  return TimePoint{Duration{after}};
}

}  // namespace argiope
