#include "argiope/async/sync.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class SyncTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, SyncTest, kAllWorlds, world_name);

// --- Event

TEST_P(SyncTest, AnEventWakesEverybodyInTheOrderTheyCame) {
  Event event;
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    const auto wait = [&](int number) -> Coro<void> {
      co_await event.wait();
      order.push_back(number);
    };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 5; ++i) tasks.push_back(this->loop.create_task(wait(i)));
    co_await let_others_run();
    EXPECT_TRUE(order.empty());
    event.set();
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(sorted_if_shuffled(order), (std::vector{0, 1, 2, 3, 4}));
  EXPECT_TRUE(event.is_set());
}

TEST_P(SyncTest, AnEventThatIsSetDoesNotMakeWait) {
  Event event(true);
  bool other_ran = false;
  this->run([&]() -> Coro<void> {
    this->loop.call_soon([&] { other_ran = true; });
    co_await event.wait();
    EXPECT_FALSE(other_ran);
    event.clear();
    EXPECT_FALSE(event.is_set());
  });
}

TEST_P(SyncTest, AnEventSetAndClearedAtOnceStillWakesThoseWhoWaited) {
  Event event;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> { co_await event.wait(); });
    co_await let_others_run();
    event.set();
    event.clear();
    co_await task;
  });
}

TEST_P(SyncTest, WhoComesToAnEventThatIsSetGoesBeforeTheWoken) {
  if (shuffled()) GTEST_SKIP() << "about the order";
  Event event;
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    const auto wait = [&](int number) -> Coro<void> {
      co_await event.wait();
      order.push_back(number);
    };
    std::vector<Task<void>> tasks;
    for (int i = 1; i <= 2; ++i) tasks.push_back(this->loop.create_task(wait(i)));
    co_await let_others_run();
    tasks.push_back(this->loop.create_task(wait(3)));
    event.set();
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(order, (std::vector{3, 1, 2}));
}

TEST_P(SyncTest, AnEventMayBeSetAndClearedManyTimesBeforeTheWokenRun) {
  Event event;
  int woken = 0;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> {
      co_await event.wait();
      ++woken;
    });
    co_await let_others_run();
    event.set();
    event.clear();
    event.set();
    event.set();
    co_await task;
    event.clear();
    co_await let_others_run();
  });
  EXPECT_EQ(woken, 1);
  EXPECT_FALSE(event.is_set());
}

TEST_P(SyncTest, AnEventCanBeSetWhileTheLoopIsNotRunning) {
  Event event;
  auto task = this->spawn([&]() -> Coro<void> { co_await event.wait(); });
  this->settle();
  event.set();
  this->settle();
  EXPECT_TRUE(task.done());
}

TEST_P(SyncTest, AWaiterThatIsCancelledLeavesTheEvent) {
  Event event;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> { co_await event.wait(); });
    co_await let_others_run();
    task.cancel();
    co_await let_others_run();
    EXPECT_TRUE(task.cancelled());
    event.set();
  });
}

TEST_P(SyncTest, AnEventDestroyedUnderAWaiterLeavesItToBeCancelled) {
  auto event = std::make_unique<Event>();
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> { co_await event->wait(); });
    co_await let_others_run();
    event.reset();
    task.cancel();
    co_await let_others_run();
    EXPECT_TRUE(task.cancelled());
  });
}

// --- Semaphore

TEST_P(SyncTest, ASemaphoreLetsInAsManyAsItHasPermits) {
  Semaphore semaphore(3);
  int inside = 0, most = 0;
  this->run([&]() -> Coro<void> {
    const auto enter = [&]() -> Coro<void> {
      const auto permit = co_await semaphore.scoped();
      most = std::max(most, ++inside);
      co_await let_others_run();
      --inside;
    };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 20; ++i) tasks.push_back(this->loop.create_task(enter()));
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(most, 3);
  EXPECT_FALSE(semaphore.locked());
}

TEST_P(SyncTest, ASemaphoreServesFirstComeFirstServed) {
  Semaphore semaphore(0);
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    const auto enter = [&](int number) -> Coro<void> {
      co_await semaphore.acquire();
      order.push_back(number);
    };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 4; ++i) {
      tasks.push_back(this->loop.create_task(enter(i)));
      co_await let_others_run();
    }
    semaphore.release();
    // A permit that was handed over cannot be snatched by whoever comes in between.
    EXPECT_TRUE(semaphore.locked());
    tasks.push_back(this->loop.create_task(enter(4)));
    co_await let_others_run();
    EXPECT_EQ(order, (std::vector{0}));
    for (int i = 0; i < 4; ++i) semaphore.release();
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(sorted_if_shuffled(order), (std::vector{0, 1, 2, 3, 4}));
}

