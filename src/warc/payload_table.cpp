#include "warc/payload_table.hpp"

#include <algorithm>
#include <utility>

#include "base/internal/fingerprint.hpp"
#include "web/text/internal/ascii.hpp"

namespace argiope {
namespace {

constexpr std::size_t kFirstSlots = 1024;  // a power of two
constexpr int kOffsetBits = 44;
constexpr std::size_t kSha1InBase32 = 32;
constexpr std::size_t kLeastDigest = 13;  // characters: of 64 bits in base32

}  // namespace

std::uint64_t PayloadTable::key_of(const Sha1Digest& digest) noexcept {
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < sizeof key; ++i) key = key << 8 | digest[i];
  return std::max<std::uint64_t>(key, 1);  // 0 is a free slot
}

namespace {

std::optional<std::uint64_t> front_of_base32(std::string_view digest) noexcept {
  // 12 letters have 60 of the 64 bits; of the next the first four count.
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < 13; ++i) {
    const char c = digest[i];
    const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a'
                      : c >= '2' && c <= '7' ? c - '2' + 26
                                             : -1;
    if (value < 0) return std::nullopt;
    key = i < 12 ? key << 5 | static_cast<std::uint64_t>(value) : key << 4 | static_cast<std::uint64_t>(value) >> 1;
  }
  return std::max<std::uint64_t>(key, 1);
}

std::uint64_t front_of_hex(std::string_view digest) noexcept {
  std::uint64_t key = 0;
  for (const char c : digest.substr(0, 16)) key = key << 4 | static_cast<std::uint64_t>(hex_value(c));
  return std::max<std::uint64_t>(key, 1);
}

}  // namespace

std::optional<std::uint64_t> PayloadTable::key_of_base32(std::string_view digest) noexcept {
  return digest.size() == kSha1InBase32 ? front_of_base32(digest) : std::nullopt;
}

std::optional<std::uint64_t> PayloadTable::key_of_named(std::string_view digest) noexcept {
  digest.remove_prefix(digest.find(':') + 1);
  if (digest.size() < kLeastDigest) return std::nullopt;
  const bool is_hex = std::ranges::all_of(digest, [](char c) { return hex_value(c) >= 0; });
  const auto key = is_hex ? front_of_hex(digest) : front_of_base32(digest);
  // In base64, or in a way of which nothing is known here: it is the same as another that is written the same.
  return key ? key : std::max<std::uint64_t>(fingerprint(digest), 1);
}

std::size_t PayloadTable::slot_of(std::uint64_t digest) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = static_cast<std::size_t>(digest) & mask;
  while (slots_[at].digest != 0 && slots_[at].digest != digest) at = (at + 1) & mask;
  return at;
}

std::optional<PayloadPlace> PayloadTable::find(std::uint64_t digest) const noexcept {
  if (slots_.empty()) return std::nullopt;
  const Slot& slot = slots_[slot_of(digest)];
  if (slot.digest == 0) return std::nullopt;
  return PayloadPlace{static_cast<std::uint32_t>(slot.place >> kOffsetBits),
                      slot.place & (PayloadPlace::kMostOffset - 1)};
}

void PayloadTable::add(std::uint64_t digest, PayloadPlace place) {
  if (size_ >= kMost || place.offset >= PayloadPlace::kMostOffset || place.file >= 1u << (64 - kOffsetBits)) return;
  if (4 * (size_ + 1) > 3 * slots_.size()) grow();
  Slot& slot = slots_[slot_of(digest)];
  if (slot.digest != 0) return;
  slot = {digest, std::uint64_t{place.file} << kOffsetBits | place.offset};
  ++size_;
}

void PayloadTable::grow() {
  std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(slots_.empty() ? kFirstSlots : 2 * slots_.size()));
  for (const Slot& slot : before) {
    if (slot.digest != 0) slots_[slot_of(slot.digest)] = slot;
  }
}

}  // namespace argiope
