#include "argiope/async/queue.hpp"

#include <memory>
#include <stdexcept>
#include <string>

#include "argiope/async/sleep.hpp"
#include "argiope/base/random.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

template <class World>
using QueueTest = LoopTest<World>;
TYPED_TEST_SUITE(QueueTest, AllWorlds, WorldNames);

TYPED_TEST(QueueTest, GivesItemsInTheOrderPut) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    for (int i = 0; i < 100; ++i) co_await queue.put(i);
    EXPECT_EQ(queue.qsize(), 100u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(co_await queue.get(), i);
    EXPECT_TRUE(queue.empty());
  });
}

TYPED_TEST(QueueTest, AGetterWaitsForAnItem) {
  Queue<std::string> queue;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<std::string> { co_return co_await queue.get(); });
    co_await yield_now();
    EXPECT_FALSE(task.done());
    co_await queue.put("late");
    EXPECT_EQ(co_await task, "late");
  });
}

TYPED_TEST(QueueTest, APutterWaitsForRoom) {
  Queue<int> queue(2);
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> {
      for (int i = 0; i < 4; ++i) {
        co_await queue.put(i);
        log.push_back("put " + std::to_string(i));
      }
    });
    co_await yield_now();
    EXPECT_TRUE(queue.full());
    EXPECT_EQ(log.size(), 2u);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(co_await queue.get(), i);
    co_await task;
    EXPECT_EQ(log.size(), 4u);
  });
}

TYPED_TEST(QueueTest, TheNowaitFormsThrowInsteadOfWaiting) {
  Queue<int> queue(1);
  EXPECT_THROW(static_cast<void>(queue.get_nowait()), QueueEmpty);
  queue.put_nowait(1);
  EXPECT_THROW(queue.put_nowait(2), QueueFull);
  EXPECT_EQ(queue.get_nowait(), 1);
  EXPECT_EQ(queue.maxsize(), 1u);
}

TYPED_TEST(QueueTest, PassesItemsThatCanOnlyBeMoved) {
  Queue<std::unique_ptr<int>> queue(1);
  this->run([&]() -> Coro<void> {
    auto getter = this->spawn([&]() -> Coro<int> { co_return *co_await queue.get() + *co_await queue.get(); });
    co_await queue.put(std::make_unique<int>(1));
    co_await queue.put(std::make_unique<int>(2));
    EXPECT_EQ(co_await getter, 3);
  });
}

TYPED_TEST(QueueTest, GettersAreServedFirstComeFirstServed) {
  Queue<int> queue;
  std::vector<std::pair<int, int>> got;
  this->run([&]() -> Coro<void> {
    const auto get = [&](int number) -> Coro<void> {
      const int item = co_await queue.get();
      got.emplace_back(number, item);
    };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 3; ++i) tasks.push_back(this->loop.create_task(get(i)));
    co_await yield_now();
    for (int i = 0; i < 3; ++i) queue.put_nowait(10 + i);
    // Handed over, not up for grabs: whoever comes now finds nothing.
    EXPECT_THROW(static_cast<void>(queue.get_nowait()), QueueEmpty);
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(got, (std::vector<std::pair<int, int>>{{0, 10}, {1, 11}, {2, 12}}));
}

TYPED_TEST(QueueTest, PuttersAreServedFirstComeFirstServed) {
  Queue<int> queue(1);
  std::vector<int> got;
  this->run([&]() -> Coro<void> {
    const auto put = [&](int item) -> Coro<void> { co_await queue.put(item); };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 5; ++i) tasks.push_back(this->loop.create_task(put(i)));
    co_await yield_now();
    for (int i = 0; i < 5; ++i) {
      got.push_back(queue.get_nowait());
      if (i < 4) {
        EXPECT_THROW(queue.put_nowait(99), QueueFull) << "the room went to whoever waited";
      }
    }
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(got, (std::vector{0, 1, 2, 3, 4}));
}

TYPED_TEST(QueueTest, WorksWhileTheLoopIsNotRunning) {
  Queue<int> queue(1);
  auto getter = this->spawn([&]() -> Coro<int> { co_return co_await queue.get(); });
  this->settle();
  queue.put_nowait(5);
  this->settle();
  EXPECT_EQ(getter.result(), 5);
  queue.put_nowait(6);
  auto putter = this->spawn([&]() -> Coro<void> { co_await queue.put(7); });
  this->settle();
  EXPECT_EQ(queue.get_nowait(), 6);
  this->settle();
  EXPECT_TRUE(putter.done());
}

TYPED_TEST(QueueTest, ABusyQueueCannotStarveOthers) {
  Queue<int> queue;
  bool stop = false;
  this->run([&]() -> Coro<void> {
    this->loop.call_soon([&] { stop = true; });
    while (!stop) {
      co_await queue.put(1);
      co_await queue.get();
    }
  });
}

// --- cancellation

TYPED_TEST(QueueTest, ACancelledGetterTakesNothing) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    auto first = this->spawn([&]() -> Coro<int> { co_return co_await queue.get(); });
    auto second = this->spawn([&]() -> Coro<int> { co_return co_await queue.get(); });
    co_await yield_now();
    first.cancel();
    queue.put_nowait(1);
    EXPECT_EQ(co_await second, 1);
    EXPECT_TRUE(first.cancelled());
  });
}