TEST_P(SyncTest, ACancelledAcquireTakesNoPermit) {
  Semaphore semaphore(1);
  this->run([&]() -> Coro<void> {
    co_await semaphore.acquire();
    auto task = this->spawn([&]() -> Coro<void> { co_await semaphore.acquire(); });
    co_await let_others_run();
    task.cancel();
    semaphore.release();
    co_await let_others_run();
    EXPECT_TRUE(task.cancelled());
    EXPECT_FALSE(semaphore.locked());
  });
}

TEST_P(SyncTest, APermitHandedToATaskThatIsCancelledComesBackAtOnce) {
  Semaphore semaphore(0);
  bool acquired = false;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> {
      const auto permit = co_await semaphore.scoped();
      acquired = true;
    });
    co_await let_others_run();
    semaphore.release();
    task.cancel();
    EXPECT_FALSE(semaphore.locked());
    co_await let_others_run();
    co_await let_others_run();
    EXPECT_TRUE(task.cancelled());
  });
  EXPECT_FALSE(acquired);
  EXPECT_EQ(semaphore.value(), 1u);
}

TEST_P(SyncTest, ACancellationTakenBackTooLateIsThrownAllTheSame) {
  // The wait was over without what was waited for: going on as if nothing had been would be worse.
  Semaphore semaphore(0);
  Event event;
  this->run([&]() -> Coro<void> {
    auto acquirer = this->spawn([&]() -> Coro<void> { co_await semaphore.acquire(); });
    auto waiter = this->spawn([&]() -> Coro<void> { co_await event.wait(); });
    co_await let_others_run();
    acquirer.cancel();
    acquirer.uncancel();
    waiter.cancel();
    waiter.uncancel();
    co_await let_others_run();
    EXPECT_TRUE(acquirer.cancelled());
    EXPECT_TRUE(waiter.cancelled());
  });
}

TEST_P(SyncTest, ASemaphoreCountsFromOneUnlessToldOtherwiseAndNeverBelowZero) {
  EXPECT_EQ(Semaphore().value(), 1u);
  EXPECT_FALSE(Semaphore().locked());
  EXPECT_TRUE(Semaphore(0).locked());
  EXPECT_THROW(Semaphore(-1), std::invalid_argument);
  EXPECT_THROW(BoundedSemaphore(-1), std::invalid_argument);
}

TEST_P(SyncTest, PermitsReleasedTogetherGoToWhoWaitsAndNotToWhoComes) {
  Semaphore semaphore(3);
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    co_await semaphore.acquire();
    co_await semaphore.acquire();
    EXPECT_FALSE(semaphore.locked());
    const auto enter = [&](int number) -> Coro<void> {
      co_await semaphore.acquire();
      order.push_back(number);
    };
    std::vector<Task<void>> tasks;
    for (int i = 1; i <= 3; ++i) {
      tasks.push_back(this->loop.create_task(enter(i)));
      co_await let_others_run();
    }
    EXPECT_EQ(order, (std::vector{1}));
    tasks.push_back(this->loop.create_task(enter(4)));
    semaphore.release();
    semaphore.release();
    EXPECT_EQ(semaphore.value(), 0u);
    co_await let_others_run();
    co_await let_others_run();
    EXPECT_EQ(sorted_if_shuffled(order), (std::vector{1, 2, 3}));
    EXPECT_TRUE(semaphore.locked());
    semaphore.release();
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(sorted_if_shuffled(order), (std::vector{1, 2, 3, 4}));
}

TEST_P(SyncTest, APermitPassesOverThoseWhoWereCancelled) {
  Semaphore semaphore(0);
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    const auto enter = [&](int number) -> Coro<void> {
      co_await semaphore.acquire();
      order.push_back(number);
    };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 4; ++i) {
      tasks.push_back(this->loop.create_task(enter(i)));
      co_await let_others_run();
    }
    tasks[0].cancel();
    tasks[1].cancel();
    semaphore.release();
    co_await let_others_run();
    co_await let_others_run();
    EXPECT_EQ(order, (std::vector{2}));
    EXPECT_TRUE(semaphore.locked());
    EXPECT_FALSE(tasks[3].done());
    semaphore.release();
    co_await tasks[3];
  });
}

