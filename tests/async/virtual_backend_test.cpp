#include <string>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/io_backend.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/random.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

using VirtualBackendTest = LoopTest<VirtualTime>;

TEST_F(VirtualBackendTest, SleepsTakeExactlyTheirTimeAndNone) {
  run([&]() -> Coro<void> {
    const TimePoint before = loop.time();
    co_await sleep(1234567ns);
    EXPECT_EQ(loop.time(), before + 1234567ns);
  });
}

TEST_F(VirtualBackendTest, AMonthOfSchedulesRunsToTheNanosecond) {
  constexpr auto kMonth = std::chrono::days{30};
  struct Ticker {
    Duration period;
    int ticks = 0;
  };
  std::vector<Ticker> tickers{{1min}, {1h}, {std::chrono::days{1}}, {7s}};
  run([&]() -> Coro<void> {
    const TimePoint end = loop.time() + kMonth;
    const auto tick = [&](Ticker& ticker) -> Coro<void> {
      for (TimePoint next = loop.time() + ticker.period; next <= end; next += ticker.period) {
        co_await sleep_until(next);
        EXPECT_EQ(loop.time(), next);
        ++ticker.ticks;
      }
    };
    std::vector<Task<void>> tasks;
    for (Ticker& ticker : tickers) tasks.push_back(loop.create_task(tick(ticker)));
    for (auto& task : tasks) co_await task;
  });
  for (const Ticker& ticker : tickers) EXPECT_EQ(ticker.ticks, kMonth / ticker.period);
}

TEST_F(VirtualBackendTest, TheCalendarKeepsUpWithTheSimulation) {
  run([&]() -> Coro<void> {
    const WallTime before = loop.clock().wall_now();
    co_await sleep(std::chrono::days{30});
    EXPECT_EQ(loop.clock().wall_now(), before + std::chrono::days{30});
    world.backend.manual_clock().set_wall(before);
    co_await sleep(1s);
    EXPECT_EQ(loop.clock().wall_now(), before + 1s);
  });
}

TEST(VirtualBackend, StartsWhenItIsTold) {
  const VirtualBackend backend(WallTime{std::chrono::hours{1'000'000}});
  EXPECT_EQ(backend.clock().wall_now(), WallTime{std::chrono::hours{1'000'000}});
  EXPECT_EQ(backend.clock().now(), TimePoint{});
}

TEST_F(VirtualBackendTest, ADeadlockIsAnErrorAndNoHang) {
  Event never;
  EXPECT_THROW(run(keeping([&]() -> Coro<void> { co_await never.wait(); })), DeadlockError);
  EXPECT_FALSE(loop.is_running());
  // The loop is whole, and what was stuck goes on when it can.
  never.set();
  run(sleep_for(1s));
  EXPECT_EQ(loop.task_count(), 0u);
}

TEST_F(VirtualBackendTest, TwoTasksThatWaitForOneAnotherAreADeadlock) {
  Queue<int> one, two;
  const auto pass = [](Queue<int>& from, Queue<int>& to) -> Coro<void> { co_await to.put(co_await from.get()); };
  auto first = loop.create_task(pass(one, two));
  auto second = loop.create_task(pass(two, one));
  EXPECT_THROW(run(keeping([&]() -> Coro<void> { co_await first; })), DeadlockError);
  one.put_nowait(1);
  run(keeping([&]() -> Coro<void> { co_await second; }));
}

TEST_F(VirtualBackendTest, RunningForEverWithNothingToDoIsADeadlockToo) {
  EXPECT_THROW(loop.run_forever(), DeadlockError);
}

TEST_F(VirtualBackendTest, ALimitedTurnMovesTimeToItsLimit) {
  loop.run_once(TimePoint{5s});
  EXPECT_EQ(loop.time(), TimePoint{5s});
  loop.run_once(TimePoint{3s});
  EXPECT_EQ(loop.time(), TimePoint{5s});
}

TEST_F(VirtualBackendTest, TheSameSeedGivesTheSameRun) {
  const auto simulate = [](std::uint64_t seed) {
    VirtualTime own;
    EventLoop own_loop(own.backend);
    Random random(seed);
    std::string log;
    own_loop.run_until_complete(keeping([&]() -> Coro<void> {
      Semaphore semaphore(3);
      const auto work = [&](int number) -> Coro<void> {
        co_await sleep(Duration{static_cast<Duration::rep>(random.below(1000))});
        const auto permit = co_await semaphore.scoped();
        co_await sleep(Duration{static_cast<Duration::rep>(random.below(1000))});
        log += std::to_string(number) + "@" + std::to_string(own_loop.time().time_since_epoch().count()) + " ";
      };
      std::vector<Task<void>> tasks;
      for (int i = 0; i < 200; ++i) tasks.push_back(own_loop.create_task(work(i)));
      for (auto& task : tasks) co_await task;
    }));
    return log;
  };
  EXPECT_EQ(simulate(1), simulate(1));
  EXPECT_NE(simulate(1), simulate(2));
}

}  // namespace
}  // namespace argiope
