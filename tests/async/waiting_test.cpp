// What tasks wait with: sleep, timeouts, events, semaphores, queues and groups.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "argiope/async/group.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/sleep.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/timeout.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

class SleepTest : public OnVirtualLoop {};
class TimeoutTest : public OnVirtualLoop {};
class SyncTest : public OnVirtualLoop {};
class QueueTest : public OnVirtualLoop {};
class GroupTest : public OnVirtualLoop {};

Coro<int> answer_after(Duration delay, int answer = 42) {
  co_await sleep(delay);
  co_return answer;
}
Coro<void> fail_after(Duration delay) {
  co_await sleep(delay);
  throw std::runtime_error("failed");
}

TEST_F(SleepTest, TakesExactlyItsTime) {
  auto body = []() -> Coro<void> {
    co_await sleep(1500ms);
    co_await sleep(-5s);
    co_await sleep_until(TimePoint{1s});
  };
  loop_.run_until_complete(body());
  EXPECT_EQ(loop_.time(), TimePoint{1500ms});
}

TEST_F(TimeoutTest, LetsThroughWhatIsInTime) {
  EXPECT_EQ(loop_.run_until_complete(wait_for(answer_after(1s), 2s)), 42);
  EXPECT_EQ(loop_.time(), TimePoint{1s});
}

TEST_F(TimeoutTest, CancelsWhatIsNot) {
  EXPECT_THROW(loop_.run_until_complete(wait_for(answer_after(3s), 2s)), TimeoutError);
  EXPECT_EQ(loop_.time(), TimePoint{2s});
}

TEST_F(TimeoutTest, LeavesOtherCancellationsAlone) {
  auto body = [&]() -> Coro<void> {
    auto task = loop_.create_task(wait_for(answer_after(1h), 30min));
    co_await sleep(1s);
    task.cancel();
    EXPECT_THROW(co_await task, CancelledError);
  };
  loop_.run_until_complete(body());
}

TEST_F(TimeoutTest, NestsWithTheInnerOneFirst) {
  auto body = [&]() -> Coro<std::string> {
    try {
      co_await wait_for(wait_for(answer_after(1h), 1s), 2s);
    } catch (const TimeoutError&) {
      co_return EventLoop::current().time() == TimePoint{1s} ? "inner" : "outer";
    }
    co_return "none";
  };
  EXPECT_EQ(loop_.run_until_complete(body()), "inner");
}

TEST_F(TimeoutTest, CanBeMovedWhileItRuns) {
  auto body = [&]() -> Coro<int> {
    Timeout timeout(loop_.time() + 1s);
    loop_.call_later(500ms, [&] { timeout.reschedule(TimePoint{10s}); });
    co_return co_await timeout.run(answer_after(5s));
  };
  EXPECT_EQ(loop_.run_until_complete(body()), 42);
}

TEST_F(TimeoutTest, LeavesTheTaskUncancelledAfterwards) {
  auto body = [&]() -> Coro<int> {
    for (int i = 0; i < 3; ++i) {
      try {
        co_await wait_for(answer_after(1h), 1s);
      } catch (const TimeoutError&) {
      }
    }
    co_return co_await answer_after(1s, 7);
  };
  EXPECT_EQ(loop_.run_until_complete(body()), 7);
}

TEST_F(SyncTest, AnEventWakesEverybodyAndStaysSet) {
  Event event;
  int woken = 0;
  auto wait = [&]() -> Coro<void> {
    co_await event.wait();
    ++woken;
  };
  auto body = [&]() -> Coro<void> {
    std::vector<Coro<void>> waits;
    for (int i = 0; i < 5; ++i) waits.push_back(wait());
    loop_.call_later(1s, [&] { event.set(); });
    co_await gather(std::move(waits));
    co_await wait();
    event.clear();
    EXPECT_FALSE(event.is_set());
  };
  loop_.run_until_complete(body());
  EXPECT_EQ(woken, 6);
}

