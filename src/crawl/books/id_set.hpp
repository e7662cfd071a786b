// A set of ids that come in runs: a bit each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace argiope {

// Memory: an eighth of a byte for each id between those that are near each other; at most 600 bytes an id. Threads: one
// at a time.
class IdSet {
 public:
  void insert(std::int64_t id) {
    std::uint64_t& word = word_of(pages_[page_of(id)], id);
    if ((word & bit_of(id)) == 0) ++size_;
    word |= bit_of(id);
  }
  void erase(std::int64_t id) {
    const auto page = pages_.find(page_of(id));
    if (page == pages_.end()) return;
    std::uint64_t& word = word_of(page->second, id);
    if ((word & bit_of(id)) != 0) --size_;
    word &= ~bit_of(id);
  }
  bool contains(std::int64_t id) const {
    const auto page = pages_.find(page_of(id));
    return page != pages_.end() && (page->second[place_of(id) / 64] & bit_of(id)) != 0;
  }
  std::size_t size() const noexcept { return size_; }

 private:
  static constexpr int kPageBits = 12;
  using Page = std::array<std::uint64_t, (std::size_t{1} << kPageBits) / 64>;

  static std::int64_t page_of(std::int64_t id) noexcept { return id >> kPageBits; }
  static std::size_t place_of(std::int64_t id) noexcept {
    return static_cast<std::size_t>(id & ((std::int64_t{1} << kPageBits) - 1));
  }
  static std::uint64_t bit_of(std::int64_t id) noexcept { return std::uint64_t{1} << (id & 63); }
  static std::uint64_t& word_of(Page& page, std::int64_t id) noexcept { return page[place_of(id) / 64]; }

  std::map<std::int64_t, Page> pages_;
  std::size_t size_ = 0;
};

}  // namespace argiope
