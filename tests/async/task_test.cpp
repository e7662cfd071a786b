#include <memory>
#include <stdexcept>
#include <string>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/sync.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class TaskTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, TaskTest, kAllWorlds, world_name);
// What takes long and does not depend on the backend.
using ManyTasksTest = LoopTest<VirtualTime>;

// The message of the CancelledError that awaiting `task` throws; empty when it throws none.
template <class T>
Coro<std::string> cancellation_of(Task<T> task) {
  try {
    co_await task;
  } catch (const CancelledError& error) {
    co_return error.what();
  }
  co_return "";
}

TEST_P(TaskTest, StartsAtTheNextTurnAndNotBefore) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> {
      log.push_back("child");
      co_return;
    });
    log.push_back("parent");
    co_await task;
    log.push_back("joined");
  });
  EXPECT_EQ(log, (std::vector<std::string>{"parent", "child", "joined"}));
}

TEST_P(TaskTest, RunsWithoutAHandle) {
  bool ran = false;
  static_cast<void>(this->spawn([&]() -> Coro<void> {
    co_await yield_now();
    ran = true;
  }));
  this->settle();
  EXPECT_TRUE(ran);
  EXPECT_EQ(this->loop.task_count(), 0u);
}

TEST_P(TaskTest, ReadyTasksTakeTurns) {
  if (shuffled()) GTEST_SKIP() << "about the order";
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    const auto count = [&](int number) -> Coro<void> {
      for (int i = 0; i < 3; ++i) {
        order.push_back(number);
        co_await yield_now();
      }
    };
    auto one = this->loop.create_task(count(1));
    auto two = this->loop.create_task(count(2));
    co_await one;
    co_await two;
  });
  EXPECT_EQ(order, (std::vector{1, 2, 1, 2, 1, 2}));
}

TEST_P(TaskTest, AnExceptionNeverRetrievedIsReportedWithTheTasksName) {
  const Reports reports(this->loop);
  static_cast<void>(this->spawn(
      []() -> Coro<void> {
        throw std::runtime_error("unheard");
        co_return;
      },
      "visit 17"));
  this->settle();
  EXPECT_EQ(reports.lines(), (std::vector<std::string>{"visit 17: unheard"}));
}

TEST_P(TaskTest, ACancelledTaskIsNoReport) {
  const Reports reports(this->loop);
  auto task = this->spawn([]() -> Coro<void> { co_await sleep(1h); });
  this->settle();
  task.cancel();
  this->settle();
  EXPECT_TRUE(task.cancelled());
  task = {};
  EXPECT_TRUE(reports.lines().empty());
}

// --- cancellation, by asyncio's rules

TEST_P(TaskTest, CancelledBeforeItsStartItNeverRuns) {
  const auto witness = std::make_shared<int>();
  bool ran = false;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&ran, witness]() -> Coro<void> {
      ran = true;
      co_return;
    });
    EXPECT_TRUE(task.cancel("too late"));
    EXPECT_FALSE(task.cancelled()) << "it is cancelled when its turn comes";
    EXPECT_EQ(co_await cancellation_of(task), "too late");
    EXPECT_TRUE(task.cancelled());
  });
  EXPECT_FALSE(ran);
  EXPECT_EQ(witness.use_count(), 1);
}

TEST_P(TaskTest, CancelledWhileItWaitsItThrowsThere) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> {
      try {
        co_await sleep(1h);
        log.push_back("slept");
      } catch (const CancelledError&) {
        log.push_back("cleaned up");
        throw;
      }
    });
    co_await let_others_run();
    EXPECT_TRUE(task.cancel());
    EXPECT_EQ(co_await cancellation_of(task), "cancelled");
    EXPECT_FALSE(task.cancel()) << "it is done";
  });
  EXPECT_EQ(log, (std::vector<std::string>{"cleaned up"}));
}

TEST_P(TaskTest, CancellationIsForwardedToTheTaskAwaited) {
  std::string inner_saw;
  this->run([&]() -> Coro<void> {
    auto inner = this->spawn([&]() -> Coro<void> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError& error) {
        inner_saw = error.what();
        throw;
      }
    });
    auto outer = this->spawn([&]() -> Coro<void> { co_await inner; });
    co_await yield_now();
    co_await yield_now();
    outer.cancel("from outside");
    EXPECT_EQ(co_await cancellation_of(outer), "from outside");
    EXPECT_TRUE(inner.cancelled());
  });
  EXPECT_EQ(inner_saw, "from outside");
}

