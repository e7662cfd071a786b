#include <algorithm>
#include <atomic>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/threads.hpp"
#include "support/cancellation_sweep.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class ExecutorTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, ExecutorTest, kAllWorlds, world_name);

TEST_P(ExecutorTest, RunsOnAnotherThreadAndGivesTheResultOnTheLoops) {
  ThreadPoolExecutor executor(2);
  this->run([&]() -> Coro<void> {
    const auto home = std::this_thread::get_id();
    const auto elsewhere = co_await run_in_executor(executor, [] { return std::this_thread::get_id(); });
    EXPECT_NE(elsewhere, home);
    EXPECT_EQ(std::this_thread::get_id(), home);
  });
}

TEST_P(ExecutorTest, PassesOnWhatTheFunctionThrows) {
  ThreadPoolExecutor executor(1);
  this->run([&]() -> Coro<void> {
    bool thrown = false;
    try {
      co_await run_in_executor(executor, [] { throw std::runtime_error("in a thread"); });
    } catch (const std::runtime_error& error) {
      thrown = std::string(error.what()) == "in a thread";
    }
    EXPECT_TRUE(thrown);
  });
}

TEST_P(ExecutorTest, TakesAndGivesWhatCanOnlyBeMoved) {
  ThreadPoolExecutor executor(1);
  this->run([&]() -> Coro<void> {
    auto number = std::make_unique<int>(5);
    const auto doubled =
        co_await run_in_executor(executor, [n = std::move(number)] { return std::make_unique<int>(*n * 2); });
    EXPECT_EQ(*doubled, 10);
  });
}

TEST_P(ExecutorTest, RunsManyFunctions) {
  ThreadPoolExecutor executor(4);
  std::atomic<int> ran = 0;
  const int sum = this->run([&]() -> Coro<int> {
    std::vector<Future<int>> futures;
    for (int i = 0; i < 1000; ++i) {
      futures.push_back(run_in_executor(executor, [&ran, i] {
        ++ran;
        return i;
      }));
    }
    int total = 0;
    for (auto& future : futures) total += co_await future;
    co_return total;
  });
  EXPECT_EQ(ran, 1000);
  EXPECT_EQ(sum, 499'500);
}

TEST_P(ExecutorTest, TheLoopGoesOnWhileAThreadWorks) {
  ThreadPoolExecutor executor(1);
  std::binary_semaphore go(0);
  this->run([&]() -> Coro<void> {
    auto future = run_in_executor(executor, [&] { go.acquire(); });
    for (int i = 0; i < 100; ++i) co_await yield_now();
    EXPECT_FALSE(future.done());
    go.release();
    co_await future;
  });
}

TEST_P(ExecutorTest, CancellingTheFutureDropsTheResult) {
  ThreadPoolExecutor executor(1);
  std::binary_semaphore go(0);
  const auto witness = std::make_shared<int>();
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> {
      co_await run_in_executor(executor, [&go, witness] {
        go.acquire();
        return witness;
      });
    });
    co_await let_others_run();
    task.cancel();
    co_await let_others_run();
    EXPECT_TRUE(task.cancelled());
    go.release();
    co_await run_in_executor(executor, [] {});
  });
  EXPECT_EQ(witness.use_count(), 1);
}

TEST_P(ExecutorTest, ToThreadRunsOnTheLoopsOwnExecutor) {
  this->run([&]() -> Coro<void> {
    const auto here = std::this_thread::get_id();
    EXPECT_NE(co_await to_thread([] { return std::this_thread::get_id(); }), here);
    EXPECT_EQ(&this->loop.default_executor(), &this->loop.default_executor());
    EXPECT_THROW(this->loop.set_default_executor(nullptr), std::logic_error) << "it is in use";
  });
}

TEST_P(ExecutorTest, TheDefaultExecutorCanBeChosen) {
  auto chosen = std::make_unique<ThreadPoolExecutor>(1);
  ThreadPoolExecutor* const pool = chosen.get();
  this->loop.set_default_executor(std::move(chosen));
  EXPECT_EQ(&this->loop.default_executor(), pool);
}

