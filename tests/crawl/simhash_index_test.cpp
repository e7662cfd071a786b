// The index of simhashes against a look at each of them.
#include "crawl/duplicates/simhash_index.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

std::uint64_t with_flips(std::uint64_t hash, unsigned flips, Random& random) {
  for (; flips > 0; --flips) hash ^= std::uint64_t{1} << random.below(64);
  return hash;
}

TEST(SimhashIndex, FindsWhatALookAtAllFinds) {
  for (unsigned most = 0; most <= SimhashIndex::kMostDistance; ++most) {
    Random random(most + 1);
    SimhashIndex index(most);
    std::vector<std::pair<std::uint64_t, std::uint32_t>> entries;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      // Some near to others, some of few bits, which share blocks.
      std::uint64_t hash = random.next();
      if (!entries.empty() && random.chance(0.5))
        hash = with_flips(entries[random.below(entries.size())].first, static_cast<unsigned>(random.below(9)), random);
      if (random.chance(0.1)) hash = with_flips(0, static_cast<unsigned>(random.below(6)), random);
      const auto group = static_cast<std::uint32_t>(random.below(2));
      const auto accepts = [&](std::uint64_t value) { return value % 3 != 0; };
      std::optional<SimhashIndex::Match> best;
      for (std::uint64_t at = 0; at < entries.size(); ++at) {
        const int distance = __builtin_popcountll(entries[at].first ^ hash);
        if (distance > static_cast<int>(most) || entries[at].second != group || !accepts(at)) continue;
        if (!best || distance < best->distance) best = SimhashIndex::Match{at, distance, at};
      }
      const auto found = index.find(hash, group, accepts);
      ASSERT_EQ(found.has_value(), best.has_value()) << most << ' ' << i;
      if (found) EXPECT_EQ(std::pair(found->value, found->distance), std::pair(best->value, best->distance));
      index.add(hash, group, i);
      entries.emplace_back(hash, group);
    }
    EXPECT_EQ(index.size(), 2000u);
  }
}

TEST(SimhashIndex, ComparesByNoMoreThanSevenBits) { EXPECT_THROW(SimhashIndex(8), std::invalid_argument); }

}  // namespace
}  // namespace argiope
