#include "argiope/base/fingerprint.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdio>

namespace argiope {
namespace {

// Slots beyond the last ideal place, for runs that reach over it. A run longer than this makes the segment grow.
constexpr std::uint32_t kOverflow = 64;
constexpr std::uint32_t kFirstCapacity = 64;
// The fullest a segment gets: linear probing in order of value stays short up to here.
constexpr std::uint32_t fullest(std::uint32_t capacity) noexcept {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(capacity) * 3 / 4);
}
constexpr std::size_t table_size(std::uint32_t capacity) noexcept { return capacity + std::size_t{kOverflow} + 1; }

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
    std::uint64_t* const slots = segment.slots.get();
    std::size_t place = ideal(value, segment.capacity);
    while (slots[place] != 0 && slots[place] != value) ++place;  // the last slot is always empty
    if (slots[place] == value) return false;
    if (segment.used < fullest(segment.capacity) && place < table_size(segment.capacity) - 1) {
      slots[place] = value;
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
  std::size_t place = ideal(value, segment.capacity);
  while (segment.slots[place] != 0 && segment.slots[place] != value) ++place;
  return segment.slots[place] == value;
}

void FingerprintSet::grow(Segment& segment, std::uint32_t capacity) {
  for (;; capacity += capacity / 4) {
    auto slots = std::make_unique<std::uint64_t[]>(table_size(capacity));
    const std::size_t old_size = segment.capacity == 0 ? 0 : table_size(segment.capacity);
    bool fits = true;
    for (std::size_t i = 0; i < old_size && fits; ++i) {
      const std::uint64_t value = segment.slots[i];
      if (value == 0) continue;
      std::size_t place = ideal(value, capacity);
      while (slots[place] != 0) ++place;
      fits = place < table_size(capacity) - 1;
      slots[place] = value;
    }
    if (!fits) continue;  // all but impossible with spread values: a run over the table's end
    segment.slots = std::move(slots);
    segment.capacity = capacity;
    return;
  }
}

std::size_t FingerprintSet::memory_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const Segment& segment : segments_) {
    if (segment.capacity != 0) bytes += table_size(segment.capacity) * sizeof(std::uint64_t);
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
