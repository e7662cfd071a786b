// Who gets the room that a queue has.
#include "engine/room.hpp"

#include <gtest/gtest.h>

#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class RoomTest : public OnVirtualLoop {
 protected:
  StoredQueue queue_{.name = "q", .config = {.capacity = 3, .at_capacity = CapacityPolicy::wait}};
};

TEST_F(RoomTest, IsTakenUntilThereIsNone) {
  Room room(loop_, queue_);
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
    Room room(loop_, queue_);
    EXPECT_TRUE(room.take_now(3));
    auto two = loop_.create_task(room.take(2));
    auto one = loop_.create_task(room.take(1));
    co_await sleep(1s);
    room.give(1);
    EXPECT_FALSE(room.take_now(1));  // others wait
    co_await sleep(1s);
    EXPECT_FALSE(two.done());
    EXPECT_FALSE(one.done());
    room.give(1);
    EXPECT_TRUE(co_await two);
    EXPECT_FALSE(one.done());
    queue_.config.capacity = 4;
    room.look_again();
    EXPECT_TRUE(co_await one);
    EXPECT_EQ((co_await room.take(5)).error().code, Errc::refused);  // it never fits
  }));
}

TEST_F(RoomTest, GoesOnWhenAWaiterIsCancelledBeforeOrAfterItWasGivenRoom) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    for (const bool given : {false, true}) {
      Room room(loop_, queue_);
      EXPECT_TRUE(room.take_now(3));
      auto first = loop_.create_task(room.take(2));
      auto second = loop_.create_task(room.take(1));
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
    Room room(loop_, queue_);
    EXPECT_TRUE(room.take_now(3));
    auto waits = loop_.create_task(room.take(1));
    co_await sleep(1s);
    room.close();
    EXPECT_EQ((co_await waits).error().code, Errc::cancelled);
    room.give(3);
    EXPECT_FALSE(room.take_now(1));
    EXPECT_EQ((co_await room.take(1)).error().code, Errc::cancelled);
  }));
}

// Two queues, of which the first one is asked first.
class RoomsTest : public OnVirtualLoop {
 protected:
  StoredQueue first_queue_{.name = "first", .config = {.capacity = 3, .at_capacity = CapacityPolicy::wait}};
  StoredQueue second_queue_{.name = "second", .config = {.capacity = 3, .at_capacity = CapacityPolicy::refuse}};
  struct Rooms {
    Room first, second;
  };
};

TEST_F(RoomsTest, AreTakenTogether) {
  Rooms rooms{{loop_, first_queue_}, {loop_, second_queue_}};
  EXPECT_TRUE(loop_.run_until_complete(Room::take_all({{&rooms.first, 2}, {&rooms.second, 3}})));
  EXPECT_EQ(rooms.first.live(), 2u);
  EXPECT_EQ(rooms.second.live(), 3u);
  EXPECT_EQ(rooms.second.arriving(), 3u);
}

TEST_F(RoomsTest, AreNotTakenWhenOneRefuses) {
  Rooms rooms{{loop_, first_queue_}, {loop_, second_queue_}};
  const Room::Wanted wanted{{&rooms.first, 2}, {&rooms.second, 4}};
  for (const auto& taken : {loop_.run_until_complete(Room::take_all(wanted)), Room::take_all_now(wanted)}) {
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, Errc::refused);
    EXPECT_EQ(taken.error().message, "queue \"second\" is full: it holds 0 jobs, and at most 3");
    EXPECT_EQ(rooms.first.live(), 0u);
    EXPECT_EQ(rooms.first.arriving(), 0u);
  }
  EXPECT_TRUE(Room::take_all_now({{&rooms.first, 3}, {&rooms.second, 3}})) << "all of it is there again";
}

TEST_F(RoomsTest, GiveBackWhatTheyTookWhenTheWaitIsCancelled) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    second_queue_.config.at_capacity = CapacityPolicy::wait;
    Rooms rooms{{loop_, first_queue_}, {loop_, second_queue_}};
    EXPECT_TRUE(rooms.second.take_now(3));
    auto both = loop_.create_task(Room::take_all({{&rooms.first, 2}, {&rooms.second, 1}}));
    co_await sleep(1s);
    EXPECT_EQ(rooms.first.live(), 2u);
    auto others = loop_.create_task(rooms.first.take(2));
    co_await sleep(1s);
    EXPECT_FALSE(others.done());
    both.cancel();
    EXPECT_TRUE(co_await others) << "what was given back is theirs";
    EXPECT_TRUE(both.cancelled());
    EXPECT_EQ(rooms.first.live(), 2u);
    EXPECT_EQ(rooms.second.live(), 3u);
  }));
}

TEST_F(RoomsTest, ThatRefuseAreTakenInPartWhereThatWillDo) {
  first_queue_.config.at_capacity = CapacityPolicy::refuse;
  Rooms rooms{{loop_, first_queue_}, {loop_, second_queue_}};
  EXPECT_TRUE(rooms.first.take_now(2));
  const auto take_one = [](Room& room) -> std::uint64_t { return room.take_now(1) ? 1 : 0; };
  EXPECT_TRUE(loop_.run_until_complete(Room::take_all({{&rooms.first, 2}, {&rooms.second, 2}}, take_one)));
  EXPECT_EQ(rooms.first.live(), 3u);
  EXPECT_EQ(rooms.second.live(), 2u);
  // The second one is closed, so that nothing is taken: of the first one that is what it had given.
  rooms.first.give(1);
  rooms.second.close();
  const auto taken = loop_.run_until_complete(Room::take_all({{&rooms.first, 2}, {&rooms.second, 1}}, take_one));
  EXPECT_EQ(taken.error().code, Errc::cancelled);
  EXPECT_EQ(rooms.first.live(), 2u);
  EXPECT_EQ(rooms.first.arriving(), 3u);
}

}  // namespace
}  // namespace argiope
