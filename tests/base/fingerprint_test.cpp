#include "base/internal/fingerprint.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <unordered_set>
#include <vector>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

TEST(Fingerprint, IsXxh3) {
  EXPECT_EQ(fingerprint(""), 0x2d06800538d394c2u);  // xxHash's own test vector for no bytes and no seed
  EXPECT_EQ(fingerprint("http://h/"), fingerprint("http://h/"));
  EXPECT_NE(fingerprint("http://h/"), fingerprint("http://h"));
  EXPECT_NE(fingerprint("http://h/", 1), fingerprint("http://h/", 2));
}

TEST(Digest, TellsContentsApart) {
  EXPECT_EQ(content_digest(""), "99aa06d3014798d86001c324468d497f");  // xxHash's own test vector
  EXPECT_EQ(content_digest("a"), content_digest("a"));
  EXPECT_NE(content_digest("a"), content_digest("b"));
}

TEST(FingerprintSet, TakesEachValueOnce) {
  FingerprintSet set;
  EXPECT_TRUE(set.insert(7));
  EXPECT_FALSE(set.insert(7));
  EXPECT_TRUE(set.contains(7));
  EXPECT_FALSE(set.contains(8));
  EXPECT_EQ(set.size(), 1u);
}

// The value that mix64 turns into `mixed`: where a set without a seed puts a value is then the test's to choose.
std::uint64_t unmix64(std::uint64_t mixed) {
  const auto inverse = [](std::uint64_t odd) {
    std::uint64_t x = odd;
    for (int i = 0; i < 6; ++i) x *= 2 - odd * x;  // Newton
    return x;
  };
  const auto unshift = [](std::uint64_t x, int by) { return x ^ (x >> by) ^ (x >> (2 * by)); };  // by > 64 / 3
  std::uint64_t x = unshift(mixed, 31) * inverse(0x94d049bb133111ebu);
  x = unshift(x, 27) * inverse(0xbf58476d1ce4e5b9u);
  return unshift(x, 30) - 0x9e3779b97f4a7c15u;
}

TEST(FingerprintSet, HoldsEveryValueThatMarksSomethingInside) {
  for (const std::uint64_t value : {std::uint64_t{0}, ~std::uint64_t{0}, unmix64(0), unmix64(~std::uint64_t{0})}) {
    FingerprintSet set;
    EXPECT_FALSE(set.contains(value));
    EXPECT_TRUE(set.insert(value));
    EXPECT_FALSE(set.insert(value));
    EXPECT_TRUE(set.contains(value));
    EXPECT_EQ(set.size(), 1u);
    set.clear();
    EXPECT_FALSE(set.contains(value));
    EXPECT_TRUE(set.insert(value));
  }
}

TEST(FingerprintSet, AgreesWithAStandardSetWhateverTheSeed) {
  for (const std::uint64_t seed : {0u, 1u, 77u}) {
    Random random(seed);
    FingerprintSet set(seed);
    std::unordered_set<std::uint64_t> model;
    for (int i = 0; i < 200'000; ++i) {
      const std::uint64_t value = mix64(random.below(150'000));
      ASSERT_EQ(set.insert(value), model.insert(value).second);
    }
    ASSERT_EQ(set.size(), model.size());
    for (int i = 0; i < 100'000; ++i) {
      const std::uint64_t value = mix64(random.below(300'000));
      ASSERT_EQ(set.contains(value), model.contains(value));
    }
  }
}

TEST(FingerprintSet, TakesABatchAsItTakesOneByOne) {
  Random random(5);
  FingerprintSet batched, single;
  for (int round = 0; round < 500; ++round) {
    std::vector<std::uint64_t> values(random.below(120));
    for (std::uint64_t& value : values) value = random.below(20'000);  // repeats within a batch, too
    const auto inserted = std::make_unique<bool[]>(values.size());
    batched.insert_batch(values, {inserted.get(), values.size()});
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(inserted[i], single.insert(values[i]));
  }
  EXPECT_EQ(batched.size(), single.size());
  EXPECT_THROW(batched.insert_batch(std::vector<std::uint64_t>{1}, {}), std::invalid_argument);
}

TEST(FingerprintSet, SurvivesValuesThatCrowdTogether) {
  FingerprintSet set;
  const auto crowded = [](std::uint64_t i) { return unmix64(~std::uint64_t{0} - i); };  // all at one segment's end
  for (std::uint64_t i = 1; i <= 20'000; ++i) ASSERT_TRUE(set.insert(crowded(i)));
  for (std::uint64_t i = 1; i <= 20'000; ++i) ASSERT_TRUE(set.contains(crowded(i)));
  EXPECT_FALSE(set.contains(crowded(20'001)));
  EXPECT_LE(set.memory_bytes(), 20'000 * 16u);
}

TEST(FingerprintSet, CostsAtMostSixteenBytesAnEntryWhileItGrows) {
  FingerprintSet set;
  for (std::uint64_t i = 1; i <= 2'000'000; ++i) {
    set.insert(mix64(i));
    if (i >= 10'000 && i % 100 == 0) {
      ASSERT_LE(static_cast<double>(set.memory_bytes()) / static_cast<double>(i), 16.0) << i;
    }
  }
}

TEST(FingerprintSet, GrowsNoMoreAfterRoomWasReserved) {
  for (const std::uint64_t count : {10'000u, 1'000'000u}) {
    FingerprintSet set;
    for (std::uint64_t i = 0; i < 1000; ++i) set.insert(i);
    set.reserve(count);
    const std::size_t reserved = set.memory_bytes();
    EXPECT_LE(reserved, count * 16);
    for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(set.contains(i));
    for (std::uint64_t i = 1000; i < count; ++i) set.insert(i);
    EXPECT_LE(set.memory_bytes(), reserved + reserved / 100);
  }
}

}  // namespace
}  // namespace argiope
