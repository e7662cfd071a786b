// Fingerprints of byte strings, and an exact set of them that costs little more than the bits themselves: how a
// crawl knows which of millions of URLs it has met.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace argiope {

// XXH3, 64 bits. Fast and well spread, but not secret: who can choose the inputs can make two collide, and with ten
// million honest ones the chance that any two do is one in 370,000.
std::uint64_t fingerprint(std::string_view bytes) noexcept;
std::uint64_t fingerprint(std::string_view bytes, std::uint64_t seed) noexcept;

// XXH3, 128 bits, as 32 hexadecimal digits: tells two contents apart, not one author from a forger.
std::string content_digest(std::string_view bytes);

// A set of fingerprints in flat tables.
//
// The table is cut into segments by the leading bits of the (mixed) fingerprint, and each grows by itself, by three
// tenths, by an eighth once the set has some two million entries, in one pass from front to back: growing costs a short
// step over 1/256 of the set and never doubles the memory of the whole. A segment is a row of buckets of one cache line
// each, so that a look-up costs one miss nearly always.
//
// Memory:  10 to 13.5 bytes an entry from some ten thousand entries on, growing included, to 11.7 from two million on;
//          values that crowd together cost time, never memory.
// Errors:  insert and reserve may throw std::bad_alloc, and then nothing has changed.
// Threads: one at a time.
class FingerprintSet {
 public:
  // With a secret `seed`, nobody can choose values that crowd in one place and make it slow.
  explicit FingerprintSet(std::uint64_t seed = 0) noexcept;

  // True if it was not there.
  bool insert(std::uint64_t value);
  // The same for many at once, in order: `inserted[i]` says whether `values[i]` was new. The misses of a large set's
  // look-ups overlap, which makes it up to four times as fast.
  // Errors: std::invalid_argument when `inserted` is shorter than `values`.
  void insert_batch(std::span<const std::uint64_t> values, std::span<bool> inserted);
  bool contains(std::uint64_t value) const noexcept;
  std::size_t size() const noexcept { return size_; }
  // Of the tables and of this object.
  std::size_t memory_bytes() const noexcept;
  // Room for `count` entries in all without growing on the way, but for a few segments that chance gives more.
  void reserve(std::size_t count);
  void clear() noexcept;

 private:
  static constexpr int kSegmentBits = 8;
  static constexpr std::size_t kSegments = std::size_t{1} << kSegmentBits;

  // A cache line. Filled from the front; zero marks an empty slot, and a full bucket spills into the next one.
  struct alignas(64) Bucket {
    std::array<std::uint64_t, 8> slots;
  };
  struct Segment {
    std::unique_ptr<Bucket[]> buckets;
    std::uint32_t count = 0;  // of buckets
    std::uint32_t used = 0;   // slots
  };

  std::uint64_t mixed(std::uint64_t value) const noexcept;
  bool insert_mixed(std::uint64_t mixed);
  static std::size_t ideal(std::uint64_t mixed, std::uint32_t count) noexcept {
    return static_cast<std::size_t>((static_cast<unsigned __int128>(mixed << kSegmentBits) * count) >> 64);
  }
  static bool holds(const Bucket& bucket, std::uint64_t mixed) noexcept;
  static void append(Segment& segment, std::size_t place, std::uint64_t mixed) noexcept;
  static void grow(Segment& segment, std::uint32_t count);

  std::array<Segment, kSegments> segments_;
  std::size_t size_ = 0;
  std::uint64_t seed_;
  bool has_zero_ = false;
};

}  // namespace argiope
