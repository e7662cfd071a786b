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

// Reads beside one who makes a change each millisecond.
class ReadsBesideWritesTest : public OnVirtualLoop {
 protected:
  // `body(turns)`, beside the writer.
  template <class Body>
  void beside_writes(Body body) {
    loop_.run_until_complete(keeping([&]() -> Coro<void> {
      ReadTurns turns([this] { return changes_; });
      auto writer = loop_.create_task(write());
      co_await sleep(5ms);
      co_await body(turns);
      writer.cancel();
      co_await gather_quietly(writer);
    }));
  }
  Coro<void> write() {
    for (;; ++changes_) co_await sleep(1ms);
  }
  static Coro<void> gather_quietly(Task<void>& task) {
    try {
      co_await task;
    } catch (const CancelledError&) {
    }
  }
  // `count` loops that `read` until `time` has passed: how many reads there were.
  template <class Read>
  Coro<int> loops(int count, Duration time, Read read) {
    int reads = 0;
    const TimePoint end = loop_.time() + time;
    const auto repeat = [&]() -> Coro<void> {
      while (loop_.time() < end) {
        co_await read();
        ++reads;
      }
    };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < count; ++i) tasks.push_back(loop_.create_task(repeat()));
    for (auto& task : tasks) co_await task;
    co_return reads;
  }

  std::uint64_t changes_ = 0;
};

TEST_F(ReadsBesideWritesTest, TheLoopsOfACallerHaveAFifthOfTheTimeWhateverTheirReadsTake) {
  for (const Duration takes : {Duration{2ms}, Duration{7ms}, Duration{20ms}}) {
    beside_writes([&](ReadTurns& turns) -> Coro<void> {
      constexpr Duration kTime = 10s;
      int under_way = 0;
      Duration busy{};
      TimePoint began{};
      co_await loops(8, kTime, [&]() -> Coro<void> {
        co_await turns.let_in("a");
        const auto turn = co_await turns.next("a");
        if (++under_way == 1) began = loop_.time();
        co_await sleep(takes);
        if (--under_way == 0) busy += loop_.time() - began;
      });
      EXPECT_LT(busy, kTime / ReadTurns::kShare * 11 / 10) << takes.count();
      EXPECT_GT(busy, kTime / ReadTurns::kShare / 2) << "they are not starved: " << takes.count();
    });
  }
}

TEST_F(ReadsBesideWritesTest, SmallReadsCountToo) {
  beside_writes([&](ReadTurns& turns) -> Coro<void> {
    const int reads = co_await loops(8, 1s, [&] { return turns.let_in("a"); });
    const auto most = static_cast<int>(1s / (ReadTurns::kShare * ReadTurns::kLeast));
    EXPECT_LE(reads, most + 10);
    EXPECT_GE(reads, most - 10);
    EXPECT_GE(turns.waits(), static_cast<std::uint64_t>(most - 10));
  });
}

TEST_F(ReadsBesideWritesTest, OnlyItsOwnReadsMakeACallerWait) {
  beside_writes([&](ReadTurns& turns) -> Coro<void> {
    auto greedy = loop_.create_task(loops(8, 1s, [&]() -> Coro<void> {
      const auto turn = co_await turns.next("a");
      co_await sleep(30ms);
    }));
    for (int i = 0; i < 10; ++i) {
      co_await sleep(50ms);
      const TimePoint asked = loop_.time();
      co_await turns.let_in("b");
      const auto turn = co_await turns.next("b");
      EXPECT_LE(loop_.time() - asked, ReadTurns::kShare * ReadTurns::kLeast);
    }
    co_await greedy;
  });
}

TEST_F(ReadsBesideWritesTest, TheConnectionsOfACallerTakeTurns) {
  beside_writes([&](ReadTurns& turns) -> Coro<void> {
    auto greedy = loop_.create_task(loops(8, 1s, [&]() -> Coro<void> { co_await turns.let_in("a"); }));
    for (int i = 0; i < 10; ++i) {
      co_await sleep(50ms);
      const TimePoint asked = loop_.time();
      co_await turns.let_in("a");
      EXPECT_LE(loop_.time() - asked, 10 * ReadTurns::kShare * ReadTurns::kLeast);
    }
    co_await greedy;
  });
}

