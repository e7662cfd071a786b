#include "argiope/base/fingerprint.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdio>

namespace argiope {
namespace {

constexpr std::uint32_t kFirstCapacity = 64;
// The fullest a segment gets: linear probing in order of value stays short up to here.
constexpr std::uint32_t fullest(std::uint32_t capacity) noexcept {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(capacity) * 3 / 4);
}

}  // namespace

std::uint64_t fingerprint(std::string_view bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }
std::uint64_t fingerprint(std::string_view bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::string content_digest(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}

FingerprintSet::FingerprintSet() = default;

bool FingerprintSet::insert(std::uint64_t value) {
  if (value == 0) {
    if (has_zero_) return false;
    ++size_;
    return has_zero_ = true;
  }
  Segment& segment = segments_[value >> (64 - kSegmentBits)];
  for (;;) {
    if (segment.capacity == 0) grow(segment, kFirstCapacity);
    std::uint64_t& slot = segment.slots[find(segment, value)];
    if (slot == value) return false;
    if (segment.used < fullest(segment.capacity)) {
      slot = value;
      ++segment.used;
      ++size_;
      return true;
    }
    grow(segment, segment.capacity + segment.capacity / 4);
  }
}

bool FingerprintSet::contains(std::uint64_t value) const noexcept {
  if (value == 0) return has_zero_;
  const Segment& segment = segments_[value >> (64 - kSegmentBits)];
  if (segment.capacity == 0) return false;
  return segment.slots[find(segment, value)] == value;
}

// Where `value` is, or the empty slot where it would go. Never more than three quarters are full, so there is one.
std::size_t FingerprintSet::find(const Segment& segment, std::uint64_t value) noexcept {
  std::size_t place = ideal(value, segment.capacity);
  while (segment.slots[place] != 0 && segment.slots[place] != value) {
    if (++place == segment.capacity) place = 0;
  }
  return place;
}

void FingerprintSet::grow(Segment& segment, std::uint32_t capacity) {
  Segment bigger{std::make_unique<std::uint64_t[]>(capacity), capacity, segment.used};
  for (std::size_t i = 0; i < segment.capacity; ++i) {
    const std::uint64_t value = segment.slots[i];
    if (value != 0) bigger.slots[find(bigger, value)] = value;
  }
  segment = std::move(bigger);
}

std::size_t FingerprintSet::memory_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const Segment& segment : segments_) {
    bytes += segment.capacity * sizeof(std::uint64_t);
  }
  return bytes;
}

void FingerprintSet::reserve(std::size_t count) {
  const auto capacity = static_cast<std::uint32_t>(std::min<std::size_t>(count / kSegments * 3 / 2 + kFirstCapacity,
                                                                         0x7fffffff));
  for (Segment& segment : segments_) {
    if (segment.capacity < capacity) grow(segment, capacity);
  }
}

void FingerprintSet::clear() {
  for (Segment& segment : segments_) segment = Segment{};
  size_ = 0;
  has_zero_ = false;
}

}  // namespace argiope