TYPED_TEST(QueueTest, AGetterCancelledAfterItWasServedKeepsItsItem) {
  Queue<int> queue;
  int got = 0;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> {
      got = co_await queue.get();
      co_await yield_now();
      got = -1;
    });
    co_await yield_now();
    queue.put_nowait(8);
    task.cancel();
    co_await yield_now();
    co_await yield_now();
    EXPECT_TRUE(task.cancelled()) << "at its next await";
  });
  EXPECT_EQ(got, 8);
  EXPECT_TRUE(queue.empty());
}

TYPED_TEST(QueueTest, ACancelledPutterPutsNothing) {
  Queue<int> queue(1);
  this->run([&]() -> Coro<void> {
    queue.put_nowait(1);
    auto first = this->spawn([&]() -> Coro<void> { co_await queue.put(2); });
    auto second = this->spawn([&]() -> Coro<void> { co_await queue.put(3); });
    co_await yield_now();
    first.cancel();
    co_await yield_now();
    EXPECT_EQ(queue.get_nowait(), 1);
    EXPECT_EQ(queue.get_nowait(), 3);
    EXPECT_TRUE(queue.empty());
    co_await second;
  });
}

TYPED_TEST(QueueTest, APutterCancelledAfterItWasServedHasPut) {
  Queue<int> queue(1);
  bool put = false;
  this->run([&]() -> Coro<void> {
    queue.put_nowait(1);
    auto task = this->spawn([&]() -> Coro<void> {
      co_await queue.put(2);
      put = true;
      co_await yield_now();
    });
    co_await yield_now();
    EXPECT_EQ(queue.get_nowait(), 1);
    task.cancel();
    co_await yield_now();
    co_await yield_now();
    EXPECT_TRUE(task.cancelled());
    EXPECT_EQ(queue.get_nowait(), 2);
  });
  EXPECT_TRUE(put);
}

TYPED_TEST(QueueTest, CancellationsAtRandomLoseAndRepeatNothing) {
  Random random(21);
  Queue<int> queue(3);
  constexpr int kItems = 3000;
  std::vector<int> got(kItems);
  int put = 0, taken = 0;
  this->run([&]() -> Coro<void> {
    const auto produce = [&]() -> Coro<void> {
      while (put < kItems) {
        const int item = put++;
        for (bool done = false; !done;) {
          try {
            co_await queue.put(item);
            done = true;
          } catch (const CancelledError&) {
          }
        }
      }
    };
    const auto consume = [&]() -> Coro<void> {
      while (taken < kItems) {
        try {
          const int item = co_await queue.get();
          ++got[static_cast<std::size_t>(item)];
          ++taken;
        } catch (const CancelledError&) {
        } catch (const QueueShutDown&) {
        }
      }
    };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 4; ++i) {
      tasks.push_back(this->loop.create_task(produce()));
      tasks.push_back(this->loop.create_task(consume()));
    }
    while (taken < kItems) {
      tasks[random.below(tasks.size())].cancel();
      co_await yield_now();
    }
    queue.shutdown();
    for (auto& task : tasks) {
      while (!task.done()) co_await yield_now();
    }
  });
  for (const int count : got) ASSERT_EQ(count, 1);
}

// --- task_done and join

TYPED_TEST(QueueTest, JoinWaitsUntilEveryItemIsDone) {
  Queue<int> queue;
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    co_await queue.join();
    for (int i = 0; i < 3; ++i) queue.put_nowait(i);
    auto joiner = this->spawn([&]() -> Coro<void> {
      co_await queue.join();
      log.push_back("joined");
    });
    for (int i = 0; i < 3; ++i) {
      co_await queue.get();
      co_await yield_now();
      log.push_back("done");
      queue.task_done();
    }
    co_await joiner;
  });
  EXPECT_EQ(log, (std::vector<std::string>{"done", "done", "done", "joined"}));
}

TYPED_TEST(QueueTest, JoinCountsItemsHandedStraightOver) {
  Queue<int> queue(1);
  this->run([&]() -> Coro<void> {
    auto getter = this->spawn([&]() -> Coro<void> { co_await queue.get(); });
    co_await yield_now();
    queue.put_nowait(1);
    co_await getter;
    queue.put_nowait(2);
    auto putter = this->spawn([&]() -> Coro<void> { co_await queue.put(3); });
    co_await yield_now();
    for (int i = 0; i < 2; ++i) static_cast<void>(queue.get_nowait());
    auto joiner = this->spawn([&]() -> Coro<void> { co_await queue.join(); });
    for (int i = 0; i < 3; ++i) {
      co_await yield_now();
      EXPECT_FALSE(joiner.done());
      queue.task_done();
    }
    co_await joiner;
    co_await putter;
  });
}

