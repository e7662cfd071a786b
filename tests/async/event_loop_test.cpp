#include "argiope/async/event_loop.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "argiope/async/queue.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/base/random.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class EventLoopTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, EventLoopTest, kAllWorlds, world_name);

// --- callbacks and timers

TEST_P(EventLoopTest, CallsSoonInTheOrderAsked) {
  std::vector<int> order;
  for (int i = 0; i < 200; ++i) this->loop.call_soon([&order, i] { order.push_back(i); });
  EXPECT_TRUE(order.empty());
  this->settle();
  ASSERT_EQ(order.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_P(EventLoopTest, ACallbackThatThrowsIsReportedAndTheOthersRun) {
  const Reports reports(this->loop);
  bool ran = false;
  this->loop.call_soon([] { throw std::runtime_error("oops"); });
  this->loop.call_soon([&] { ran = true; });
  this->settle();
  EXPECT_EQ(reports.lines(), (std::vector<std::string>{"callback: oops"}));
  EXPECT_TRUE(ran);
}

TEST_P(EventLoopTest, AnExceptionHandlerThatThrowsHarmsNothing) {
  this->loop.set_exception_handler([](auto, const auto&) { throw std::runtime_error("handler"); });
  this->loop.call_soon([] { throw std::runtime_error("oops"); });
  this->settle();
}

TEST_P(EventLoopTest, TimersFireInTheOrderOfTheirTimes) {
  std::vector<int> order;
  const TimePoint now = this->loop.time();
  this->loop.call_at(now + 3ms, [&] { order.push_back(3); });
  this->loop.call_at(now + 1ms, [&] { order.push_back(1); });
  this->loop.call_at(now + 2ms, [&] { order.push_back(2); });
  this->loop.call_at(now - 1ms, [&] { order.push_back(0); });
  this->run([]() -> Coro<void> { co_await sleep(4ms); });
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3}));
}

TEST_P(EventLoopTest, TimersOfOneInstantFireInTheOrderOfArming) {
  std::vector<int> order;
  const TimePoint when = this->loop.time() + 1ms;
  std::vector<Handle> handles;
  for (int i = 0; i < 100; ++i) handles.push_back(this->loop.call_at(when, [&order, i] { order.push_back(i); }));
  // Taking some out must not disturb the others.
  for (std::size_t i = 0; i < 100; i += 3) handles[i].cancel();
  this->run([&]() -> Coro<void> { co_await sleep_until(when); });
  std::vector<int> expected;
  for (int i = 0; i < 100; ++i) {
    if (i % 3 != 0) expected.push_back(i);
  }
  EXPECT_EQ(order, expected);
}

TEST_P(EventLoopTest, ACancelledTimerDoesNotFireAndFreesWhatItHeld) {
  const auto witness = std::make_shared<int>();
  bool fired = false;
  Handle handle = this->loop.call_later(1ms, [&fired, witness] { fired = true; });
  EXPECT_FALSE(handle.cancelled());
  handle.cancel();
  EXPECT_TRUE(handle.cancelled());
  EXPECT_EQ(witness.use_count(), 1);
  handle.cancel();
  this->run([]() -> Coro<void> { co_await sleep(2ms); });
  EXPECT_FALSE(fired);
}

TEST_P(EventLoopTest, ACallbackThatIsReadyCanStillBeCancelled) {
  bool ran = false;
  Handle handle;
  this->loop.call_soon([&] { handle.cancel(); });
  handle = this->loop.call_soon([&] { ran = true; });
  this->settle();
  EXPECT_FALSE(ran);
  EXPECT_TRUE(handle.cancelled());
}

TEST_P(EventLoopTest, CancellingACallbackThatHasRunDoesNothing) {
  Handle handle = this->loop.call_soon([] {});
  this->settle();
  handle.cancel();
  EXPECT_FALSE(handle.cancelled());
}

TEST_P(EventLoopTest, ACallbackMayOwnItsOwnHandle) {
  struct Owner {
    Handle handle;
    ~Owner() { handle.cancel(); }
  };
  auto owner = std::make_shared<Owner>();
  const std::weak_ptr<Owner> watch = owner;
  Handle outside = this->loop.call_later(1h, [owner] {});
  owner->handle = outside;
  owner.reset();
  outside.cancel();
  EXPECT_TRUE(watch.expired());
}

TEST_P(EventLoopTest, AnyMixOfArmingAndCancellingKeepsTheOrder) {
  Random random(11);
  std::vector<TimePoint> fired;
  const TimePoint start = this->loop.time();
  {
    std::vector<Handle> handles;
    for (int i = 0; i < 5000; ++i) {
      const TimePoint when = start + Duration{static_cast<Duration::rep>(random.below(2'000'000))};
      handles.push_back(this->loop.call_at(when, [&fired, when] { fired.push_back(when); }));
      if (random.chance(0.4)) handles[random.below(handles.size())].cancel();
    }
  }
  this->run([&]() -> Coro<void> { co_await sleep_until(start + 3ms); });
  EXPECT_GT(fired.size(), 2000u);
  EXPECT_TRUE(std::ranges::is_sorted(fired));
}

