#include "argiope/jobs/retry.hpp"

#include <gtest/gtest.h>

#include "argiope/jobs/job.hpp"

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

TEST(JobState, MovesOnlyAlongTheArrowsOfTheDrawing) {
  using enum JobState;
  EXPECT_TRUE(may_move(delayed, ready));
  EXPECT_TRUE(may_move(ready, running));
  EXPECT_TRUE(may_move(running, done));
  EXPECT_TRUE(may_move(running, delayed));
  EXPECT_TRUE(may_move(running, buried));
  EXPECT_TRUE(may_move(buried, ready));
  EXPECT_FALSE(may_move(delayed, running));
  EXPECT_FALSE(may_move(done, ready));
  EXPECT_FALSE(may_move(ready, done));
  EXPECT_FALSE(may_move(cancelled, running));
}

}  // namespace
}  // namespace argiope
