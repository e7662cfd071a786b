#include "argiope/base/fingerprint.hpp"

#include <gtest/gtest.h>

#include <unordered_set>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

TEST(FingerprintSet, TakesEachValueOnce) {
  FingerprintSet set;
  EXPECT_TRUE(set.insert(7));
  EXPECT_FALSE(set.insert(7));
  EXPECT_TRUE(set.contains(7));
  EXPECT_FALSE(set.contains(8));
  EXPECT_EQ(set.size(), 1u);
}

TEST(FingerprintSet, HoldsZeroAndTheLargestValue) {
  FingerprintSet set;
  EXPECT_FALSE(set.contains(0));
  EXPECT_TRUE(set.insert(0));
  EXPECT_FALSE(set.insert(0));
  EXPECT_TRUE(set.insert(~0ull));
  EXPECT_TRUE(set.contains(~0ull));
  EXPECT_EQ(set.size(), 2u);
}

TEST(FingerprintSet, AgreesWithAStandardSet) {
  Random random(3);
  FingerprintSet set;
  std::unordered_set<std::uint64_t> model;
  for (int i = 0; i < 300'000; ++i) {
    const std::uint64_t value = mix64(random.below(200'000));
    ASSERT_EQ(set.insert(value), model.insert(value).second);
  }
  ASSERT_EQ(set.size(), model.size());
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t value = mix64(random.below(400'000));
    ASSERT_EQ(set.contains(value), model.contains(value));
  }
}

TEST(FingerprintSet, SurvivesValuesThatCrowdTogether) {
  FingerprintSet set;
  for (std::uint64_t i = 1; i <= 20'000; ++i) ASSERT_TRUE(set.insert(~0ull - i));  // all at one segment's end
  for (std::uint64_t i = 1; i <= 20'000; ++i) ASSERT_TRUE(set.contains(~0ull - i));
  EXPECT_FALSE(set.contains(~0ull - 20'001));
}

TEST(FingerprintSet, CostsAtMostSixteenBytesAnEntryWhileItGrows) {
  FingerprintSet set;
  for (std::uint64_t i = 1; i <= 2'000'000; ++i) {
    set.insert(mix64(i));
    if (i >= 200'000 && i % 1000 == 0) {
      ASSERT_LE(static_cast<double>(set.memory_bytes()) / static_cast<double>(i), 16.0) << i;
    }
  }
}

TEST(FingerprintSet, KeepsItsEntriesWhenRoomIsReserved) {
  FingerprintSet set;
  for (std::uint64_t i = 1; i < 1000; ++i) set.insert(mix64(i));
  set.reserve(1'000'000);
  for (std::uint64_t i = 1; i < 1000; ++i) ASSERT_TRUE(set.contains(mix64(i)));
  set.clear();
  EXPECT_EQ(set.size(), 0u);
  EXPECT_FALSE(set.contains(mix64(1)));
}

TEST(Digest, TellsContentsApart) {
  EXPECT_EQ(content_digest("a").size(), 32u);
  EXPECT_EQ(content_digest("a"), content_digest("a"));
  EXPECT_NE(content_digest("a"), content_digest("b"));
}

}  // namespace
}  // namespace argiope
