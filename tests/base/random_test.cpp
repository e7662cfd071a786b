#include "argiope/base/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <set>
#include <vector>

namespace argiope {
namespace {

TEST(Random, EqualSeedsGiveEqualSequences) {
  Random a(42), b(42), other(43);
  bool differs = false;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = a.next();
    EXPECT_EQ(value, b.next());
    differs = differs || value != other.next();
  }
  EXPECT_TRUE(differs);
}

TEST(Random, TheSequenceIsTheSameOnEveryMachine) {
  // Computed apart from this code: a failure replays from its seed only as long as these stand.
  Random random(1);
  EXPECT_EQ(random.next(), 0x40bc05834d211f4au);
  EXPECT_EQ(random.next(), 0x53a0d5e80dc45f64u);
  EXPECT_EQ(random.next(), 0x66450976474ffb8bu);
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafu);
}

TEST(Random, Mix64KeepsDistinctInputsDistinct) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 10'000; ++i) seen.insert(mix64(i));
  EXPECT_EQ(seen.size(), 10'000u);
}

TEST(Random, BelowStaysBelowAndReachesEveryValue) {
  Random random(3);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts.at(random.below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
  EXPECT_EQ(random.below(0), 0u);
  EXPECT_EQ(random.below(1), 0u);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(~0ull), ~0ull);
}

TEST(Random, BetweenIncludesBothEnds) {
  Random random(4);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.between(-2, 2));
  EXPECT_EQ(seen, (std::set<std::int64_t>{-2, -1, 0, 1, 2}));
  EXPECT_EQ(random.between(5, 5), 5);
}

TEST(Random, BetweenTakesTheWholeRangeOfIntegers) {
  Random random(5);
  constexpr auto kLow = std::numeric_limits<std::int64_t>::min();
  constexpr auto kHigh = std::numeric_limits<std::int64_t>::max();
  bool negative = false, positive = false;
  for (int i = 0; i < 100; ++i) (random.between(kLow, kHigh) < 0 ? negative : positive) = true;
  EXPECT_TRUE(negative && positive);
  for (int i = 0; i < 100; ++i) EXPECT_GE(random.between(kLow + 1, kHigh), kLow + 1);
}

TEST(Random, UnitIsAtLeastZeroAndBelowOne) {
  Random random(6);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double value = random.unit();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

TEST(Random, ChanceOfZeroIsNeverAndOfOneAlways) {
  Random random(7);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(random.chance(0));
    EXPECT_TRUE(random.chance(1));
  }
}

TEST(Random, AForkGoesItsOwnWay) {
  Random parent(8);
  Random child = parent.fork();
  int equal = 0;
  for (int i = 0; i < 1000; ++i) equal += parent.next() == child.next() ? 1 : 0;
  EXPECT_EQ(equal, 0);
}

TEST(Random, ServesTheStandardLibrary) {
  static_assert(std::uniform_random_bit_generator<Random>);
  Random random(9);
  std::vector<int> cards{1, 2, 3, 4, 5, 6, 7, 8};
  std::ranges::shuffle(cards, random);
  std::ranges::sort(cards);
  EXPECT_EQ(cards, (std::vector{1, 2, 3, 4, 5, 6, 7, 8}));
}

}  // namespace
}  // namespace argiope
