// Whatever can be awaited is taken by gather, wait, wait_for, shield and TaskGroup::create_task.
#include "argiope/async/detail/awaitable.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/threads.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

static_assert(Awaitable<Coro<int>>);
static_assert(!Awaitable<Coro<int>&>, "a named Coro is moved");
static_assert(!Awaitable<const Coro<int>&>);
static_assert(Awaitable<Task<int>> && Awaitable<Task<int>&> && Awaitable<const Future<int>&> && Awaitable<AnyTask>);
static_assert(Awaitable<decltype(std::declval<Queue<int>&>().join())>);
static_assert(Awaitable<decltype(std::declval<Queue<int>&>().get())>);
static_assert(Awaitable<decltype(std::declval<Channel<int>&>().get())>);
static_assert(Awaitable<SleepUntil> && Awaitable<YieldNow> && Awaitable<decltype(readable(0))>);
static_assert(!Awaitable<int> && !Awaitable<void> && !Awaitable<Coro<int> (*)()> && !Awaitable<std::vector<Coro<int>>>);
static_assert(std::is_same_v<AwaitValue<Coro<std::string>>, std::string>);
static_assert(std::is_same_v<AwaitValue<const Future<std::string>&>, std::string>);
static_assert(std::is_void_v<AwaitValue<SleepUntil>>);

template <class... As>
concept CanGather = requires(As... as) {
  gather(std::move(as)...);
};
static_assert(CanGather<Coro<int>, Task<void>, SleepUntil> && !CanGather<int> && !CanGather<Coro<int>, std::string>);
template <class A>
concept CanWaitFor = requires(A a) {
  wait_for(std::move(a), 1s);
};
static_assert(CanWaitFor<SleepUntil> && CanWaitFor<Task<int>> && !CanWaitFor<int>);
template <class A>
concept CanShield = requires(A a) {
  shield(std::move(a));
};
static_assert(CanShield<SleepUntil> && !CanShield<int>);
template <class A>
concept CanStart = requires(A a, TaskGroup& group) {
  group.create_task(std::move(a));
};
static_assert(CanStart<SleepUntil> && CanStart<Future<int>> && !CanStart<int>);

class AwaitableTest : public OnVirtualLoop {
 protected:
  template <class Body>
  auto run(Body body) {
    return loop_.run_until_complete(body());
  }
};

Coro<int> give_later(int value, Duration after) {
  co_await sleep(after);
  co_return value;
}

TEST_F(AwaitableTest, GatherTakesAwaitablesBesideTasksAndCoroutines) {
  run([]() -> Coro<void> {
    Queue<std::string> queue;
    Event event;
    Semaphore semaphore(1);
    queue.put_nowait("item");
    auto task = EventLoop::current().create_task(give_later(1, 2ms));
    EventLoop::current().call_later(1ms, [&] {
      event.set();
      queue.task_done();
    });
    auto [joined, number, item, told, permit, other] =
        co_await gather(queue.join(), task, queue.get(), event.wait(), semaphore.acquire(), give_later(2, 1ms));
    EXPECT_EQ(number, 1);
    EXPECT_EQ(item, "item");
    EXPECT_EQ(other, 2);
    EXPECT_TRUE(semaphore.locked());
    EXPECT_EQ(task.result(), 1) << "the caller's task keeps its value";
  });
}

TEST_F(AwaitableTest, GatherGivesTheOutcomesOfAwaitables) {
  run([]() -> Coro<void> {
    Queue<int> queue;
    queue.shutdown();
    auto [got, slept] = co_await gather(return_exceptions, queue.get(), sleep(1ms));
    EXPECT_THROW(std::rethrow_exception(got.error()), QueueShutDown);
    EXPECT_TRUE(slept.has_value());
  });
}

TEST_F(AwaitableTest, GatherTakesAVectorOfAwaitables) {
  run([]() -> Coro<void> {
    Queue<int> queue;
    for (int i = 0; i < 3; ++i) queue.put_nowait(i);
    std::vector<decltype(queue.get())> gets;
    for (int i = 0; i < 3; ++i) gets.push_back(queue.get());
    std::vector<int> got = co_await gather(std::move(gets));
    std::ranges::sort(got);  // whoever runs first gets first, which a shuffled loop changes
    EXPECT_EQ(got, (std::vector<int>{0, 1, 2}));
  });
}

TEST_F(AwaitableTest, WaitForBoundsAnAwaitableAndLosesNothing) {
  run([]() -> Coro<void> {
    Queue<int> queue;
    EXPECT_THROW(co_await wait_for(queue.get(), 1ms), TimeoutError);
    queue.put_nowait(7);
    EXPECT_EQ(co_await wait_for(queue.get(), 1ms), 7);
    EXPECT_THROW(co_await wait_for(queue.join(), 1ms), TimeoutError);
    Lock lock;
    co_await lock.acquire();
    EXPECT_THROW(co_await wait_for(lock.acquire(), 1ms), TimeoutError);
    lock.release();
    co_await wait_for(lock.acquire(), 1ms);
    EXPECT_TRUE(lock.locked());
    EXPECT_THROW(co_await timeout(1ms).run(sleep(1h)), TimeoutError);
  });
}