TEST_P(SyncTest, APermitWhoseTaskIsCancelledAsItEndsComesBack) {
  Semaphore semaphore(1);
  bool second_came = false, second_ran_on = false;
  this->run([&]() -> Coro<void> {
    Task<void> second;
    auto first = this->spawn([&]() -> Coro<void> {
      {
        const auto permit = co_await semaphore.scoped();
        while (!second_came) co_await yield_now();
      }
      second.cancel();
    });
    co_await let_others_run();
    second = this->spawn([&]() -> Coro<void> {
      second_came = true;
      const auto permit = co_await semaphore.scoped();
      second_ran_on = true;
    });
    co_await first;
    co_await let_others_run();
    co_await let_others_run();
    EXPECT_TRUE(second.cancelled());
    co_await semaphore.acquire();
  });
  EXPECT_FALSE(second_ran_on);
}

TEST_P(SyncTest, WhoReleasesAndComesAgainGoesBehindThoseWhoWait) {
  Semaphore semaphore(1);
  std::vector<std::string> order;
  this->run([&]() -> Coro<void> {
    const auto twice = [&](std::string name) -> Coro<void> {
      for (const char* round : {"1", "2"}) {
        co_await semaphore.acquire();
        order.push_back(name + round);
        co_await sleep(100us);
        semaphore.release();
      }
    };
    std::vector<Task<void>> tasks;
    co_await semaphore.acquire();
    for (const char* name : {"a", "b", "c"}) {
      tasks.push_back(this->loop.create_task(twice(name)));
      co_await let_others_run();
    }
    semaphore.release();
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(order, (std::vector<std::string>{"a1", "b1", "c1", "a2", "b2", "c2"}));
}

TEST_P(SyncTest, WhoReleasesAndComesAgainAtOnceGoesBehindThoseWhoWait) {
  Semaphore semaphore(1);
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    const auto once = [&](int number) -> Coro<void> {
      co_await semaphore.acquire();
      order.push_back(number);
    };
    const auto twice = [&]() -> Coro<void> {
      co_await once(2);
      semaphore.release();
      co_await once(4);
    };
    std::vector<Task<void>> tasks;
    tasks.push_back(this->loop.create_task(once(1)));
    co_await let_others_run();
    tasks.push_back(this->loop.create_task(twice()));
    co_await let_others_run();
    tasks.push_back(this->loop.create_task(once(3)));
    co_await let_others_run();
    semaphore.release();
    co_await tasks[2];
    semaphore.release();
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4}));
}

TEST_P(SyncTest, ABoundedSemaphoreIsNotReleasedMoreOftenThanAcquired) {
  BoundedSemaphore semaphore(2);
  EXPECT_THROW(semaphore.release(), std::logic_error);
  this->run([&]() -> Coro<void> {
    co_await semaphore.acquire();
    {
      const auto permit = co_await semaphore.scoped();
      EXPECT_TRUE(semaphore.locked());
      auto waiter = this->spawn([&]() -> Coro<void> { co_await semaphore.acquire(); });
      co_await let_others_run();
      semaphore.release();
      co_await waiter;
      EXPECT_TRUE(semaphore.locked());
    }
    semaphore.release();
    EXPECT_EQ(semaphore.value(), 2u);
    EXPECT_THROW(semaphore.release(), std::logic_error);
  });
}

TEST_P(SyncTest, APermitMayBeReleasedWhileTheLoopIsNotRunning) {
  Semaphore semaphore(0);
  auto task = this->spawn([&]() -> Coro<void> { co_await semaphore.acquire(); });
  this->settle();
  semaphore.release();
  this->settle();
  EXPECT_TRUE(task.done());
}

TEST_P(SyncTest, FreePermitsAreTakenWithoutWaiting) {
  Semaphore semaphore(1000);
  this->run([&]() -> Coro<void> {
    for (int i = 0; i < 1000; ++i) co_await semaphore.acquire();
  });
  EXPECT_TRUE(semaphore.locked());
}

// --- Lock

TEST_P(SyncTest, ALockKeepsTasksApart) {
  Lock lock;
  bool inside = false;
  this->run([&]() -> Coro<void> {
    const auto enter = [&]() -> Coro<void> {
      const auto held = co_await lock.scoped();
      EXPECT_FALSE(inside);
      inside = true;
      co_await sleep(100us);
      inside = false;
    };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 5; ++i) tasks.push_back(this->loop.create_task(enter()));
    for (auto& task : tasks) co_await task;
  });
  EXPECT_FALSE(lock.locked());
}