TEST_P(TaskTest, AChildThatSwallowsTheCancellationSavesItsParent) {
  this->run([&]() -> Coro<void> {
    auto child = this->spawn([]() -> Coro<int> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
      }
      co_return 42;
    });
    auto parent = this->spawn([&]() -> Coro<int> {
      const int value = co_await child;
      co_await yield_now();
      co_return value;
    });
    co_await yield_now();
    co_await yield_now();
    EXPECT_TRUE(parent.cancel());
    EXPECT_EQ(co_await parent, 42);
    EXPECT_EQ(parent.cancelling(), 1) << "asyncio counts it all the same";
  });
}

TEST_P(TaskTest, ATaskMaySwallowItsCancellationAndGoOn) {
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([]() -> Coro<std::string> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
      }
      co_await sleep(1ms);
      co_return "went on";
    });
    co_await let_others_run();
    task.cancel();
    EXPECT_EQ(co_await task, "went on");
  });
}

TEST_P(TaskTest, CancelledWhileItRunsItThrowsAtTheNextAwaitThatWaits) {
  Event never;
  std::vector<std::string> log;
  Task<void> task;
  this->run([&]() -> Coro<void> {
    task = this->spawn([&]() -> Coro<void> {
      task.cancel("self");
      log.push_back("still running");
      try {
        co_await never.wait();
      } catch (const CancelledError& error) {
        log.push_back(error.what());
      }
      co_await yield_now();
      log.push_back("delivered once");
    });
    co_await task;
  });
  EXPECT_EQ(log, (std::vector<std::string>{"still running", "self", "delivered once"}));
}

TEST_P(TaskTest, APendingCancellationGoesToTheFutureAwaitedNext) {
  auto future = this->loop.template create_future<void>();
  Task<void> task;
  this->run([&]() -> Coro<void> {
    task = this->spawn([&]() -> Coro<void> {
      task.cancel("pending");
      co_await future;
    });
    EXPECT_EQ(co_await cancellation_of(task), "pending");
  });
  EXPECT_TRUE(future.cancelled());
}

TEST_P(TaskTest, APendingCancellationGoesToTheTaskAwaitedNext) {
  Task<void> task;
  this->run([&]() -> Coro<void> {
    auto child = this->spawn([]() -> Coro<void> { co_await sleep(1h); });
    co_await yield_now();
    task = this->spawn([&]() -> Coro<void> {
      task.cancel();
      co_await child;
    });
    EXPECT_EQ(co_await cancellation_of(task), "cancelled");
    EXPECT_TRUE(child.cancelled());
  });
}

TEST_P(TaskTest, CancelledBetweenTwoYieldsItThrowsAtTheOneItIsIn) {
  int yields = 0;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<int> {
      for (; yields < 100; ++yields) co_await yield_now();
      co_return 12;
    });
    co_await let_others_run();
    const int before = yields;
    EXPECT_TRUE(task.cancel());
    co_await cancellation_of(task);
    EXPECT_TRUE(task.cancelled());
    EXPECT_EQ(yields, before);
    EXPECT_FALSE(task.cancel()) << "it has ended";
  });
}

TEST_P(TaskTest, CancelledInItsLastStepItEndsCancelled) {
  Task<int> task;
  this->run([&]() -> Coro<void> {
    task = this->spawn([&]() -> Coro<int> {
      task.cancel("last");
      co_return 1;
    });
    EXPECT_EQ(co_await cancellation_of(task), "last");
    EXPECT_TRUE(task.cancelled());
  });
}

TEST_P(TaskTest, AnExceptionOfTheLastStepWinsOverItsCancellation) {
  Task<int> task;
  this->run([&]() -> Coro<void> {
    task = this->spawn([&]() -> Coro<int> {
      task.cancel();
      throw std::runtime_error("failed");
      co_return 1;
    });
    bool failed = false;
    try {
      co_await task;
    } catch (const std::runtime_error&) {
      failed = true;
    }
    EXPECT_TRUE(failed);
    EXPECT_FALSE(task.cancelled());
  });
}