TYPED_TEST(QueueTest, OneTaskDoneTooManyIsAnError) {
  Queue<int> queue;
  EXPECT_THROW(queue.task_done(), std::logic_error);
  queue.put_nowait(1);
  queue.task_done();
  EXPECT_THROW(queue.task_done(), std::logic_error);
}

// --- shutdown, by CPython 3.13's rules

TYPED_TEST(QueueTest, AfterShutdownNothingIsPutAndTheRestCanBeGot) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    queue.put_nowait(1);
    queue.shutdown();
    EXPECT_THROW(queue.put_nowait(2), QueueShutDown);
    bool refused = false;
    try {
      co_await queue.put(2);
    } catch (const QueueShutDown&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    EXPECT_EQ(co_await queue.get(), 1);
    EXPECT_THROW(static_cast<void>(queue.get_nowait()), QueueShutDown);
    refused = false;
    try {
      co_await queue.get();
    } catch (const QueueShutDown&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
  });
}

TYPED_TEST(QueueTest, ShutdownWakesGettersAndPutters) {
  Queue<int> empty, full(1);
  int refused = 0;
  this->run([&]() -> Coro<void> {
    full.put_nowait(1);
    const auto get = [&]() -> Coro<void> {
      try {
        co_await empty.get();
      } catch (const QueueShutDown&) {
        ++refused;
      }
    };
    const auto put = [&]() -> Coro<void> {
      try {
        co_await full.put(2);
      } catch (const QueueShutDown&) {
        ++refused;
      }
    };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 3; ++i) {
      tasks.push_back(this->loop.create_task(get()));
      tasks.push_back(this->loop.create_task(put()));
    }
    co_await yield_now();
    empty.shutdown();
    full.shutdown();
    empty.shutdown();
    for (auto& task : tasks) co_await task;
    EXPECT_EQ(full.qsize(), 1u);
  });
  EXPECT_EQ(refused, 6);
}

TYPED_TEST(QueueTest, AnImmediateShutdownDropsItemsAndCountsThemAsDone) {
  Queue<std::shared_ptr<int>> queue;
  const auto witness = std::make_shared<int>();
  this->run([&]() -> Coro<void> {
    for (int i = 0; i < 3; ++i) queue.put_nowait(witness);
    co_await queue.get();
    auto joiner = this->spawn([&]() -> Coro<void> { co_await queue.join(); });
    co_await yield_now();
    queue.shutdown(true);
    EXPECT_EQ(witness.use_count(), 1);
    EXPECT_THROW(static_cast<void>(queue.get_nowait()), QueueShutDown);
    co_await yield_now();
    EXPECT_FALSE(joiner.done()) << "one item is still being worked on";
    queue.task_done();
    co_await joiner;
  });
}

TYPED_TEST(QueueTest, AGetterServedBeforeTheShutdownKeepsItsItem) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<int> { co_return co_await queue.get(); });
    co_await yield_now();
    queue.put_nowait(4);
    queue.shutdown(true);
    EXPECT_EQ(co_await task, 4);
  });
}

// --- the other orders

TYPED_TEST(QueueTest, ALifoQueueGivesTheNewestFirst) {
  LifoQueue<int> queue;
  for (int i = 0; i < 3; ++i) queue.put_nowait(i);
  EXPECT_EQ(queue.get_nowait(), 2);
  queue.put_nowait(9);
  EXPECT_EQ(queue.get_nowait(), 9);
  EXPECT_EQ(queue.get_nowait(), 1);
}

TYPED_TEST(QueueTest, APriorityQueueGivesTheSmallestFirstAndEqualsInTheOrderPut) {
  using Item = std::pair<int, std::string>;
  struct ByNumber {
    bool operator()(const Item& a, const Item& b) const { return a.first < b.first; }
  };
  PriorityQueue<Item, ByNumber> queue;
  for (int i = 0; i < 10; ++i) {
    queue.put_nowait({1, "b" + std::to_string(i)});
    queue.put_nowait({0, "a" + std::to_string(i)});
  }
  for (int i = 0; i < 10; ++i) EXPECT_EQ(queue.get_nowait().second, "a" + std::to_string(i));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(queue.get_nowait().second, "b" + std::to_string(i));
}

TYPED_TEST(QueueTest, ABoundedPriorityQueueTakesInWhoWaitedAsRoomComes) {
  PriorityQueue<int> queue(2);
  this->run([&]() -> Coro<void> {
    const auto put = [&](int item) -> Coro<void> { co_await queue.put(item); };
    std::vector<Task<void>> tasks;
    for (const int item : {5, 4, 3, 1}) tasks.push_back(this->loop.create_task(put(item)));
    co_await yield_now();
    std::vector<int> got;
    for (int i = 0; i < 4; ++i) got.push_back(co_await queue.get());
    EXPECT_EQ(got, (std::vector{4, 3, 1, 5}));
    for (auto& task : tasks) co_await task;
  });
}

}  // namespace
}  // namespace argiope
