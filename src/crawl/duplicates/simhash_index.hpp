// Which of many simhashes differ in few bits from one: two that differ in at most k bits are equal in one of k + 1
// blocks, so those with an equal block are looked at (Manku, Jain and Das Sarma 2007, "Detecting near-duplicates for
// web crawling", with as many tables as blocks).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace argiope {

// Memory:  24 bytes an entry and 4 for each block of it; 256 KiB for each block.
// Cost:    of a look, n / 2^(64 / (k + 1)) entries for each block: with k = 3 and a million entries, 60.
// Threads: one at a time.
class SimhashIndex {
 public:
  static constexpr unsigned kMostDistance = 7;

  // Throws std::invalid_argument when `most_distance` is above kMostDistance.
  explicit SimhashIndex(unsigned most_distance);

  // `group`: entries of others are not found.
  void add(std::uint64_t hash, std::uint32_t group, std::uint64_t value);

  struct Match {
    std::uint64_t value = 0;
    int distance = 0;
    std::size_t place = 0;  // in the order of adding
  };
  // The nearest that is near enough, of several the first that was added, among those whose value `accepts`.
  template <class Accepts>
  std::optional<Match> find(std::uint64_t hash, std::uint32_t group, Accepts&& accepts) const {
    std::optional<Match> best;
    for (unsigned block = 0; block < blocks_; ++block) {
      for (std::uint32_t at = heads_[block][slot(hash, block)]; at != kNone;
           at = next_[std::size_t{at} * blocks_ + block]) {
        const Entry& entry = entries_[at];
        const int distance = __builtin_popcountll(entry.hash ^ hash);
        if (distance > most_ || entry.group != group) continue;
        const bool is_better = !best || distance < best->distance || (distance == best->distance && at < best->place);
        if (is_better && accepts(entry.value)) best = Match{entry.value, distance, at};
      }
    }
    return best;
  }
  std::optional<Match> find(std::uint64_t hash, std::uint32_t group = 0) const {
    return find(hash, group, [](std::uint64_t) { return true; });
  }
  std::size_t size() const noexcept { return entries_.size(); }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::size_t kSlots = std::size_t{1} << 16;
  struct Entry {
    std::uint64_t hash;
    std::uint64_t value;
    std::uint32_t group;
  };
  // Where the chain of a block's value begins. Values may share one.
  std::size_t slot(std::uint64_t hash, unsigned block) const noexcept;

  const int most_;
  const unsigned blocks_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> next_;  // of each entry, for each block
  std::array<std::vector<std::uint32_t>, kMostDistance + 1> heads_;
};

}  // namespace argiope
