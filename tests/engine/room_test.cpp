// Who gets the room that a queue has.
#include "engine/room.hpp"

#include <gtest/gtest.h>

#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class RoomTest : public OnVirtualLoop {
 protected:
  QueueConfig config_{.capacity = 3, .at_capacity = CapacityPolicy::wait};
};

TEST_F(RoomTest, IsTakenUntilThereIsNone) {
  Room room(loop_, config_);
  EXPECT_TRUE(room.take_now(2));
  EXPECT_FALSE(room.take_now(2));
  EXPECT_TRUE(room.take_now(1));
  EXPECT_EQ(room.live(), 3u);
  room.arrived(true);
  EXPECT_FALSE(room.take_now(1));
  room.arrived(false);  // it added no job
  EXPECT_TRUE(room.take_now(1));
  room.take_anyway(1);
  EXPECT_EQ(room.live(), 4u);
}

TEST_F(RoomTest, IsGivenToWhoeverHasWaitedLongestThoughALaterOneWouldFit) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    Room room(loop_, config_);
    EXPECT_TRUE(room.take_now(3));
    auto two = loop_.create_task(room.take("q", 2));
    auto one = loop_.create_task(room.take("q", 1));
    co_await sleep(1s);
    room.give(1);
    EXPECT_FALSE(room.take_now(1));  // others wait
    co_await sleep(1s);
    EXPECT_FALSE(two.done());
    EXPECT_FALSE(one.done());
    room.give(1);
    EXPECT_TRUE(co_await two);
    EXPECT_FALSE(one.done());
    config_.capacity = 4;
    room.look_again();
    EXPECT_TRUE(co_await one);
    EXPECT_EQ((co_await room.take("q", 5)).error().code, Errc::refused);  // it never fits
  }));
}

TEST_F(RoomTest, GoesOnWhenAWaiterIsCancelledBeforeOrAfterItWasGivenRoom) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    for (const bool given : {false, true}) {
      Room room(loop_, config_);
      EXPECT_TRUE(room.take_now(3));
      auto first = loop_.create_task(room.take("q", 2));
      auto second = loop_.create_task(room.take("q", 1));
      co_await sleep(1s);
      if (given) room.give(2);
      first.cancel();
      co_await sleep(1s);
      EXPECT_TRUE(first.cancelled());
      if (!given) room.give(1);
      EXPECT_TRUE(co_await second);
      EXPECT_EQ(room.live(), given ? 2u : 3u);
    }
  }));
}

TEST_F(RoomTest, ThatClosesAnswersThoseWhoWait) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    Room room(loop_, config_);
    EXPECT_TRUE(room.take_now(3));
    auto waits = loop_.create_task(room.take("q", 1));
    co_await sleep(1s);
    room.close();
    EXPECT_EQ((co_await waits).error().code, Errc::cancelled);
    room.give(3);
    EXPECT_FALSE(room.take_now(1));
    EXPECT_EQ((co_await room.take("q", 1)).error().code, Errc::cancelled);
  }));
}

}  // namespace
}  // namespace argiope
