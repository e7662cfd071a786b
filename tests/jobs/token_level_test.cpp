#include "argiope/jobs/detail/token_level.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

TEST(TokenLevel, GivesABurstAndThenKeepsToItsRate) {
  TokenLevel bucket(10, 3);
  TimePoint now{100s};
  EXPECT_TRUE(bucket.try_take(now));
  EXPECT_TRUE(bucket.try_take(now));
  EXPECT_TRUE(bucket.try_take(now));
  EXPECT_FALSE(bucket.try_take(now));
  EXPECT_EQ(bucket.next_available(now), now + 100ms);
  EXPECT_TRUE(bucket.try_take(now + 100ms));
}

// pyspider's bucket dispatched at rate 0, and never with a burst below 1.
TEST(TokenLevel, GivesNothingAtRateZeroAndSomethingAtASmallBurst) {
  TokenLevel none(0, 5);
  EXPECT_FALSE(none.try_take(TimePoint{1s}));
  EXPECT_EQ(none.next_available(TimePoint{1s}), kNever);
  TokenLevel small(1, 0.1);
  EXPECT_TRUE(small.try_take(TimePoint{1s}));
  EXPECT_FALSE(small.try_take(TimePoint{1s}));
}

TEST(TokenLevel, NeverRefusesWithoutALimit) {
  TokenLevel bucket;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(bucket.try_take(TimePoint{}));
}

// pyspider kept the tokens of an old, larger burst.
TEST(TokenLevel, ForgetsPermitsAboveALoweredBurst) {
  TokenLevel bucket(1, 100);
  bucket.set(1, 2, TimePoint{1000s});
  EXPECT_TRUE(bucket.try_take(TimePoint{1000s}));
  EXPECT_TRUE(bucket.try_take(TimePoint{1000s}));
  EXPECT_FALSE(bucket.try_take(TimePoint{1000s}));
}

TEST(TokenLevel, StandsStillWhenTimeStepsBack) {
  TokenLevel bucket(1, 1);
  EXPECT_TRUE(bucket.try_take(TimePoint{10s}));
  EXPECT_FALSE(bucket.try_take(TimePoint{5s}));
  EXPECT_TRUE(bucket.try_take(TimePoint{11s}));
}

TEST(TokenLevel, CountsABurstInWholePermits) {
  TokenLevel bucket(1, 2.9);
  EXPECT_TRUE(bucket.try_take(TimePoint{1s}));
  EXPECT_TRUE(bucket.try_take(TimePoint{1s}));
  EXPECT_FALSE(bucket.try_take(TimePoint{1s}));
}

TEST(TokenLevel, FillsALargerBurstAtItsRateAndNotAtOnce) {
  TokenLevel bucket(1, 1);
  EXPECT_TRUE(bucket.try_take(TimePoint{10s}));
  bucket.set(1, 5, TimePoint{10s});
  EXPECT_FALSE(bucket.try_take(TimePoint{10s}));
  EXPECT_EQ(bucket.next_available(TimePoint{10s}), TimePoint{11s});
}

TEST(TokenLevel, KeepsThePermitsHeldWhenTheRateChanges) {
  TokenLevel bucket(1, 4);
  TimePoint now{10s};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.try_take(now));
  bucket.set(100, 4, now);
  EXPECT_TRUE(bucket.try_take(now));
  EXPECT_FALSE(bucket.try_take(now));
  EXPECT_EQ(bucket.next_available(now), now + 10ms);
}

TEST(TokenLevel, MakesNoPermitsByBeingStoppedAndStartedAgain) {
  TokenLevel bucket(1, 1);
  const TimePoint now{10s};
  EXPECT_TRUE(bucket.try_take(now));
  for (int i = 0; i < 3; ++i) {
    bucket.set(0, 1, now);
    EXPECT_EQ(bucket.next_available(now), kNever);
    bucket.set(1, 1, now);
    EXPECT_FALSE(bucket.try_take(now));
  }
  EXPECT_TRUE(bucket.try_take(now + 1s));
}

TEST(TokenLevel, UndoesTheLastTake) {
  TokenLevel bucket(1, 2);
  const TimePoint now{10s};
  EXPECT_TRUE(bucket.full(now));
  bucket.take(now);
  EXPECT_FALSE(bucket.full(now));
  bucket.undo_take();
  EXPECT_TRUE(bucket.try_take(now));
  EXPECT_TRUE(bucket.try_take(now));
  EXPECT_FALSE(bucket.try_take(now));
}

TEST(TokenLevel, SurvivesRatesAndBurstsBeyondReason) {
  const TimePoint now{10s};
  for (const double rate : {1e-300, 1e-12, 1e12, 1e300}) {
    for (const double burst : {-1.0, 1.0, 1e300, kUnlimitedRate}) {
      TokenLevel bucket(rate, burst);
      EXPECT_TRUE(bucket.try_take(now)) << rate << ' ' << burst;
      EXPECT_GE(bucket.next_available(now), now);
      bucket.set(3, 2, now);
      bucket.set(rate, burst, now + 1h);
      EXPECT_GE(bucket.next_available(kNever), kNever);
      EXPECT_LE(bucket.next_available(TimePoint::min()), kNever);
    }
  }
  EXPECT_EQ(TokenLevel(-1).next_available(now), kNever);
  EXPECT_EQ(TokenLevel(std::numeric_limits<double>::quiet_NaN()).next_available(now), kNever);
}

// Exact: whole permits a second, so that both sides of the promise are whole numbers.
TEST(TokenLevel, NeverExceedsBurstPlusRateInAnyWindow) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const std::int64_t rate = random.between(1, seed % 2 == 0 ? 50 : 999'999'937);
    const std::int64_t burst = random.between(1, 10);
    TokenLevel bucket(static_cast<double>(rate), static_cast<double>(burst));
    TimePoint now{};
    // Of all windows that end at a take, the worst one begins where permits·10⁹ − rate·ns was least.
    __int128 least = 0;
    std::int64_t permits = 0;
    for (int i = 0; i < 3000; ++i) {
      const TimePoint next = bucket.next_available(now);
      now = random.chance(0.7) ? next : now + Duration{random.between(0, 3'000'000'000 / rate)};
      if (!bucket.try_take(now)) continue;
      const __int128 before =
          static_cast<__int128>(permits) * 1'000'000'000 - static_cast<__int128>(rate) * now.time_since_epoch().count();
      least = permits == 0 ? before : std::min(least, before);
      ++permits;
      ASSERT_LE(before + 1'000'000'000 - least, static_cast<__int128>(burst) * 1'000'000'000) << "seed " << seed;
    }
    EXPECT_GT(permits, 1000);
  }
}

// A third of a second is no whole number of nanoseconds. (A burst of 1 leaves no room to make up for the fraction of a
// nanosecond by which each permit comes late.)
TEST(TokenLevel, DoesNotDriftBelowItsRateEither) {
  TokenLevel bucket(3, 2);
  TimePoint now{};
  for (int i = 0; i < 3'000'002; ++i) {
    now = bucket.next_available(now);
    bucket.take(now);
  }
  EXPECT_GE(now, TimePoint{1'000'000s});
  EXPECT_LE(now, TimePoint{1'000'000s} + 1ns);
}

}  // namespace
}  // namespace argiope