TEST_F(SyncTest, ASemaphoreLetsInAsManyAsItHasPermitsInOrder) {
  Semaphore semaphore(2);
  int inside = 0, most = 0;
  std::string order;
  auto work = [&](char c) -> Coro<void> {
    auto permit = co_await semaphore.scoped();
    order += c;
    most = std::max(most, ++inside);
    co_await sleep(1s);
    --inside;
  };
  auto body = [&]() -> Coro<void> {
    std::vector<Coro<void>> workers;
    for (const char c : {'a', 'b', 'c', 'd', 'e'}) workers.push_back(work(c));
    co_await gather(std::move(workers));
  };
  loop_.run_until_complete(body());
  EXPECT_EQ(most, 2);
  EXPECT_EQ(order, "abcde");
  EXPECT_EQ(loop_.time(), TimePoint{3s});
}

TEST_F(SyncTest, ACancelledWaiterTakesNoPermitAndHoldsUpNobody) {
  Semaphore semaphore(1);
  auto hold = [&]() -> Coro<void> {
    auto permit = co_await semaphore.scoped();
    co_await sleep(1s);
  };
  auto body = [&]() -> Coro<void> {
    auto first = loop_.create_task(hold());
    auto second = loop_.create_task(hold());
    auto third = loop_.create_task(hold());
    co_await yield_now();
    second.cancel();
    co_await first;
    co_await third;
    EXPECT_TRUE(second.cancelled());
    EXPECT_FALSE(semaphore.locked());
  };
  loop_.run_until_complete(body());
}

TEST_F(SyncTest, APermitGrantedToACancelledTaskIsGivenOn) {
  Semaphore semaphore(0);
  auto hold = [&]() -> Coro<void> {
    auto permit = co_await semaphore.scoped();
    co_await sleep(1s);
  };
  auto body = [&]() -> Coro<void> {
    auto first = loop_.create_task(hold());
    auto second = loop_.create_task(hold());
    co_await yield_now();
    semaphore.release();  // first is served …
    first.cancel();       // … and cancelled before it runs on
    EXPECT_THROW(co_await first, CancelledError);
    co_await second;
    EXPECT_FALSE(semaphore.locked());
  };
  loop_.run_until_complete(body());
}

TEST_F(SyncTest, ALockIsReleasedOnlyWhenHeld) {
  Lock lock;
  EXPECT_THROW(lock.release(), std::logic_error);
  auto body = [&]() -> Coro<void> {
    co_await lock.acquire();
    EXPECT_TRUE(lock.locked());
    lock.release();
    EXPECT_FALSE(lock.locked());
  };
  loop_.run_until_complete(body());
}

TEST_F(QueueTest, GivesItemsInTheOrderPut) {
  auto body = []() -> Coro<void> {
    Queue<int> queue;
    for (int i = 0; i < 100; ++i) co_await queue.put(i);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(co_await queue.get(), i);
    EXPECT_THROW(queue.get_nowait(), QueueEmpty);
  };
  loop_.run_until_complete(body());
}

TEST_F(QueueTest, HoldsUpThePutterWhileItIsFull) {
  Queue<int> queue(2);
  int put = 0;
  auto producer = [&]() -> Coro<void> {
    for (int i = 0; i < 5; ++i) {
      co_await queue.put(i);
      ++put;
    }
  };
  auto body = [&]() -> Coro<void> {
    auto task = loop_.create_task(producer());
    co_await sleep(1s);
    EXPECT_EQ(put, 2);
    EXPECT_TRUE(queue.full());
    EXPECT_THROW(queue.put_nowait(9), QueueFull);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(co_await queue.get(), i);
    co_await task;
  };
  loop_.run_until_complete(body());
}

TEST_F(QueueTest, ServesTheGetterThatHasWaitedLongest) {
  Queue<int> queue;
  std::string order;
  auto consumer = [&](char c) -> Coro<void> {
    const int item = co_await queue.get();
    order += c;
    order += std::to_string(item);
  };
  auto body = [&]() -> Coro<void> {
    auto a = loop_.create_task(consumer('a'));
    auto b = loop_.create_task(consumer('b'));
    co_await yield_now();
    co_await queue.put(1);
    co_await queue.put(2);
    co_await a;
    co_await b;
  };
  loop_.run_until_complete(body());
  EXPECT_EQ(order, "a1b2");
}