TEST_F(AwaitableTest, WaitForLeavesAFutureItsValueAndMovesWhatCannotBeCopied) {
  run([]() -> Coro<void> {
    auto text = EventLoop::current().create_future<std::string>();
    text.set_result("kept");
    EXPECT_EQ(co_await wait_for(text, 1ms), "kept");
    EXPECT_EQ(text.result(), "kept");
    EXPECT_EQ(co_await timeout(1ms).run(text), "kept");
    EXPECT_EQ(text.result(), "kept");
    auto unique = EventLoop::current().create_future<std::unique_ptr<int>>();
    unique.set_result(std::make_unique<int>(3));
    EXPECT_EQ(*co_await wait_for(unique, 1ms), 3);
  });
}

TEST_F(AwaitableTest, WaitTakesCoroutinesAndAwaitables) {
  run([]() -> Coro<void> {
    std::vector<Coro<int>> coros;
    for (int i = 0; i < 3; ++i) coros.push_back(give_later(i, i * 1ms));
    const auto all = co_await wait(std::move(coros));
    EXPECT_EQ(all.done.size(), 3u);
    EXPECT_EQ(all.done[2].result(), 2);

    Event never, soon;
    EventLoop::current().call_later(1ms, [&] { soon.set(); });
    auto task = EventLoop::current().create_task(give_later(1, 1h));
    auto future = EventLoop::current().create_future<int>();
    auto some = co_await wait(When::first_completed, never.wait(), soon.wait(), task, future, give_later(2, 1h));
    EXPECT_EQ(some.done.size(), 1u);
    EXPECT_EQ(some.pending.size(), 4u);
    EXPECT_EQ(some.pending[1], AnyTask(task));
    for (AnyTask& left : some.pending) left.cancel();
  });
  while (loop_.task_count() > 0) loop_.run_once(TimePoint::min());
}

TEST_F(AwaitableTest, ShieldKeepsAnAwaitableFromACancellation) {
  run([]() -> Coro<void> {
    Queue<int> queue;
    const auto guarded = [&]() -> Coro<int> { co_return co_await shield(queue.get()); };
    auto task = EventLoop::current().create_task(guarded());
    co_await let_others_run();
    task.cancel();
    EXPECT_THROW(co_await task, CancelledError);
    queue.put_nowait(1);
    co_await let_others_run();
    EXPECT_TRUE(queue.empty()) << "the get went on";
  });
}

TEST_F(AwaitableTest, AGroupStartsWhateverCanBeAwaited) {
  run([]() -> Coro<void> {
    Queue<int> queue;
    queue.put_nowait(5);
    auto future = EventLoop::current().create_future<std::string>();
    Task<int> got;
    Task<std::string> told;
    co_await TaskGroup::run([&](TaskGroup& group) {
      got = group.create_task(queue.get(), "get");
      told = group.create_task(future);
      group.create_task(sleep(1ms));
      EventLoop::current().call_soon([&] { future.set_result("told"); });
    });
    EXPECT_EQ(got.result(), 5);
    EXPECT_EQ(got.name(), "get");
    EXPECT_EQ(told.result(), "told");
    EXPECT_EQ(future.result(), "told");
  });
}

TEST_F(AwaitableTest, AGroupsBodyThatAwaitsNothingIsAnOrdinaryFunction) {
  int done = 0;
  const auto work = [&]() -> Coro<void> {
    co_await sleep(1ms);
    ++done;
  };
  run([&]() -> Coro<void> {
    co_await TaskGroup::run([&](TaskGroup& group) {
      group.create_task(work());
      group.create_task(work());
    });
    EXPECT_EQ(done, 2);
    EXPECT_THROW(co_await TaskGroup::run([&](TaskGroup& group) {
                   group.create_task(work());
                   throw std::length_error("body");
                 }),
                 ExceptionGroup);
    EXPECT_EQ(done, 2) << "the task was cancelled";
  });
  EXPECT_EQ(loop_.task_count(), 0u);
}

TEST_F(AwaitableTest, EnsureFutureMakesATaskOnlyOfWhatIsNone) {
  run([]() -> Coro<void> {
    auto task = EventLoop::current().create_task(give_later(1, 1ms));
    EXPECT_EQ(AnyTask(ensure_future(task)), AnyTask(task));
    EXPECT_EQ(co_await ensure_future(give_later(2, 1ms)), 2);
    Event event;
    auto waiting = ensure_future(event.wait());
    co_await let_others_run();
    EXPECT_FALSE(waiting.done());
    event.set();
    co_await waiting;
    co_await task;
  });
}

// A gather of awaitables cancelled before each of its steps: no task is left, and no item is lost.
TEST_F(AwaitableTest, ACancelledGatherGivesBackWhatItsAwaitablesHadBeenHanded) {
  for (int cancel_at = 0; cancel_at < 12; ++cancel_at) {
    Queue<int> queue;
    Semaphore semaphore(0);
    std::vector<int> got;
    const auto both = [&]() -> Coro<void> {
      auto [item, permit] = co_await gather(queue.get(), semaphore.acquire());
      got.push_back(item);
      semaphore.release();
    };
    const auto main = [&]() -> Coro<void> {
      auto task = EventLoop::current().create_task(both());
      for (int step = 0; step < 12; ++step) {
        if (step == cancel_at) task.cancel();
        if (step == 4) queue.put_nowait(1);
        if (step == 5) semaphore.release();
        co_await yield_now();
      }
      try {
        co_await task;
      } catch (const CancelledError&) {
      }
    };
    loop_.run_until_complete(main());
    EXPECT_EQ(loop_.task_count(), 0u);
    if (cancel_at <= 3) EXPECT_EQ(queue.qsize(), 1u) << cancel_at;
    if (cancel_at <= 4) EXPECT_EQ(semaphore.value(), 1u) << cancel_at;
  }
}

}  // namespace
}  // namespace argiope
