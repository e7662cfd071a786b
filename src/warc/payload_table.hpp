// Where in an archive a payload is, by its digest. In memory, 16 bytes and the room of a hash table for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "warc/internal/sha1.hpp"

namespace argiope {

// A place: the file by its number in the archive's list, and the offset of the record.
struct PayloadPlace {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;  // below kMostOffset
  static constexpr std::uint64_t kMostOffset = std::uint64_t{1} << 44;
};

// Knows digests by 64 of their bits: who finds one looks at the record, whether it is the same.
//
// When it holds kMost, it takes no more: later payloads are stored whole, which is no loss but of space.
class PayloadTable {
 public:
  static constexpr std::size_t kMost = 6'000'000;

  std::optional<PayloadPlace> find(std::uint64_t digest) const noexcept;
  // The first place counts.
  void add(std::uint64_t digest, PayloadPlace place);
  std::size_t size() const noexcept { return size_; }

  static std::uint64_t key_of(const Sha1Digest& digest) noexcept;
  // Of a digest in base32; nullopt: it is none.
  static std::optional<std::uint64_t> key_of_base32(std::string_view digest) noexcept;
  // Of a digest as other writers name it: of any kind, in base32 or hexadecimal, with its kind before a colon or
  // without.
  static std::optional<std::uint64_t> key_of_named(std::string_view digest) noexcept;

 private:
  struct Slot {
    std::uint64_t digest = 0;  // 0: free
    std::uint64_t place = 0;
  };
  std::size_t slot_of(std::uint64_t digest) const noexcept;
  void grow();

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace argiope
