// How much of the daemon's time and memory one caller may take.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "serve/bounds/answer_room.hpp"
#include "serve/bounds/read_turns.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

TEST(AnswerRoomTest, OneCallerHasHalfOfItAndAllTogetherTheWhole) {
  AnswerRoom room(100);
  auto first = room.take("a", 30);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(room.take("a", 21), nullptr) << "its half is full";
  const auto second = room.take("a", 20);
  const auto others = room.take("b", 50);
  EXPECT_NE(others, nullptr);
  EXPECT_EQ(room.take("c", 1), nullptr) << "all is full";
  EXPECT_TRUE(room.is_full("a"));
  first.reset();
  EXPECT_FALSE(room.is_full("a"));
  EXPECT_EQ(room.bytes(), 70u);
  EXPECT_NE(room.take("c", 30), nullptr);
}

TEST(AnswerRoomTest, WhatIsLargerThanAllOfItFitsAlone) {
  AnswerRoom room(100);
  auto large = room.take("a", 1'000);
  EXPECT_NE(large, nullptr);
  EXPECT_EQ(room.take("b", 1), nullptr);
  const auto told = room.take_anyway("b", 5);
  EXPECT_EQ(room.bytes(), 1'005u);
  large.reset();
  EXPECT_EQ(room.bytes(), 5u);
}

TEST(AnswerRoomTest, AnAnswerThatThereIsNoRoomForBecomesARefusal) {
  AnswerRoom room(3 * AnswerRoom::kSmall);
  const auto held = [&](std::string who, std::size_t bytes, bool refuses = true) {
    auto response = ServerResponse::text(200, std::string(bytes, 'x'));
    room.hold(who, response, refuses);
    return response;
  };
  const auto first = held("a", AnswerRoom::kSmall + 1);
  EXPECT_EQ(first.status, 200);
  const auto refused = held("a", AnswerRoom::kSmall + 1);
  EXPECT_EQ(refused.status, 503);
  EXPECT_LT(refused.body.size(), 1'000u);
  EXPECT_EQ(held("a", AnswerRoom::kSmall).status, 200) << "small ones are not counted";
  EXPECT_EQ(held("a", AnswerRoom::kSmall + 1, false).status, 200) << "what was done is told";
}

class ReadTurnsTest : public OnVirtualLoop {};

TEST_F(ReadTurnsTest, OneCallerLeavesTurnsForTheOthers) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    ReadTurns turns;
    std::vector<std::string> had;
    Event over;
    const auto reads = [&](std::string who) -> Coro<void> {
      const auto turn = co_await turns.next(who);
      had.push_back(who);
      co_await over.wait();
    };
    std::vector<Task<void>> tasks;
    for (const char* who : {"a", "a", "a", "a", "a", "b", "c", "d"}) tasks.push_back(loop_.create_task(reads(who)));
    for (int i = 0; i < 20; ++i) co_await yield_now();
    EXPECT_EQ(had, (std::vector<std::string>{"a", "a", "b", "c"}));
    over.set();
    for (auto& task : tasks) co_await task;
    EXPECT_EQ(had.size(), 8u);
  }));
}

}  // namespace
}  // namespace argiope