TEST_P(TaskTest, UncancelTakesBackWhatWasNotDeliveredYet) {
  Task<int> task;
  this->run([&]() -> Coro<void> {
    task = this->spawn([&]() -> Coro<int> {
      task.cancel();
      task.cancel();
      EXPECT_EQ(task.cancelling(), 2);
      EXPECT_EQ(task.uncancel(), 1);
      EXPECT_EQ(task.uncancel(), 0);
      EXPECT_EQ(task.uncancel(), 0);
      co_await yield_now();
      co_return 8;
    });
    EXPECT_EQ(co_await task, 8);
  });
}

TEST_P(TaskTest, CancelledTwiceItThrowsAtTwoAwaits) {
  int thrown = 0;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> {
      for (int i = 0; i < 2; ++i) {
        try {
          co_await sleep(1h);
        } catch (const CancelledError&) {
          ++thrown;
        }
      }
    });
    co_await let_others_run();
    task.cancel();
    co_await let_others_run();
    task.cancel();
    co_await task;
  });
  EXPECT_EQ(thrown, 2);
}

TEST_P(TaskTest, ACancelledErrorOfItsOwnMakingCancelsIt) {
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([]() -> Coro<void> {
      throw CancelledError("my own");
      co_return;
    });
    EXPECT_EQ(co_await cancellation_of(task), "my own");
    EXPECT_TRUE(task.cancelled());
  });
}

TEST_P(TaskTest, AwaitingItselfIsAnErrorAndNoHang) {
  Task<void> task;
  this->run([&]() -> Coro<void> {
    bool refused = false;
    task = this->spawn([&]() -> Coro<void> {
      try {
        co_await task;
      } catch (const std::logic_error&) {
        refused = true;
      }
    });
    co_await task;
    EXPECT_TRUE(refused);
  });
}

TEST_P(TaskTest, TasksThatAwaitOneAnotherInARingCanBeCancelled) {
  Task<void> one, two, three;
  this->run([&]() -> Coro<void> {
    one = this->spawn([&]() -> Coro<void> { co_await two; });
    two = this->spawn([&]() -> Coro<void> { co_await three; });
    three = this->spawn([&]() -> Coro<void> { co_await one; });
    co_await yield_now();
    one.cancel();
    co_await cancellation_of(one);
    co_await cancellation_of(two);
    co_await cancellation_of(three);
    EXPECT_TRUE(one.cancelled() && two.cancelled() && three.cancelled());
  });
}

TEST_P(TaskTest, ARingThatClosesOnATaskToBeCancelledEnds) {
  Task<void> one, two;
  this->run([&]() -> Coro<void> {
    one = this->spawn([&]() -> Coro<void> {
      co_await yield_now();
      one.cancel();
      co_await two;
    });
    two = this->spawn([&]() -> Coro<void> { co_await one; });
    co_await cancellation_of(one);
    co_await cancellation_of(two);
    EXPECT_TRUE(one.cancelled() && two.cancelled());
  });
}

TEST_P(TaskTest, AParentCancelledAsItsChildEndsIsCancelled) {
  struct CancelOnDeath {
    Task<void>* victim;
    ~CancelOnDeath() {
      if (victim != nullptr) victim->cancel("by a destructor");
    }
  };
  this->run([&]() -> Coro<void> {
    Task<void> parent;
    const auto child = [](std::unique_ptr<CancelOnDeath>) -> Coro<void> { co_await yield_now(); };
    auto task = this->loop.create_task(child(std::make_unique<CancelOnDeath>(&parent)));
    parent = this->spawn([&]() -> Coro<void> {
      co_await task;
      co_await sleep(1h);
    });
    EXPECT_EQ(co_await cancellation_of(parent), "by a destructor");
  });
}

TEST_P(TaskTest, TheOneWhoCancelledTakesItBackAndCancelsAgain) {
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([]() -> Coro<void> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
        current_task().uncancel();
      }
      co_await sleep(1h);
    });
    EXPECT_EQ(task.cancelling(), 0);
    co_await let_others_run();
    EXPECT_TRUE(task.cancel());
    EXPECT_EQ(task.cancelling(), 1);
    EXPECT_FALSE(task.cancelled());
    co_await let_others_run();
    EXPECT_EQ(task.cancelling(), 0);
    EXPECT_FALSE(task.done());
    EXPECT_TRUE(task.cancel());
    EXPECT_EQ(co_await cancellation_of(task), "cancelled");
    task.uncancel();
    EXPECT_TRUE(task.cancelled()) << "once it has ended, nothing takes it back";
  });
}

