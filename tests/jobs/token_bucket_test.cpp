#include "argiope/jobs/token_bucket.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

TEST(TokenBucket, GivesABurstAndThenKeepsToItsRate) {
  TokenBucket bucket(10, 3);
  TimePoint now{100s};
  EXPECT_TRUE(bucket.try_take(now));
  EXPECT_TRUE(bucket.try_take(now));
  EXPECT_TRUE(bucket.try_take(now));
  EXPECT_FALSE(bucket.try_take(now));
  EXPECT_EQ(bucket.next(now), now + 100ms);
  EXPECT_TRUE(bucket.try_take(now + 100ms));
}

// pyspider's bucket dispatched at rate 0, and never with a burst below 1.
TEST(TokenBucket, GivesNothingAtRateZeroAndSomethingAtASmallBurst) {
  TokenBucket none(0, 5);
  EXPECT_FALSE(none.try_take(TimePoint{1s}));
  EXPECT_EQ(none.next(TimePoint{1s}), kNever);
  TokenBucket small(1, 0.1);
  EXPECT_TRUE(small.try_take(TimePoint{1s}));
  EXPECT_FALSE(small.try_take(TimePoint{1s}));
}

TEST(TokenBucket, NeverRefusesWithoutALimit) {
  TokenBucket bucket;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(bucket.try_take(TimePoint{}));
}

// pyspider kept the tokens of an old, larger burst.
TEST(TokenBucket, ForgetsPermitsAboveALoweredBurst) {
  TokenBucket bucket(1, 100);
  bucket.set(1, 2, TimePoint{1000s});
  EXPECT_TRUE(bucket.try_take(TimePoint{1000s}));
  EXPECT_TRUE(bucket.try_take(TimePoint{1000s}));
  EXPECT_FALSE(bucket.try_take(TimePoint{1000s}));
}

TEST(TokenBucket, StandsStillWhenTimeStepsBack) {
  TokenBucket bucket(1, 1);
  EXPECT_TRUE(bucket.try_take(TimePoint{10s}));
  EXPECT_FALSE(bucket.try_take(TimePoint{5s}));
  EXPECT_TRUE(bucket.try_take(TimePoint{11s}));
}

TEST(TokenBucket, NeverExceedsBurstPlusRateInAnyWindow) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const double rate = 0.1 + random.unit() * 50;
    const double burst = 1 + static_cast<double>(random.below(10));
    TokenBucket bucket(rate, burst);
    std::deque<TimePoint> taken;
    TimePoint now{};
    for (int i = 0; i < 3000; ++i) {
      now += from_seconds(random.unit() * 2 / rate);
      if (random.chance(0.3)) now = std::max(now, bucket.next(now));
      if (bucket.try_take(now)) taken.push_back(now);
    }
    for (std::size_t first = 0; first < taken.size(); ++first) {
      for (std::size_t last = first; last < std::min(first + 40, taken.size()); ++last) {
        const double window = to_seconds(taken[last] - taken[first]);
        ASSERT_LE(static_cast<double>(last - first + 1), burst + rate * window + 1e-6) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace argiope