// --- running and stopping

TEST_P(EventLoopTest, ReturnsWhatTheCoroutineReturns) {
  EXPECT_EQ(this->run([]() -> Coro<std::string> { co_return "done"; }), "done");
}

TEST_P(EventLoopTest, KnowsTheLoopThatRunsOnThisThread) {
  EXPECT_THROW(EventLoop::current(), std::logic_error);
  this->run([&]() -> Coro<void> {
    EXPECT_EQ(&EventLoop::current(), &this->loop);
    EXPECT_TRUE(this->loop.is_running());
    co_return;
  });
  EXPECT_FALSE(this->loop.is_running());
  EXPECT_THROW(EventLoop::current(), std::logic_error);
}

TEST_P(EventLoopTest, StopEndsRunForeverAfterTheTurn) {
  std::vector<int> order;
  this->loop.call_soon([&] {
    order.push_back(1);
    this->loop.stop();
    this->loop.call_soon([&] { order.push_back(3); });
  });
  this->loop.call_soon([&] { order.push_back(2); });
  this->loop.run_forever();
  EXPECT_EQ(order, (std::vector{1, 2})) << "what was ready ran, what came after did not";
  this->loop.call_soon([&] { this->loop.stop(); });
  this->loop.run_forever();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST_P(EventLoopTest, StoppedBeforeItRunsItMakesOneTurnWithoutWaiting) {
  bool ran = false;
  this->loop.call_soon([&] { ran = true; });
  this->loop.call_later(1h, [] {});
  this->loop.stop();
  this->loop.run_forever();
  EXPECT_TRUE(ran);
  this->loop.stop();
  this->loop.run_forever();
}

TEST_P(EventLoopTest, StoppedBeforeTheEndItSaysSoAndTheTaskGoesOnLater) {
  bool ended = false;
  auto gate = this->loop.template create_future<void>();
  this->loop.call_later(1ms, [&] { this->loop.stop(); });
  EXPECT_THROW(this->loop.run_until_complete(keeping([&]() -> Coro<void> {
    co_await gate;
    ended = true;
  })),
               std::runtime_error);
  EXPECT_FALSE(ended);
  // The task left over ends during the next run, and must not stop it.
  gate.set_result();
  this->loop.run_until_complete(sleep_for(4ms));
  EXPECT_TRUE(ended);
}

TEST_P(EventLoopTest, DoesNotRunTwiceAtOnce) {
  this->run([&]() -> Coro<void> {
    EXPECT_THROW(this->loop.run_forever(), std::logic_error);
    EXPECT_THROW(this->loop.run_once(kNever), std::logic_error);
    EXPECT_THROW(this->loop.run_until_complete(sleep_for(1ms)), std::logic_error);
    EXPECT_EQ(&EventLoop::current(), &this->loop);
    co_return;
  });
  EXPECT_EQ(this->loop.task_count(), 0u);
}

TEST_P(EventLoopTest, AnotherLoopMayRunInsideATask) {
  this->run([&]() -> Coro<void> {
    VirtualBackend backend;
    EventLoop inner(backend);
    co_await yield_now();
    inner.run_until_complete(sleep_for(1h));
    EXPECT_EQ(&EventLoop::current(), &this->loop);
    co_await yield_now();
  });
}

TEST_P(EventLoopTest, CancelAllTasksEndsEveryTask) {
  Event never;
  int cleaned_up = 0;
  for (int i = 0; i < 10; ++i) {
    static_cast<void>(this->spawn([&]() -> Coro<void> {
      try {
        co_await never.wait();
      } catch (const CancelledError&) {
        ++cleaned_up;
        throw;
      }
    }));
  }
  this->settle();
  this->loop.cancel_all_tasks();
  this->settle();
  EXPECT_EQ(cleaned_up, 10);
  EXPECT_EQ(this->loop.task_count(), 0u);
}

// --- driven by a foreign loop

TEST_P(EventLoopTest, TellsAForeignLoopWhenItHasSomethingToDo) {
  EXPECT_EQ(this->loop.next_deadline(), kNever);
  const TimePoint when = this->loop.time() + 1h;
  Handle later = this->loop.call_at(when, [] {});
  EXPECT_EQ(this->loop.next_deadline(), when);
  this->loop.call_soon([] {});
  EXPECT_LT(this->loop.next_deadline(), when);
  this->settle();
  EXPECT_EQ(this->loop.next_deadline(), when);
  this->loop.call_soon_threadsafe([] {});
  EXPECT_LT(this->loop.next_deadline(), when);
  this->settle();
  later.cancel();
  EXPECT_EQ(this->loop.next_deadline(), kNever);
}

TEST_P(EventLoopTest, OneTurnWithALimitThatHasPassedDoesNotWait) {
  bool fired = false;
  this->loop.call_later(1h, [&] { fired = true; });
  const TimePoint before = this->loop.time();
  this->loop.run_once(before);
  this->loop.run_once(TimePoint::min());
  EXPECT_FALSE(fired);
  EXPECT_LT(this->loop.time(), before + 1h);
}

TEST_P(EventLoopTest, OneTurnWaitsUntilItsLimitAtMost) {
  this->loop.call_later(1h, [] {});
  const TimePoint limit = this->loop.time() + 1ms;
  while (this->loop.time() < limit) this->loop.run_once(limit);
  EXPECT_LT(this->loop.time(), limit + 1h);
}

// --- other threads

TEST_P(EventLoopTest, TakesCallsFromManyThreadsEachInItsOrder) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 2000;
  std::vector<std::vector<int>> received(kThreads);
  int total = 0;
  Event all;
  std::vector<std::thread> threads;
  this->run([&]() -> Coro<void> {
    for (int t = 0; t < kThreads; ++t) {
      this->loop.begin_outside_work();
      threads.emplace_back([&, t] {
        for (int i = 0; i < kCalls; ++i) {
          this->loop.call_soon_threadsafe([&, t, i] {
            received[static_cast<std::size_t>(t)].push_back(i);
            if (i == kCalls - 1) this->loop.end_outside_work();
            if (++total == kThreads * kCalls) all.set();
          });
        }
      });
    }
    co_await all.wait();
  });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<int>& order : received) {
    ASSERT_EQ(order.size(), static_cast<std::size_t>(kCalls));
    EXPECT_TRUE(std::ranges::is_sorted(order));
  }
}

