#include "crawl/duplicates/simhash_index.hpp"

#include <stdexcept>

#include "argiope/base/random.hpp"

namespace argiope {

SimhashIndex::SimhashIndex(unsigned most_distance)
    : most_(static_cast<int>(most_distance)), blocks_(most_distance + 1) {
  if (most_distance > kMostDistance) throw std::invalid_argument("simhashes are compared by at most 7 bits");
  for (unsigned block = 0; block < blocks_; ++block) heads_[block].assign(kSlots, kNone);
}

std::size_t SimhashIndex::slot(std::uint64_t hash, unsigned block) const noexcept {
  const unsigned begin = 64 * block / blocks_, end = 64 * (block + 1) / blocks_;
  const unsigned width = end - begin;
  const std::uint64_t value = width == 64 ? hash : hash >> begin & ((std::uint64_t{1} << width) - 1);
  return (width <= 16 ? value : mix64(value)) & (kSlots - 1);
}

void SimhashIndex::add(std::uint64_t hash, std::uint32_t group, std::uint64_t value) {
  if (entries_.size() >= kNone) return;
  const auto place = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back({hash, value, group});
  for (unsigned block = 0; block < blocks_; ++block) {
    std::uint32_t& head = heads_[block][slot(hash, block)];
    next_.push_back(head);
    head = place;
  }
}

}  // namespace argiope