TEST_P(SyncTest, ALockIsHandedOverInTheOrderAsked) {
  Lock lock;
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    co_await lock.acquire();
    const auto enter = [&](int number) -> Coro<void> {
      co_await lock.acquire();
      order.push_back(number);
    };
    std::vector<Task<void>> tasks;
    for (int i = 1; i <= 2; ++i) {
      tasks.push_back(this->loop.create_task(enter(i)));
      co_await let_others_run();
    }
    EXPECT_TRUE(order.empty());
    lock.release();
    EXPECT_TRUE(lock.locked()) << "handed over";
    co_await let_others_run();
    co_await let_others_run();
    EXPECT_EQ(order, (std::vector{1}));
    tasks.push_back(this->loop.create_task(enter(3)));
    for (int i = 0; i < 2; ++i) {
      lock.release();
      co_await let_others_run();
    }
    EXPECT_EQ(order, (std::vector{1, 2, 3}));
    for (auto& task : tasks) co_await task;
    lock.release();
    EXPECT_FALSE(lock.locked());
  });
}

TEST_P(SyncTest, ACancelledAcquireDoesNotHoldTheLock) {
  Lock lock;
  this->run([&]() -> Coro<void> {
    co_await lock.acquire();
    auto task = this->spawn([&]() -> Coro<void> { co_await lock.acquire(); });
    this->loop.call_soon([&] { task.cancel(); });
    co_await let_others_run();
    co_await let_others_run();
    EXPECT_TRUE(task.cancelled());
    lock.release();
    EXPECT_FALSE(lock.locked());
  });
}

TEST_P(SyncTest, ALockPassesOverWhoIsCancelledAsItsHolderReleases) {
  Lock lock;
  this->run([&]() -> Coro<void> {
    auto blocker = this->loop.template create_future<void>();
    const auto hold = [&](bool block) -> Coro<void> {
      const auto held = co_await lock.scoped();
      if (block) co_await blocker;
    };
    auto first = this->loop.create_task(hold(true));
    co_await let_others_run();
    auto second = this->loop.create_task(hold(false));
    co_await let_others_run();
    auto third = this->loop.create_task(hold(false));
    co_await let_others_run();
    blocker.set_result();
    second.cancel();
    co_await let_others_run();
    co_await let_others_run();
    EXPECT_TRUE(first.done());
    EXPECT_TRUE(second.cancelled());
    co_await third;
    EXPECT_FALSE(lock.locked());
  });
}

TEST_P(SyncTest, ALockReleasedAsAWaiterIsCancelledGoesToExactlyOneOther) {
  Lock lock;
  int asked = 0, taken = 0;
  this->run([&]() -> Coro<void> {
    const auto take = [&]() -> Coro<void> {
      ++asked;
      co_await lock.acquire();
      ++taken;
    };
    co_await lock.acquire();
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 3; ++i) {
      tasks.push_back(this->loop.create_task(take()));
      co_await let_others_run();
    }
    this->loop.call_soon([&] {
      tasks[0].cancel();
      lock.release();
    });
    for (int i = 0; i < 4; ++i) co_await let_others_run();
    EXPECT_EQ(asked, 3);
    EXPECT_EQ(taken, 1);
    EXPECT_TRUE(tasks[0].cancelled());
    EXPECT_TRUE(tasks[1].done());
    tasks[2].cancel();
    co_await let_others_run();
    EXPECT_TRUE(tasks[2].cancelled());
  });
}

TEST_P(SyncTest, ALockFreedOfItsOnlyWaiterIsOpenToWhoComes) {
  Lock lock;
  this->run([&]() -> Coro<void> {
    co_await lock.acquire();
    auto first = this->spawn([&]() -> Coro<void> { co_await lock.acquire(); });
    co_await let_others_run();
    auto second = this->spawn([&]() -> Coro<void> { co_await lock.acquire(); });
    first.cancel();
    lock.release();
    co_await second;
    EXPECT_TRUE(lock.locked());
    EXPECT_TRUE(first.cancelled());
  });
}

TEST_P(SyncTest, ReleasingAFreeLockIsAnError) {
  Lock lock;
  EXPECT_THROW(lock.release(), std::logic_error);
  this->run([&]() -> Coro<void> {
    co_await lock.acquire();
    lock.release();
    EXPECT_THROW(lock.release(), std::logic_error);
  });
}

TEST_P(SyncTest, ALockIsFreedWhenItsHolderThrows) {
  Lock lock;
  const auto fail = [&]() -> Coro<void> {
    const auto held = co_await lock.scoped();
    throw std::runtime_error("inside");
  };
  EXPECT_THROW(this->run(fail()), std::runtime_error);
  EXPECT_FALSE(lock.locked());
}

}  // namespace
}  // namespace argiope