TEST_F(QueueTest, LosesNoItemWhenAGetterIsCancelled) {
  for (const bool served_first : {false, true}) {
    Queue<int> queue;
    int got = 0;
    auto consumer = [&]() -> Coro<void> {
      got = co_await queue.get();
      co_await yield_now();
    };
    auto body = [&]() -> Coro<int> {
      auto task = loop_.create_task(consumer());
      co_await yield_now();
      if (served_first) queue.put_nowait(5);
      task.cancel();
      if (!served_first) queue.put_nowait(5);
      EXPECT_THROW(co_await task, CancelledError);
      co_return queue.empty() ? got : queue.get_nowait();
    };
    EXPECT_EQ(loop_.run_until_complete(body()), 5);
  }
}

TEST_F(QueueTest, JoinsWhenEveryItemIsDone) {
  Queue<int> queue;
  auto worker = [&]() -> Coro<void> {
    for (;;) {
      co_await queue.get();
      co_await sleep(1s);
      queue.task_done();
    }
  };
  auto body = [&]() -> Coro<void> {
    for (int i = 0; i < 6; ++i) queue.put_nowait(i);
    auto a = loop_.create_task(worker());
    auto b = loop_.create_task(worker());
    co_await queue.join();
    EXPECT_EQ(loop_.time(), TimePoint{3s});
    a.cancel();
    b.cancel();
    EXPECT_THROW(queue.task_done(), std::logic_error);
  };
  loop_.run_until_complete(body());
}

TEST_F(QueueTest, ShutDownRefusesPutsAndGivesOutWhatIsLeft) {
  Queue<int> queue(1);
  auto body = [&]() -> Coro<void> {
    queue.put_nowait(1);
    auto put = [&]() -> Coro<void> { co_await queue.put(2); };
    auto putter = loop_.create_task(put());
    co_await yield_now();
    queue.shutdown();
    EXPECT_THROW(co_await putter, QueueShutDown);
    EXPECT_THROW(queue.put_nowait(3), QueueShutDown);
    EXPECT_EQ(co_await queue.get(), 1);
    EXPECT_THROW(co_await queue.get(), QueueShutDown);
  };
  loop_.run_until_complete(body());
}

TEST_F(QueueTest, ShutDownImmediatelyDropsWhatIsLeft) {
  Queue<int> queue;
  auto body = [&]() -> Coro<void> {
    queue.put_nowait(1);
    queue.put_nowait(2);
    queue.shutdown(true);
    co_await queue.join();
    EXPECT_THROW(queue.get_nowait(), QueueShutDown);
  };
  loop_.run_until_complete(body());
}

TEST_F(QueueTest, PrioritiesComeSmallestFirstAndEqualsInOrder) {
  struct Item {
    int priority;
    int number;
    bool operator<(const Item& other) const { return priority < other.priority; }
  };
  PriorityQueue<Item> queue;
  auto body = [&]() -> Coro<void> {
    for (int i = 0; i < 30; ++i) queue.put_nowait({i % 3, i});
    Item last{-1, -1};
    for (int i = 0; i < 30; ++i) {
      const Item item = co_await queue.get();
      EXPECT_TRUE(item.priority > last.priority || (item.priority == last.priority && item.number > last.number));
      last = item;
    }
  };
  loop_.run_until_complete(body());
}

TEST_F(QueueTest, LifoGivesTheNewestFirst) {
  LifoQueue<int> queue;
  for (int i = 0; i < 3; ++i) queue.put_nowait(i);
  EXPECT_EQ(queue.get_nowait(), 2);
  EXPECT_EQ(queue.get_nowait(), 1);
}

TEST_F(GroupTest, GatherGivesValuesInTheOrderAsked) {
  auto run = []() -> Coro<void> {
    std::vector<Coro<int>> coros;
    for (int i = 0; i < 5; ++i) coros.push_back(answer_after(std::chrono::seconds{5 - i}, i));
    EXPECT_EQ(co_await gather(std::move(coros)), (std::vector<int>{0, 1, 2, 3, 4}));
    const auto values = co_await gather(answer_after(1s, 3), answer_after(2s, 4));
    EXPECT_EQ(std::get<0>(values) + std::get<1>(values), 7);
  };
  loop_.run_until_complete(run());
  EXPECT_EQ(loop_.time(), TimePoint{7s});
}

