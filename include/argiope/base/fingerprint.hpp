// Fingerprints of byte strings, and an exact set of them that costs little more than the bits themselves: how a
// crawl knows which of millions of URLs it has met.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
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
// The table is cut into segments by the fingerprint's leading bits, and each grows by itself, by a quarter, keeping its
// order: growing one costs a short pass over 1/256 of the set and never doubles the memory of the whole.
//
// Memory:  10.7 to 13.4 bytes an entry from some ten thousand entries on, growing included; values that crowd together
//          cost time, never memory.
// Errors:  insert and reserve may throw std::bad_alloc, and then nothing has changed.
// Threads: one at a time.
class FingerprintSet {
 public:
  FingerprintSet();

  // True if it was not there.
  bool insert(std::uint64_t value);
  bool contains(std::uint64_t value) const noexcept;
  std::size_t size() const noexcept { return size_; }
  // Of the tables; without the fixed few kilobytes of the object.
  std::size_t memory_bytes() const noexcept;
  // Room for `count` entries in all without growing on the way.
  void reserve(std::size_t count);
  void clear();

 private:
  static constexpr int kSegmentBits = 8;
  static constexpr std::size_t kSegments = std::size_t{1} << kSegmentBits;

  // Entries stand in the order of their value, as near after their ideal place as those before allow.
  struct Segment {
    std::unique_ptr<std::uint64_t[]> slots;
    std::uint32_t capacity = 0;
    std::uint32_t used = 0;
  };

  static std::size_t ideal(std::uint64_t value, std::uint32_t capacity) noexcept {
    return static_cast<std::size_t>((static_cast<unsigned __int128>(value << kSegmentBits) * capacity) >> 64);
  }
  static std::size_t find(const Segment& segment, std::uint64_t value) noexcept;
  static void grow(Segment& segment, std::uint32_t capacity);

  std::array<Segment, kSegments> segments_;
  std::size_t size_ = 0;
  bool has_zero_ = false;  // zero marks an empty slot
};

}  // namespace argiope