TEST_F(ReadsBesideWritesTest, AReadOfAnyLengthIsFollowedByABoundedRest) {
  beside_writes([&](ReadTurns& turns) -> Coro<void> {
    {
      const auto turn = co_await turns.next("a");
      co_await sleep(10s);
    }
    const TimePoint ended = loop_.time();
    co_await turns.let_in("a");
    EXPECT_EQ(loop_.time() - ended, ReadTurns::kLongestRest);
  });
}

TEST_F(ReadsBesideWritesTest, OneThatLeavesWhileItWaitsTakesNothing) {
  beside_writes([&](ReadTurns& turns) -> Coro<void> {
    co_await turns.let_in("a");
    const TimePoint asked = loop_.time();
    std::vector<Task<void>> left;
    for (int i = 0; i < 5; ++i) left.push_back(loop_.create_task(turns.let_in("a")));
    co_await let_others_run();
    auto last = loop_.create_task(turns.let_in("a"));
    co_await let_others_run();
    for (auto& task : left) task.cancel();
    co_await last;
    EXPECT_EQ(loop_.time() - asked, ReadTurns::kShare * ReadTurns::kLeast);
    for (auto& task : left) co_await gather_quietly(task);
  });
}

TEST_F(ReadsBesideWritesTest, WithNobodyElseAtWorkNothingWaitsAndNothingIsHeldAgainstIt) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    ReadTurns turns([this] { return changes_; });
    const auto read_often = [&]() -> Coro<void> {
      for (int i = 0; i < 1'000; ++i) {
        co_await turns.let_in("a");
        const auto turn = co_await turns.next("a");
      }
    };
    co_await sleep(1s);
    TimePoint asked = loop_.time();
    co_await read_often();
    EXPECT_EQ(loop_.time(), asked);
    ++changes_;
    co_await turns.let_in("a");
    EXPECT_EQ(loop_.time(), asked);
    co_await turns.let_in("a");
    asked = loop_.time();
    co_await sleep(ReadTurns::kRecent);
    co_await read_often();
    EXPECT_EQ(loop_.time() - asked, ReadTurns::kRecent) << "the change is long ago";
  }));
}

TEST_F(ReadsBesideWritesTest, ThoseThatWaitGoOnWhenNobodyWritesAnyMore) {
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    ReadTurns turns([this] { return changes_; });
    ++changes_;
    {
      const auto turn = co_await turns.next("a");
      co_await sleep(10ms);
      ++changes_;
    }
    const TimePoint ended = loop_.time();
    co_await loops(3, Duration{1}, [&] { return turns.let_in("a"); });
    EXPECT_LE(loop_.time() - ended, ReadTurns::kRecent);
  }));
}

TEST_F(ReadsBesideWritesTest, WhatChangesSomethingIsAnsweredAtOnce) {
  const auto turns = std::make_shared<ReadTurns>([this] { return changes_; });
  const auto reader = [](const ServerRequest& request) -> std::optional<std::string> {
    return request.method == HttpMethod::get ? std::optional<std::string>("a") : std::nullopt;
  };
  const auto handler = behind_writes(
      turns, reader, [](ServerRequest&) -> Coro<ServerResponse> { co_return ServerResponse::text(200, "done"); });
  const auto takes = [&](HttpMethod method) -> Coro<Duration> {
    ServerRequest request;
    request.method = method;
    const TimePoint asked = loop_.time();
    EXPECT_EQ((co_await handler(request)).status, 200);
    co_return loop_.time() - asked;
  };
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    for (int i = 0; i < 5; ++i) {
      ++changes_;
      EXPECT_EQ(co_await takes(HttpMethod::post), Duration{});
    }
    EXPECT_EQ(co_await takes(HttpMethod::get), Duration{});
    EXPECT_EQ(co_await takes(HttpMethod::get), ReadTurns::kShare * ReadTurns::kLeast);
    EXPECT_EQ(co_await takes(HttpMethod::post), Duration{});
  }));
}

}  // namespace
}  // namespace argiope
