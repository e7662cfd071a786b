#include "argiope/base/clock.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace argiope {
namespace {

using namespace std::chrono_literals;

TEST(Clock, FromSecondsKeepsFractions) {
  EXPECT_EQ(from_seconds(1.5), 1500ms);
  EXPECT_EQ(from_seconds(0), 0ns);
  EXPECT_EQ(from_seconds(-0.25), -250ms);
  EXPECT_DOUBLE_EQ(to_seconds(2250ms), 2.25);
}

TEST(Clock, FromSecondsSaturates) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(from_seconds(1e300), Duration::max());
  EXPECT_EQ(from_seconds(kInfinity), Duration::max());
  EXPECT_EQ(from_seconds(-1e300), Duration::min());
  EXPECT_EQ(from_seconds(-kInfinity), Duration::min());
  EXPECT_EQ(from_seconds(std::numeric_limits<double>::quiet_NaN()), Duration::zero());
}

TEST(Clock, SaturatingAddGivesNeverInsteadOfAnOverflow) {
  constexpr TimePoint kNow{1h};
  EXPECT_EQ(saturating_add(kNow, 1s), kNow + 1s);
  EXPECT_EQ(saturating_add(kNow, -1s), kNow - 1s);
  EXPECT_EQ(saturating_add(kNow, Duration::max()), kNever);
  EXPECT_EQ(saturating_add(kNever, 1ns), kNever);
  EXPECT_EQ(saturating_add(TimePoint{}, Duration::max()), kNever);
}

TEST(Clock, SaturatingAddDoesNotUnderflowEither) {
  EXPECT_EQ(saturating_add(TimePoint{-1h}, Duration::min()), TimePoint::min());
  EXPECT_EQ(saturating_add(TimePoint{}, Duration::min()), TimePoint::min());
}

TEST(ManualClock, StandsStillUntilMoved) {
  ManualClock clock(WallTime{1000s});
  EXPECT_EQ(clock.now(), TimePoint{});
  EXPECT_EQ(clock.wall_now(), WallTime{1000s});
  clock.advance(5s);
  EXPECT_EQ(clock.now(), TimePoint{5s});
  EXPECT_EQ(clock.wall_now(), WallTime{1005s});
}

TEST(ManualClock, NeverStepsBack) {
  ManualClock clock;
  clock.advance_to(TimePoint{10s});
  clock.advance_to(TimePoint{3s});
  EXPECT_EQ(clock.now(), TimePoint{10s});
}

TEST(ManualClock, AJumpOfTheCalendarLeavesTheMonotonicLineAlone) {
  ManualClock clock(WallTime{1000s});
  clock.advance(10s);
  clock.set_wall(WallTime{500s});
  EXPECT_EQ(clock.now(), TimePoint{10s});
  EXPECT_EQ(clock.wall_now(), WallTime{500s});
  clock.advance(1s);
  EXPECT_EQ(clock.wall_now(), WallTime{501s});
}

TEST(SystemClock, NeverStepsBackAndKnowsTheYear) {
  const SystemClock clock;
  const TimePoint first = clock.now();
  EXPECT_GE(clock.now(), first);
  EXPECT_GT(clock.wall_now(), WallTime{std::chrono::hours{24 * 365 * 50}});
}

}  // namespace
}  // namespace argiope