TEST_F(GroupTest, GatherThrowsTheFirstFailureAtOnceAndLetsTheOthersRun) {
  int ended = 0;
  auto slow = [&]() -> Coro<void> {
    co_await sleep(10s);
    ++ended;
  };
  auto body = [&]() -> Coro<void> {
    std::vector<Coro<void>> coros;
    coros.push_back(slow());
    coros.push_back(fail_after(1s));
    EXPECT_THROW(co_await gather(std::move(coros)), std::runtime_error);
    EXPECT_EQ(loop_.time(), TimePoint{1s});
    co_await sleep(20s);
  };
  loop_.run_until_complete(body());
  EXPECT_EQ(ended, 1);
}

TEST_F(GroupTest, CancellingGatherCancelsAllAndWaitsForThem) {
  int cleaned = 0;
  auto child = [&]() -> Coro<void> {
    try {
      co_await sleep(1h);
    } catch (const CancelledError&) {
    }
    co_await sleep(1s);
    ++cleaned;
    throw CancelledError();
  };
  auto both = [&]() -> Coro<void> {
    std::vector<Coro<void>> coros;
    coros.push_back(child());
    coros.push_back(child());
    co_await gather(std::move(coros));
  };
  auto body = [&]() -> Coro<void> {
    auto task = loop_.create_task(both());
    co_await sleep(1s);
    task.cancel();
    EXPECT_THROW(co_await task, CancelledError);
    EXPECT_EQ(cleaned, 2);
  };
  loop_.run_until_complete(body());
}

TEST_F(GroupTest, ATaskGroupEndsWithItsLastTask) {
  int ended = 0;
  auto child = [&](Duration time) -> Coro<void> {
    co_await sleep(time);
    ++ended;
  };
  loop_.run_until_complete(TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
    group.create_task(child(1s));
    group.create_task(child(5s));
    co_return;
  }));
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(loop_.time(), TimePoint{5s});
}

TEST_F(GroupTest, AFailureCancelsTheOthersAndTheBody) {
  bool body_cancelled = false;
  auto forever = []() -> Coro<void> { co_await sleep(1h); };
  try {
    loop_.run_until_complete(TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      group.create_task(forever());
      group.create_task(fail_after(1s));
      try {
        co_await sleep(2h);
      } catch (const CancelledError&) {
        body_cancelled = true;
        throw;
      }
    }));
    FAIL();
  } catch (const ExceptionGroup& group) {
    EXPECT_EQ(group.exceptions().size(), 1u);
  }
  EXPECT_TRUE(body_cancelled);
  EXPECT_EQ(loop_.time(), TimePoint{1s});
}

TEST_F(GroupTest, CancellationFromOutsideComesThroughAsItself) {
  int cancelled = 0;
  auto child = [&]() -> Coro<void> {
    try {
      co_await sleep(1h);
    } catch (const CancelledError&) {
      ++cancelled;
      throw;
    }
  };
  auto body = [&]() -> Coro<void> {
    auto task = loop_.create_task(TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      group.create_task(child());
      group.create_task(child());
      co_return;
    }));
    co_await sleep(1s);
    task.cancel();
    EXPECT_THROW(co_await task, CancelledError);
  };
  loop_.run_until_complete(body());
  EXPECT_EQ(cancelled, 2);
}

TEST_F(GroupTest, TakesNoTaskWhileItIsBeingCancelled) {
  auto body = [&]() -> Coro<void> {
    EXPECT_THROW(co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      group.create_task(fail_after(1s));
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
        EXPECT_THROW(group.create_task(fail_after(1s)), std::logic_error);
        throw;
      }
    }), ExceptionGroup);
    // The cancellation the group used for its body is taken back.
    co_await sleep(1s);
  };
  loop_.run_until_complete(body());
}

}  // namespace
}  // namespace argiope