TEST(EventLoop, WakesFromItsWaitForACallOfAnotherThread) {
  const SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  std::thread thread([&] { loop.call_soon_threadsafe([&] { loop.stop(); }); });
  loop.run_forever();
  thread.join();
}

// --- the end of a loop

TEST_P(EventLoopTest, DestroyedWithEverythingPendingItLeaksNothing) {
  const auto witness = std::make_shared<int>();
  Event never;
  Semaphore semaphore(1);
  Queue<std::shared_ptr<int>> empty;
  Queue<std::shared_ptr<int>> full(1);
  Task<void> kept;
  Handle kept_handle, kept_timer;
  {
    EventLoop doomed(this->world.backend);
    auto future = doomed.create_future<void>();
    future.add_done_callback([witness] {});
    const auto each = [&](auto body) { return doomed.create_task(keeping(std::move(body))); };
    kept = each([&, witness]() -> Coro<void> { co_await never.wait(); });
    static_cast<void>(each([&, witness]() -> Coro<void> {
      const auto permit = co_await semaphore.scoped();
      co_await sleep(1h);
    }));
    // Waits for the permit that unwinding the one before gives back.
    static_cast<void>(each([&, witness]() -> Coro<void> {
      co_await yield_now();
      const auto permit = co_await semaphore.scoped();
    }));
    static_cast<void>(each([&, witness]() -> Coro<void> { co_await empty.get(); }));
    static_cast<void>(each([&, witness]() -> Coro<void> {
      co_await full.put(witness);
      co_await full.put(witness);
    }));
    static_cast<void>(each([&, witness, future]() -> Coro<void> { co_await future; }));
    static_cast<void>(each([&, witness]() -> Coro<void> { co_await kept; }));
    static_cast<void>(each([witness]() -> Coro<void> {
      for (;;) co_await yield_now();
    }));
    for (int i = 0; i < 10; ++i) doomed.run_once(TimePoint::min());
    static_cast<void>(each([witness]() -> Coro<void> { co_return; }));
    kept_handle = doomed.call_soon([witness] {});
    kept_timer = doomed.call_later(1h, [witness] {});
    doomed.call_soon_threadsafe([witness] {});
  }
  EXPECT_EQ(full.qsize(), 1u);
  static_cast<void>(full.get_nowait());
  EXPECT_EQ(witness.use_count(), 1);
  EXPECT_FALSE(kept.done());
  kept_handle.cancel();
  kept_timer.cancel();
}

TEST_P(EventLoopTest, DestructorsMayUseTheLoopThatEnds) {
  struct Scheduler {
    std::shared_ptr<int> witness;
    ~Scheduler() {
      EventLoop::current().call_soon([held = witness] {});
      static_cast<void>(EventLoop::current().create_task(keeping([held = witness]() -> Coro<void> { co_return; })));
    }
  };
  const auto witness = std::make_shared<int>();
  {
    EventLoop doomed(this->world.backend);
    static_cast<void>(doomed.create_task(keeping([&]() -> Coro<void> {
      const Scheduler scheduler{witness};
      co_await sleep(1h);
    })));
    doomed.run_once(TimePoint::min());
    doomed.call_later(1h, [scheduler = std::make_shared<Scheduler>(witness)] {});
  }
  EXPECT_EQ(witness.use_count(), 1);
}

// The list of live loops is made by the first loop, and so would end before one that is static.
TEST(StaticEventLoopTest, MayEndWithTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto keep_a_loop_until_the_end = [] {
    static VirtualBackend backend;
    static EventLoop loop(backend);
    static const Task<void> parked = loop.create_task(sleep_for(1h));
    std::exit(0);
  };
  EXPECT_EXIT(keep_a_loop_until_the_end(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace argiope
