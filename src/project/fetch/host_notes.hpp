// The notes on hosts that have nothing to do, by their number: a name and twelve bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"

namespace argiope {

// Numbers are best dense: there is room for those around each.
// Threads: one at a time. Cost: O(1).
class DeskNotes {
 public:
  struct Note {
    std::uint32_t site_at = 0;  // in the names, plus 1; 0: none
    std::uint32_t until_s = 0;
    std::uint8_t losses = 0;
    Errc lost_to{};
    std::uint8_t is_answered : 1 = 0;
    std::uint8_t is_proven : 1 = 0;
    std::uint8_t is_lost : 1 = 0;
    std::uint8_t is_unreachable : 1 = 0;
    std::uint8_t is_open : 1 = 0;  // robots.txt allows everything

    // Of what it is lost until, or robots.txt counts until. A second late at most.
    TimePoint until() const noexcept { return TimePoint{std::chrono::seconds{until_s}}; }
    void set_until(TimePoint time) noexcept {
      const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
      until_s = static_cast<std::uint32_t>(
          std::clamp<std::int64_t>(seconds + (seconds > 0 ? 1 : 0), 0, std::numeric_limits<std::uint32_t>::max()));
    }
  };
  static_assert(sizeof(Note) == 12);

  Note& of(std::uint32_t number) {
    auto& block = blocks_[number / kBlock];
    if (!block) block = std::make_unique<Block>();
    return (*block)[number % kBlock];
  }
  Note find(std::uint32_t number) const {
    const auto block = blocks_.find(number / kBlock);
    return block == blocks_.end() ? Note{} : (*block->second)[number % kBlock];
  }

  // Keeps the name, once; a view of it, valid as long as this is.
  std::string_view add(std::uint32_t number, std::string_view site) {
    Note& note = of(number);
    if (note.site_at == 0) note.site_at = keep(site);
    return name_at(note.site_at);
  }
  std::string_view site(std::uint32_t number) const { return name_at(find(number).site_at); }

 private:
  static constexpr std::uint32_t kBlock = 1024;
  static constexpr std::uint32_t kNames = 64 * 1024;   // bytes of names that are kept together
  static constexpr std::size_t kLongestName = 65'000;  // which no server has
  using Block = std::array<Note, kBlock>;

  // A name is its length in two bytes, and itself.
  std::uint32_t keep(std::string_view site) {
    const auto size = static_cast<std::uint16_t>(std::min(site.size(), kLongestName));
    if (names_.empty() || used_ + 2 + size > kNames) {
      if (names_.size() >= std::numeric_limits<std::uint32_t>::max() / kNames) return 0;  // 4 GiB of names
      names_.push_back(std::make_unique<char[]>(kNames));
      used_ = 0;
    }
    char* const at = names_.back().get() + used_;
    std::memcpy(at, &size, 2);
    std::memcpy(at + 2, site.data(), size);
    const auto place = static_cast<std::uint32_t>((names_.size() - 1) * kNames + used_ + 1);
    used_ += 2 + size;
    return place;
  }
  std::string_view name_at(std::uint32_t place) const {
    if (place == 0) return {};
    const char* const at = names_[(place - 1) / kNames].get() + (place - 1) % kNames;
    std::uint16_t size = 0;
    std::memcpy(&size, at, 2);
    return {at + 2, size};
  }

  std::unordered_map<std::uint32_t, std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<char[]>> names_;
  std::uint32_t used_ = 0;
};

}  // namespace argiope