TEST_P(ExecutorTest, ShuttingTheDefaultExecutorDownLetsTheLoopGoOn) {
  this->run([&]() -> Coro<void> {
    std::binary_semaphore go(0);
    auto last = to_thread([&] {
      go.acquire();
      return 8;
    });
    // Its thread ends only when the loop has gone on.
    auto releasing = this->spawn([&]() -> Coro<void> {
      co_await let_others_run();
      go.release();
    });
    co_await this->loop.shutdown_default_executor();
    EXPECT_EQ(co_await last, 8);
    co_await releasing;
    EXPECT_THROW(to_thread([] {}), std::logic_error);
    co_await this->loop.shutdown_default_executor();
  });
}

TEST_P(ExecutorTest, ALoopThatNeverUsedItsExecutorShutsItDownAtOnce) {
  this->run([&]() -> Coro<void> { co_await this->loop.shutdown_default_executor(); });
  EXPECT_THROW(this->loop.default_executor(), std::logic_error);
}

TEST_P(ExecutorTest, ALoopThatEndsFinishesWhatItsExecutorHas) {
  std::atomic<int> finished{0};
  {
    EventLoop doomed(this->world.backend);
    doomed.call_soon([&] {
      for (int i = 0; i < 8; ++i) static_cast<void>(to_thread([&] { ++finished; }));
    });
    doomed.run_once(TimePoint::min());
  }
  EXPECT_EQ(finished, 8);
}

TEST_P(ExecutorTest, AfterShutdownNothingIsTaken) {
  ThreadPoolExecutor executor(1);
  executor.shutdown();
  executor.shutdown();
  EXPECT_THROW(executor.submit([] {}), std::logic_error);
  this->run([&]() -> Coro<void> {
    EXPECT_THROW(static_cast<void>(run_in_executor(executor, [] {})), std::logic_error);
    co_return;
  });
}

TEST_P(ExecutorTest, ShutdownFinishesWhatWasSubmitted) {
  std::atomic<int> ran = 0;
  {
    ThreadPoolExecutor executor(2);
    for (int i = 0; i < 100; ++i) executor.submit([&] { ++ran; });
  }
  EXPECT_EQ(ran, 100);
}

TEST_P(ExecutorTest, WhatALoopThatEndsNoLongerTakesIsFreed) {
  const auto witness = std::make_shared<int>();
  {
    EventLoop doomed(this->world.backend);
    ThreadPoolExecutor executor(1);
    static_cast<void>(doomed.create_task(
        keeping([&]() -> Coro<void> { co_await run_in_executor(executor, [witness] { return witness; }); })));
    doomed.run_once(TimePoint::min());
  }
  EXPECT_EQ(witness.use_count(), 1);
}

TEST(ThreadPoolExecutor, RunsFunctionsInTheOrderSubmittedOnOneThread) {
  std::vector<int> order;
  {
    ThreadPoolExecutor executor(1);
    for (int i = 0; i < 100; ++i) executor.submit([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(ThreadPoolExecutor, NeedsAThread) { EXPECT_THROW(ThreadPoolExecutor(0), std::invalid_argument); }

// Virtual time may not run on while a thread works, or its speed would decide what a simulation does.
using VirtualExecutorTest = LoopTest<VirtualTime>;
TEST_F(VirtualExecutorTest, TimeStandsStillWhileAThreadWorks) {
  ThreadPoolExecutor executor(1);
  run([&]() -> Coro<void> {
    const TimePoint before = loop.time();
    const auto work = [&]() -> Coro<int> { co_return co_await run_in_executor(executor, [] { return 3; }); };
    EXPECT_EQ(co_await wait_for(work(), 1ns), 3);
    EXPECT_EQ(loop.time(), before);
  });
}

// Cancelled wherever it is: the functions still run, their results go, and the loop's end finds nothing.
struct ToThreadScenario {
  std::shared_ptr<std::atomic<int>> ran = std::make_shared<std::atomic<int>>(0);
  int submitted = 0;
  Coro<void> run() {
    EventLoop::current().set_default_executor(std::make_unique<ThreadPoolExecutor>(1));
    for (int i = 0; i < 2; ++i) {
      ++submitted;
      co_await to_thread([ran = ran] { return ++*ran; });
    }
    ++submitted;
    auto last = to_thread([ran = ran] { ++*ran; });
    co_await EventLoop::current().shutdown_default_executor();
    co_await last;
    EXPECT_EQ(*ran, 3);
  }
  void check() const { EXPECT_LE(*ran, submitted); }
};
TEST(CancellationSweep, ToThread) { sweep_cancellation_shuffled<ToThreadScenario>(3); }

}  // namespace
}  // namespace argiope
