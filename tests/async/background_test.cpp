// What a loop's owners share: a ticker that runs when it is due, and background work that ends with nobody waiting.
#include "async/internal/background.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "async/internal/as_error.hpp"
#include "async/internal/ticker.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class OwnersTest : public OnVirtualLoop {
 protected:
  void run_for(Duration by) { loop_.run_until_complete(sleep_for(by)); }
};

TEST_F(OwnersTest, ATickerTicksOnceHoweverOftenItWasAsked) {
  int ticks = 0;
  Ticker ticker(loop_, [&] { ++ticks; });
  for (int i = 0; i < 3; ++i) ticker.soon();
  EXPECT_EQ(ticks, 0) << "never within the call";
  run_for(1s);
  EXPECT_EQ(ticks, 1);
  ticker.soon();
  run_for(1s);
  EXPECT_EQ(ticks, 2);
}

TEST_F(OwnersTest, ATickerTicksAtTheEarliestInstantAskedFor) {
  std::vector<TimePoint> ticks;
  Ticker ticker(loop_, [&] { ticks.push_back(loop_.time()); });
  const TimePoint start = loop_.time();
  ticker.at(kNever);
  ticker.at(start + 5s);
  ticker.at(start + 2s);
  ticker.at(start + 9s);
  run_for(20s);
  EXPECT_EQ(ticks, std::vector{start + 2s}) << "a tick asks again for what it still waits for";
  ticker.at(start + 25s);
  ticker.forget_time();
  ticker.at(start + 30s);
  run_for(20s);
  EXPECT_EQ(ticks, (std::vector{start + 2s, start + 30s}));
}

TEST_F(OwnersTest, ATickMayAskForTheNext) {
  int ticks = 0;
  std::optional<Ticker> ticker;
  ticker.emplace(loop_, [&] {
    if (++ticks < 5) ticker->soon();
  });
  ticker->soon();
  run_for(1s);
  EXPECT_EQ(ticks, 5);
}

