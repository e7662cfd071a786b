#include "argiope/base/clock.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "argiope/base/random.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

TEST(Seconds, SaturateInsteadOfOverflowing) {
  EXPECT_EQ(from_seconds(1.5), 1500ms);
  EXPECT_EQ(from_seconds(1e300), Duration::max());
  EXPECT_EQ(from_seconds(-1e300), Duration::min());
  EXPECT_EQ(from_seconds(NAN), Duration::zero());
  EXPECT_EQ(saturating_add(TimePoint{1s}, Duration::max()), kNever);
  EXPECT_EQ(saturating_add(kNever, 1ns), kNever);
  EXPECT_EQ(saturating_add(TimePoint{1s}, 1s), TimePoint{2s});
}

TEST(ManualClock, MovesOnlyWhenTold) {
  ManualClock clock;
  const WallTime wall = clock.wall_now();
  clock.advance(5s);
  EXPECT_EQ(clock.now(), TimePoint{5s});
  EXPECT_EQ(clock.wall_now(), wall + 5s);
  clock.advance_to(TimePoint{3s});
  EXPECT_EQ(clock.now(), TimePoint{5s});
}

TEST(ManualClock, JumpsTheCalendarWithoutTouchingTheMonotonicLine) {
  ManualClock clock;
  clock.advance(1h);
  clock.set_wall(WallTime{42s});
  EXPECT_EQ(clock.wall_now(), WallTime{42s});
  EXPECT_EQ(clock.now(), TimePoint{1h});
}

TEST(Random, GivesTheSameSequenceForTheSameSeed) {
  Random a(9), b(9), c(10);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t drawn = a.next();
    EXPECT_EQ(drawn, b.next());
    differs = differs || drawn != c.next();
  }
  EXPECT_TRUE(differs);
}

TEST(Random, StaysWithinBounds) {
  Random random(1);
  std::array<int, 7> seen{};
  for (int i = 0; i < 7000; ++i) ++seen[random.below(7)];
  for (const int count : seen) EXPECT_GT(count, 800);
  EXPECT_EQ(random.below(0), 0u);
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t drawn = random.between(-3, 3);
    EXPECT_GE(drawn, -3);
    EXPECT_LE(drawn, 3);
    const double unit = random.unit();
    EXPECT_GE(unit, 0);
    EXPECT_LT(unit, 1);
  }
  (void)random.between(INT64_MIN, INT64_MAX);
}

}  // namespace
}  // namespace argiope