TEST_P(TaskTest, CancelledTogetherWithTheFutureItAwaitsItIsCancelled) {
  auto future = this->loop.template create_future<void>();
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> { co_await future; });
    co_await let_others_run();
    future.cancel();
    EXPECT_TRUE(task.cancel());
    co_await cancellation_of(task);
    EXPECT_TRUE(task.cancelled());
  });
  EXPECT_TRUE(future.cancelled());
}

TEST_P(TaskTest, ACancellationCaughtAtOneFutureLeavesTheNextAlone) {
  std::vector<Future<int>> futures;
  for (int i = 0; i < 3; ++i) futures.push_back(this->loop.template create_future<int>());
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<int> {
      co_await futures[0];
      try {
        co_await futures[1];
      } catch (const CancelledError&) {
      }
      co_return co_await futures[2];
    });
    co_await let_others_run();
    futures[0].set_result(0);
    co_await let_others_run();
    task.cancel();
    EXPECT_TRUE(futures[1].cancelled());
    co_await let_others_run();
    EXPECT_FALSE(futures[2].done());
    futures[2].set_result(42);
    EXPECT_EQ(co_await task, 42);
    EXPECT_FALSE(task.cancelled());
  });
}

TEST_P(TaskTest, OneThatFailsWhileItIsCancelledHasFailed) {
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([]() -> Coro<void> {
      try {
        co_await sleep(1h);
      } catch (const CancelledError&) {
        throw std::runtime_error("while cleaning up");
      }
    });
    co_await let_others_run();
    task.cancel();
    while (!task.done()) co_await let_others_run();
    EXPECT_FALSE(task.cancelled());
    EXPECT_NE(task.exception(), nullptr);
  });
}

TEST_P(TaskTest, CancelledOnceItHasFailedNothingChanges) {
  const Reports reports(this->loop);
  auto task = this->spawn([]() -> Coro<void> {
    throw std::runtime_error("before");
    co_return;
  });
  this->settle();
  EXPECT_FALSE(task.cancel());
  EXPECT_FALSE(task.cancelled());
  task = {};
  EXPECT_EQ(reports.lines(), (std::vector<std::string>{"task: before"})) << "asyncio drops this report";
}

// --- eager start

TEST_P(TaskTest, StartedEagerlyItRunsUntilItsFirstWait) {
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    const auto child = [&]() -> Coro<void> {
      log.push_back("child");
      co_await yield_now();
      log.push_back("child again");
    };
    auto task = this->loop.create_task(child(), "eager", Start::eagerly);
    log.push_back("parent");
    EXPECT_EQ(task.name(), "eager");
    EXPECT_FALSE(task.done());
    co_await task;
  });
  EXPECT_EQ(log, (std::vector<std::string>{"child", "parent", "child again"}));
}

TEST_P(TaskTest, StartedEagerlyItMayEndAtOnce) {
  this->run([&]() -> Coro<void> {
    const AnyTask self = current_task();
    const auto value = [&]() -> Coro<int> {
      EXPECT_FALSE(current_task() == self);
      co_return 5;
    };
    const auto failing = []() -> Coro<void> {
      throw std::runtime_error("at once");
      co_return;
    };
    auto task = this->loop.create_task(value(), {}, Start::eagerly);
    EXPECT_TRUE(task.done());
    EXPECT_EQ(task.result(), 5);
    EXPECT_TRUE(current_task() == self);
    auto failed = this->loop.create_task(failing(), {}, Start::eagerly);
    EXPECT_THROW(failed.result(), std::runtime_error);
    EXPECT_EQ(this->loop.task_count(), 1u);
    co_return;
  });
}

TEST_P(TaskTest, StartedEagerlyWhileNoLoopRunsItStartsAtTheNextTurn) {
  bool ran = false;
  const auto body = [&]() -> Coro<void> {
    ran = true;
    co_return;
  };
  auto task = this->loop.create_task(body(), {}, Start::eagerly);
  EXPECT_FALSE(ran);
  this->settle();
  EXPECT_TRUE(ran);
}

