#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class SleepTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, SleepTest, kAllWorlds, world_name);

TEST_P(SleepTest, LastsAtLeastItsDelay) {
  this->run([&]() -> Coro<void> {
    const TimePoint before = this->loop.time();
    co_await sleep(2ms);
    EXPECT_GE(this->loop.time(), before + 2ms);
    co_await sleep_until(before + 3ms);
    EXPECT_GE(this->loop.time(), before + 3ms);
  });
}

TEST_P(SleepTest, OfZeroLetsTheOthersRunOnce) {
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    this->loop.call_soon([&] { order.push_back(1); });
    co_await sleep(0ms);
    order.push_back(2);
    this->loop.call_soon([&] { order.push_back(3); });
    co_await sleep(-5ms);
    order.push_back(4);
    this->loop.call_soon([&] { order.push_back(5); });
    co_await sleep_until(TimePoint::min());
    order.push_back(6);
  });
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4, 5, 6}));
}

TEST_P(SleepTest, ForEverCanOnlyBeCancelled) {
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([]() -> Coro<void> { co_await sleep(Duration::max()); });
    co_await sleep(1ms);
    EXPECT_FALSE(task.done());
    task.cancel();
    co_await let_others_run();
    EXPECT_TRUE(task.cancelled());
  });
}

TEST_P(SleepTest, WakesInTheOrderOfTheDeadlines) {
  // In real time one turn may find several deadlines past.
  if (shuffled() && !this->world.has_simulated_time()) GTEST_SKIP() << "about the order";
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    const TimePoint now = this->loop.time();
    const auto nap = [&](int number) -> Coro<void> {
      co_await sleep_until(now + number * 500us);
      order.push_back(number);
    };
    std::vector<Task<void>> tasks;
    for (const int number : {4, 2, 5, 1, 3}) tasks.push_back(this->loop.create_task(nap(number)));
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4, 5}));
}

TEST_P(SleepTest, CancelledItLeavesNoTimerBehind) {
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([]() -> Coro<void> { co_await sleep(1h); });
    co_await let_others_run();
    EXPECT_NE(this->loop.next_deadline(), kNever);
    task.cancel();
    co_await let_others_run();
  });
  EXPECT_EQ(this->loop.next_deadline(), kNever);
}

TEST_P(SleepTest, ACancellationThatComesAsItEndsIsDelivered) {
  this->run([&]() -> Coro<void> {
    bool cancelled = false;
    const TimePoint when = this->loop.time() + 1ms;
    Task<void> task;
    this->loop.call_at(when, [&] { task.cancel(); });
    task = this->spawn([&]() -> Coro<void> {
      try {
        co_await sleep_until(when);
      } catch (const CancelledError&) {
        cancelled = true;
      }
    });
    co_await task;
    EXPECT_TRUE(cancelled) << "the timer armed first goes first, and the task has not run on yet";
  });
}

TEST_P(SleepTest, CutShortItThrowsEvenIfTheCancellationIsTakenBack) {
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> { co_await sleep(1h); });
    co_await let_others_run();
    task.cancel();
    task.uncancel();
    co_await let_others_run();
    EXPECT_TRUE(task.cancelled()) << "and did not believe that an hour had passed";
  });
}

TEST_P(SleepTest, YieldGoesBehindEverythingThatIsReady) {
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    for (int i = 0; i < 100; ++i) this->loop.call_soon([&order, i] { order.push_back(i); });
    co_await yield_now();
    order.push_back(-1);
  });
  ASSERT_EQ(order.size(), 101u);
  EXPECT_EQ(order.back(), -1);
}

TEST_P(SleepTest, YieldDeliversAPendingCancellation) {
  Task<void> task;
  this->run([&]() -> Coro<void> {
    bool cancelled = false;
    task = this->spawn([&]() -> Coro<void> {
      task.cancel();
      try {
        co_await yield_now();
      } catch (const CancelledError&) {
        cancelled = true;
      }
    });
    co_await task;
    EXPECT_TRUE(cancelled);
  });
}

}  // namespace
}  // namespace argiope
