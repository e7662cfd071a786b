// How much of the daemon's time and memory one caller may take.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "serve/api/worker_registry.hpp"
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

// --- workers

WallTime at_second(std::size_t second) { return WallTime{} + std::chrono::seconds(second); }

TEST(WorkerRegistryTest, OneAskerKeepsNobodyElsesWorkersOut) {
  WorkerRegistry workers;
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_NE(workers.seen("ann", "w" + std::to_string(i), {"mail"}, at_second(i)), nullptr);
  for (std::size_t i = 0; i < 3 * WorkerRegistry::kMostWorkers; ++i) {
    EXPECT_NE(workers.seen("bob", std::to_string(i), {"mail"}, at_second(100 + i)), nullptr);
  }
  EXPECT_LE(workers.all().size(), WorkerRegistry::kMostWorkers / 2 + 10);
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_NE(workers.find("ann", "w" + std::to_string(i)), nullptr) << "seen long before";
  EXPECT_NE(workers.find("bob", std::to_string(3 * WorkerRegistry::kMostWorkers - 1)), nullptr) << "the last is kept";
}

TEST(WorkerRegistryTest, WhatTheySayIsBoundedInBytes) {
  WorkerRegistry workers;
  const std::vector<std::string> queues(1'000, std::string(500, 'q'));
  workers.seen("ann", "w", {"mail"}, at_second(0));
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_NE(workers.seen("bob", std::to_string(i), queues, at_second(i)), nullptr);
    EXPECT_LE(workers.bytes(), WorkerRegistry::kMostBytes);
  }
  EXPECT_LE(workers.bytes(), WorkerRegistry::kMostBytes / 2 + 10'000);
  EXPECT_NE(workers.find("ann", "w"), nullptr);
}

TEST(WorkerRegistryTest, ThoseThatWaitAreKeptAndOneMoreIsRefused) {
  WorkerRegistry workers;
  const std::vector<std::string> queues(1'000, std::string(500, 'q'));
  std::size_t taken = 0;
  for (; taken < 1'000; ++taken) {
    const auto worker = workers.seen("bob", std::to_string(taken), queues, at_second(taken));
    if (worker == nullptr) break;
    worker->waiting = 1;
  }
  EXPECT_GT(taken, 10u);
  EXPECT_LT(taken, 100u);
  EXPECT_NE(workers.seen("ann", "w", {"mail"}, at_second(0)), nullptr) << "others have their half";
  EXPECT_NE(workers.seen("bob", "0", {"mail"}, at_second(0)), nullptr) << "one that says less";
  EXPECT_EQ(workers.find("bob", "0")->queues.size(), 1u);
  workers.forget(*workers.find("bob", "1"));
  EXPECT_NE(workers.seen("bob", "more", queues, at_second(0)), nullptr);
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