TEST_P(TaskTest, StartedEagerlyItMayCancelWhoStartedIt) {
  this->run([&]() -> Coro<void> {
    auto parent = this->spawn([&]() -> Coro<void> {
      AnyTask self = current_task();
      const auto child = [&]() -> Coro<void> {
        self.cancel("by a child");
        co_await sleep(1h);
      };
      auto task = this->loop.create_task(child(), {}, Start::eagerly);
      EXPECT_EQ(self.cancelling(), 1);
      EXPECT_EQ(AnyTask(task).cancelling(), 0);
      co_await task;
    });
    EXPECT_EQ(co_await cancellation_of(parent), "by a child");
  });
  EXPECT_EQ(this->loop.task_count(), 0u);
}

TEST_P(TaskTest, EagerStartsWithoutEndCannotStarveAnother) {
  Event always(true);
  bool stop = false;
  this->run([&]() -> Coro<void> {
    this->loop.call_soon([&] { stop = true; });
    const auto child = [&]() -> Coro<void> { co_await always.wait(); };
    while (!stop) co_await this->loop.create_task(child(), {}, Start::eagerly);
  });
}

// --- which tasks there are

TEST_P(TaskTest, KnowsTheTaskThatRuns) {
  EXPECT_THROW(current_task(), std::logic_error);
  auto one = this->loop.template create_future<void>();
  auto two = this->loop.template create_future<void>();
  Task<void> first, second;
  this->run([&]() -> Coro<void> {
    first = this->spawn([&]() -> Coro<void> {
      EXPECT_TRUE(current_task() == first);
      co_await one;
      EXPECT_TRUE(current_task() == first);
      two.set_result();
    });
    second = this->spawn([&]() -> Coro<void> {
      EXPECT_TRUE(current_task() == second);
      one.set_result();
      co_await two;
      EXPECT_TRUE(current_task() == second);
    });
    this->loop.call_soon([] { EXPECT_FALSE(current_task()) << "a callback is no task"; });
    co_await first;
    co_await second;
  });
  EXPECT_THROW(current_task(), std::logic_error);
}

TEST_P(TaskTest, KnowsAllTasksThatHaveNotEnded) {
  EXPECT_THROW(all_tasks(), std::logic_error);
  this->run([&]() -> Coro<void> {
    auto one = this->spawn([]() -> Coro<void> { co_await sleep(1h); }, "one");
    auto two = this->spawn([]() -> Coro<int> { co_return 2; }, "two");
    std::vector<AnyTask> tasks = all_tasks();
    EXPECT_EQ(tasks.size(), 3u);
    EXPECT_TRUE(tasks.at(0) == current_task()) << "oldest first";
    EXPECT_EQ(tasks.at(1).name(), "one");
    EXPECT_EQ(tasks.at(2).name(), "two");
    EXPECT_FALSE(tasks.at(2).done());
    co_await tasks.at(2);
    EXPECT_TRUE(tasks.at(2).done());
    EXPECT_EQ(all_tasks().size(), 2u);
    EXPECT_TRUE(tasks.at(1).cancel("by its handle"));
    EXPECT_EQ(tasks.at(1).cancelling(), 1);
    EXPECT_EQ(co_await cancellation_of(one), "by its handle");
    EXPECT_TRUE(tasks.at(1).cancelled());
  });
}

// --- budget, counts, ends

TEST_P(TaskTest, OneThatNeverReallySuspendsCannotStarveAnother) {
  Event always(true);
  bool stop = false;
  this->run([&]() -> Coro<void> {
    auto busy = this->spawn([&]() -> Coro<void> {
      while (!stop) co_await always.wait();
    });
    auto other = this->spawn([&]() -> Coro<void> {
      stop = true;
      co_return;
    });
    co_await busy;
    co_await other;
  });
  EXPECT_TRUE(stop);
}

TEST_P(TaskTest, OneThatNeverReallySuspendsCannotStarveATimer) {
  Event always(true);
  bool stop = false;
  this->run([&]() -> Coro<void> {
    this->loop.call_later(0ms, [&] { stop = true; });
    while (!stop) co_await always.wait();
  });
}

