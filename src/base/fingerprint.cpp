#include "base/internal/fingerprint.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

constexpr std::size_t kBucketSlots = 8;
// The fullest a segment gets, in slots: four fifths, where one bucket in ten has spilled into the next.
constexpr std::uint64_t fullest(std::uint64_t buckets) noexcept { return buckets * kBucketSlots * 4 / 5; }
// Of a set of some two million entries and more: its room counts more than its time.
constexpr std::uint32_t kLarge = 1024;
// The size that a full segment of so many buckets grows to.
constexpr std::uint32_t next_count(std::uint32_t buckets) noexcept {
  return buckets < kLarge ? buckets + (buckets * 3 + 9) / 10 : buckets + buckets / 8;
}
// Look-ups of a batch that are under way together: more than a core has line fill buffers gains nothing.
constexpr std::size_t kBatch = 32;

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

FingerprintSet::FingerprintSet(std::uint64_t seed) noexcept : seed_(seed) {}

// One to one, so that the set stays exact.
std::uint64_t FingerprintSet::mixed(std::uint64_t value) const noexcept { return mix64(value ^ seed_); }

// All eight without a branch: one that depends on a slot would hold up every later look-up until its line has come.
bool FingerprintSet::holds(const Bucket& bucket, std::uint64_t mixed) noexcept {
  bool found = false;
  for (const std::uint64_t slot : bucket.slots) found |= slot == mixed;
  return found;
}

bool FingerprintSet::insert(std::uint64_t value) { return insert_mixed(mixed(value)); }

bool FingerprintSet::insert_mixed(std::uint64_t mixed) {
  if (mixed == 0) {
    if (has_zero_) return false;
    ++size_;
    return has_zero_ = true;
  }
  Segment& segment = segments_[mixed >> (64 - kSegmentBits)];
  if (segment.count == 0) grow(segment, 1);
  std::size_t place = ideal(mixed, segment.count);
  for (;;) {
    const Bucket& bucket = segment.buckets[place];
    if (holds(bucket, mixed)) return false;
    if (bucket.slots.back() == 0) break;
    if (++place == segment.count) place = 0;
  }
  if (segment.used >= fullest(segment.count)) {
    grow(segment, next_count(segment.count));
    place = ideal(mixed, segment.count);
  }
  append(segment, place, mixed);
  ++segment.used;
  ++size_;
  return true;
}

void FingerprintSet::insert_batch(std::span<const std::uint64_t> values, std::span<bool> inserted) {
  if (inserted.size() < values.size()) throw std::invalid_argument("insert_batch: fewer answers than values");
  std::array<std::uint64_t, kBatch> ready;
  for (std::size_t begin = 0; begin < values.size(); begin += kBatch) {
    const std::size_t count = std::min(kBatch, values.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      ready[i] = mixed(values[begin + i]);
      const Segment& segment = segments_[ready[i] >> (64 - kSegmentBits)];
      // The place of a segment that grows meanwhile is only missed.
      if (segment.count != 0) __builtin_prefetch(&segment.buckets[ideal(ready[i], segment.count)], 1);
    }
    for (std::size_t i = 0; i < count; ++i) inserted[begin + i] = insert_mixed(ready[i]);
  }
}

bool FingerprintSet::contains(std::uint64_t value) const noexcept {
  const std::uint64_t wanted = mixed(value);
  if (wanted == 0) return has_zero_;
  const Segment& segment = segments_[wanted >> (64 - kSegmentBits)];
  if (segment.count == 0) return false;
  for (std::size_t place = ideal(wanted, segment.count);;) {
    const Bucket& bucket = segment.buckets[place];
    if (holds(bucket, wanted)) return true;
    if (bucket.slots.back() == 0) return false;
    if (++place == segment.count) place = 0;
  }
}

// Into the first free slot from bucket `place` on. Never more than four fifths are full, so there is one.
void FingerprintSet::append(Segment& segment, std::size_t place, std::uint64_t mixed) noexcept {
  while (segment.buckets[place].slots.back() != 0) {
    if (++place == segment.count) place = 0;
  }
  auto& slots = segment.buckets[place].slots;
  std::size_t filled = 0;
  for (const std::uint64_t slot : slots) filled += slot != 0;
  slots[filled] = mixed;
}

// Places keep their order from one size to the next, so both tables are gone through once from front to back.
void FingerprintSet::grow(Segment& segment, std::uint32_t count) {
  Segment bigger{std::make_unique<Bucket[]>(count), count, segment.used};
  for (std::size_t i = 0; i < segment.count; ++i) {
    for (const std::uint64_t mixed : segment.buckets[i].slots) {
      if (mixed == 0) break;
      append(bigger, ideal(mixed, count), mixed);
    }
  }
  segment = std::move(bigger);
}

std::size_t FingerprintSet::memory_bytes() const noexcept {
  std::size_t bytes = sizeof *this;
  for (const Segment& segment : segments_) bytes += segment.count * sizeof(Bucket);
  return bytes;
}

void FingerprintSet::reserve(std::size_t count) {
  // Two standard deviations above the mean of what chance gives a segment.
  const double mean = static_cast<double>(count) / kSegments;
  const double slots = (mean + 2 * std::sqrt(mean)) * 5 / 4;
  const auto buckets = static_cast<std::uint32_t>(std::min(std::ceil(slots / kBucketSlots), 2e9));
  for (Segment& segment : segments_) {
    if (segment.count < buckets) grow(segment, buckets);
  }
}

void FingerprintSet::clear() noexcept {
  for (Segment& segment : segments_) segment = Segment{};
  size_ = 0;
  has_zero_ = false;
}

}  // namespace argiope
