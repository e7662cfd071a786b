#include <gtest/gtest.h>

#include "argiope/jobs/job_queue.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

TEST(RetryPolicy, GrowsUntilTheLongestAndEndsWithTheAttempts) {
  Random random(1);
  RetryPolicy policy;
  policy.max_attempts = 5;
  policy.first = 1s;
  policy.factor = 10;
  policy.longest = 50s;
  policy.jitter = 0;
  EXPECT_EQ(policy.delay_after(1, random), 1s);
  EXPECT_EQ(policy.delay_after(2, random), 10s);
  EXPECT_EQ(policy.delay_after(3, random), 50s);
  EXPECT_EQ(policy.delay_after(5, random), std::nullopt);
}

TEST(RetryPolicy, FollowsATableToItsLastEntry) {
  Random random(1);
  RetryPolicy policy;
  policy.max_attempts = 10;
  policy.jitter = 0;
  policy.table = {30s, 1h};
  EXPECT_EQ(policy.delay_after(1, random), 30s);
  EXPECT_EQ(policy.delay_after(2, random), 1h);
  EXPECT_EQ(policy.delay_after(7, random), 1h);
}

TEST(RetryPolicy, SpreadsWaitsWithinTheJitter) {
  Random random(1);
  RetryPolicy policy;
  policy.first = 100s;
  policy.jitter = 0.5;
  for (int i = 0; i < 1000; ++i) {
    const auto wait = *policy.delay_after(1, random);
    ASSERT_GE(wait, 50s);
    ASSERT_LE(wait, 100s);
  }
}

TEST(RetryPolicy, WaitsNeitherLessThanNothingNorLongerThanTimeWhateverItsFields) {
  Random random(1);
  RetryPolicy policy;
  policy.max_attempts = ~0u;
  policy.longest = Duration::max();
  for (const double factor : {-3.0, 0.0, 1e300}) {
    for (const double jitter : {-1.0, 0.0, 1.0, 7.0}) {
      policy.factor = factor;
      policy.jitter = jitter;
      for (const std::uint32_t attempts : {1u, 2u, 3u, 1'000'000u}) {
        EXPECT_GE(*policy.delay_after(attempts, random), 0s);
      }
    }
  }
  policy.first = 0s;
  EXPECT_EQ(policy.delay_after(1'000'000, random), 0s);
}

}  // namespace
}  // namespace argiope