TEST_P(TaskTest, OneThatNeverReallySuspendsCannotStarveOtherThreads) {
  Event always(true);
  bool stop = false;
  this->run([&]() -> Coro<void> {
    this->loop.call_soon_threadsafe([&] { stop = true; });
    while (!stop) co_await always.wait();
  });
}

TEST_F(ManyTasksTest, AMillionSpawnedAndJoinedOneAfterAnother) {
  const long sum = this->run([&]() -> Coro<long> {
    const auto one = []() -> Coro<long> { co_return 1; };
    long total = 0;
    for (int i = 0; i < 1'000'000; ++i) total += co_await this->loop.create_task(one());
    co_return total;
  });
  EXPECT_EQ(sum, 1'000'000);
}

TEST_F(ManyTasksTest, AMillionParkedTasksAreAllCancelled) {
  constexpr std::size_t kTasks = 1'000'000;
  Event never;
  std::size_t cleaned_up = 0;
  const auto park = [&]() -> Coro<void> {
    try {
      co_await never.wait();
    } catch (const CancelledError&) {
      ++cleaned_up;
      throw;
    }
  };
  for (std::size_t i = 0; i < kTasks; ++i) static_cast<void>(this->loop.create_task(park()));
  this->run([&]() -> Coro<void> { co_await yield_now(); });
  EXPECT_EQ(this->loop.task_count(), kTasks);
  this->loop.cancel_all_tasks();
  while (this->loop.task_count() > 0) this->loop.run_once(TimePoint::min());
  EXPECT_EQ(cleaned_up, kTasks);
}

// Steps of tasks and callbacks that it takes to park `tasks` of them on one queue and cancel them all.
std::size_t steps_to_cancel_getters(std::size_t tasks) {
  VirtualBackend backend;
  EventLoop loop(backend);
  Queue<int> queue;
  std::size_t steps = 0;
  loop.set_step_hook([&] { ++steps; });
  const auto park = [&]() -> Coro<void> { co_await queue.get(); };
  for (std::size_t i = 0; i < tasks; ++i) static_cast<void>(loop.create_task(park()));
  loop.run_once(TimePoint::min());
  loop.cancel_all_tasks();
  while (loop.task_count() > 0) loop.run_once(TimePoint::min());
  queue.put_nowait(1);
  EXPECT_EQ(queue.qsize(), 1u) << "nobody is left to take it";
  return steps;
}

TEST(ManyTasks, AMillionParkedOnOneQueueAreCancelledInTwoStepsEach) {
  EXPECT_EQ(steps_to_cancel_getters(100'000), 200'000u);
  EXPECT_EQ(steps_to_cancel_getters(1'000'000), 2'000'000u);
}

TEST_F(ManyTasksTest, AChainOfTasksEachAwaitingTheNextIsCancelledFromItsHead) {
  constexpr int kLinks = 1000;
  std::vector<Task<void>> chain(kLinks);
  this->run([&]() -> Coro<void> {
    const auto link = [&](std::size_t i) -> Coro<void> {
      if (i + 1 == chain.size()) co_await sleep(1h);
      co_await chain[i + 1];
    };
    for (std::size_t i = 0; i < chain.size(); ++i) chain[i] = this->loop.create_task(link(i));
    co_await yield_now();
    chain.front().cancel();
    co_await cancellation_of(chain.front());
  });
  for (const Task<void>& task : chain) EXPECT_TRUE(task.cancelled());
}

TEST_P(TaskTest, AnEmptyCoroutineMakesNoTask) {
  EXPECT_THROW(static_cast<void>(this->loop.create_task(Coro<void>{})), std::invalid_argument);
  EXPECT_EQ(this->loop.task_count(), 0u);
}

TEST_P(TaskTest, AValueWhoseMoveThrowsFailsTheTask) {
  struct Fragile {
    Fragile() = default;
    Fragile(const Fragile&) = default;
    Fragile(Fragile&&) { throw std::runtime_error("dropped"); }
  };
  auto task = this->spawn([]() -> Coro<void> {
    co_await yield_now();
    co_return;
  });
  auto fragile = this->loop.create_task([]() -> Coro<Fragile> {
    const Fragile value;
    co_return value;
  }());
  this->settle();
  EXPECT_TRUE(task.done());
  EXPECT_THROW(static_cast<void>(fragile.result()), std::runtime_error);
}

}  // namespace
}  // namespace argiope