TEST_F(OwnersTest, ATickMayDestroyItsTicker) {
  auto owned = std::make_shared<int>(7);
  std::optional<Ticker> ticker;
  int seen = 0;
  ticker.emplace(loop_, [&, owned] {
    ticker.reset();
    seen = *owned;  // what it has captured outlives the ticker while it runs
  });
  ticker->at(loop_.time() + 1s);
  run_for(2s);
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_F(OwnersTest, NoTickBeginsOnceItsTickerIsGoneOrStopped) {
  int ticks = 0;
  {
    Ticker gone(loop_, [&] { ++ticks; });
    gone.soon();
    gone.at(loop_.time() + 1s);
  }
  Ticker stopped(loop_, [&] { ++ticks; });
  stopped.soon();
  stopped.at(loop_.time() + 1s);
  stopped.stop();
  stopped.soon();
  stopped.at(loop_.time() + 1s);
  run_for(5s);
  EXPECT_EQ(ticks, 0);
}

TEST_F(OwnersTest, ATickThatThrowsIsReportedAndTheNextOneComes) {
  int reported = 0, ticks = 0;
  loop_.set_exception_handler([&](std::string_view, const std::exception_ptr&) { ++reported; });
  Ticker ticker(loop_, [&] {
    if (++ticks == 1) throw std::runtime_error("no");
  });
  ticker.soon();
  run_for(1s);
  ticker.soon();
  run_for(1s);
  EXPECT_EQ(reported, 1);
  EXPECT_EQ(ticks, 2);
}

TEST(Owners, ATickerMayOutliveItsLoop) {
  VirtualBackend backend;
  std::optional<EventLoop> loop(std::in_place, backend);
  Ticker ticker(*loop, [] {});
  ticker.soon();
  ticker.at(loop->time() + 1s);
  loop.reset();
}

TEST_F(OwnersTest, QuietIsWhenNothingIsUnderWay) {
  Background background(loop_, "test");
  std::vector<int> ended;
  const auto work = [&](Duration time, int number) -> Coro<void> {
    co_await sleep(time);
    ended.push_back(number);
    if (number == 1) {
      background.run(nullptr, [](std::vector<int>& told) -> Coro<void> {
        co_await sleep(10s);
        told.push_back(3);
      }(ended));
    }
  };
  background.run(nullptr, work(2s, 2));
  background.run(nullptr, work(1s, 1), Start::eagerly);
  loop_.run_until_complete(background.quiet());
  EXPECT_EQ(ended, (std::vector{1, 2, 3})) << "what work has started is waited for too";
  loop_.run_until_complete(background.quiet());
}

TEST_F(OwnersTest, WorkKeepsItsOwnerAndOutlivesTheBackgroundItWasStartedBy) {
  auto owner = std::make_shared<int>(1);
  int seen = 0;
  {
    Background background(loop_, "test");
    background.run(owner, [](int& its, int& told) -> Coro<void> {
      co_await sleep(5s);
      told = its;
    }(*owner, seen));
  }
  const std::weak_ptr watched = owner;
  owner.reset();
  EXPECT_FALSE(watched.expired());
  run_for(6s);
  EXPECT_EQ(seen, 1);
  EXPECT_TRUE(watched.expired());
}

TEST_F(OwnersTest, WorkThatThrowsCountsAsEnded) {
  Background background(loop_, "test");
  loop_.set_exception_handler([](std::string_view, const std::exception_ptr&) {});
  background.run(nullptr, []() -> Coro<void> {
    co_await sleep(1s);
    throw std::runtime_error("no");
  }());
  loop_.run_until_complete(background.quiet());
}

TEST_F(OwnersTest, WhatRunsToItsEndDoesSoWhoeverIsCancelled) {
  Background background(loop_, "test");
  int steps = 0;
  const auto work = [&]() -> Coro<int> {
    ++steps;
    co_await sleep(2s);
    ++steps;
    co_return 42;
  };
  loop_.run_until_complete([](EventLoop& loop, Background& runs, auto& make, int& done) -> Coro<void> {
    EXPECT_EQ(co_await runs.to_its_end(nullptr, make()), 42);
    auto impatient = loop.create_task(runs.to_its_end(nullptr, make()));
    co_await sleep(1s);
    impatient.cancel();
    co_await sleep(500ms);
    EXPECT_TRUE(impatient.cancelled());
    EXPECT_EQ(done, 3);
    co_await runs.quiet();
    EXPECT_EQ(done, 4);
  }(loop_, background, work, steps));
}

TEST_F(OwnersTest, WhatIsThrownOnTheWayToTheEndReachesWhoWaitsOrElseTheLoop) {
  Background background(loop_, "test");
  int reported = 0;
  loop_.set_exception_handler([&](std::string_view, const std::exception_ptr&) { ++reported; });
  const auto work = []() -> Coro<int> {
    co_await sleep(2s);
    throw std::runtime_error("no");
  };
  loop_.run_until_complete([](EventLoop& loop, Background& runs, auto& make, int& told) -> Coro<void> {
    auto patient = loop.create_task(runs.to_its_end(nullptr, make()));
    auto impatient = loop.create_task(runs.to_its_end(nullptr, make()));
    co_await sleep(1s);
    impatient.cancel();
    co_await runs.quiet();
    co_await sleep(1s);
    EXPECT_TRUE(patient.done());
    EXPECT_THROW(patient.result(), std::runtime_error);
    EXPECT_TRUE(impatient.cancelled());
    EXPECT_EQ(told, 1) << "what nobody waits for, and nothing else";
  }(loop_, background, work, reported));
}

TEST_F(OwnersTest, WorkThatIsCancelledOnTheWayToItsEndCancelsTheWaitForIt) {
  Background background(loop_, "test");
  loop_.run_until_complete([](EventLoop& loop, Background& runs) -> Coro<void> {
    auto waits = loop.create_task(runs.to_its_end(nullptr, []() -> Coro<int> {
      co_await sleep(1s);
      throw CancelledError();
    }()));
    co_await sleep(2s);
    EXPECT_TRUE(waits.cancelled());
    co_await runs.quiet();
  }(loop_, background));
}

// --- what a task that nobody awaits makes of exceptions

Coro<Result<int>> giving(int number) { co_return number; }
Coro<Result<int>> throwing() {
  throw std::runtime_error("no memory");
  co_return 1;
}

TEST_F(OwnersTest, WhatIsThrownIsAnErrorWithItsText) {
  EXPECT_EQ(loop_.run_until_complete(as_error(giving(7))), 7);
  const Result<int> failed = loop_.run_until_complete(as_error(throwing()));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::internal);
  EXPECT_EQ(failed.error().message, "no memory");
}

TEST_F(OwnersTest, ACancellationIsNoError) {
  auto task = loop_.create_task(as_error([]() -> Coro<Result<void>> {
    co_await sleep(1h);
    co_return Result<void>{};
  }()));
  run_for(1s);
  task.cancel();
  run_for(1s);
  EXPECT_TRUE(task.cancelled());
}

}  // namespace
}  // namespace argiope
