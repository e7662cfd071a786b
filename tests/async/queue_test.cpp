#include "argiope/async/queue.hpp"

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "argiope/async/event_loop.hpp"
#include "argiope/base/random.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class QueueTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, QueueTest, kAllWorlds, world_name);
// Of many tasks, which take long under a sanitizer.
class ManyTasksQueueTest : public QueueTest {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, ManyTasksQueueTest, kAllWorlds, world_name);

TEST_P(QueueTest, GivesItemsInTheOrderPut) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    for (int i = 0; i < 100; ++i) co_await queue.put(i);
    EXPECT_EQ(queue.qsize(), 100u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(co_await queue.get(), i);
    EXPECT_TRUE(queue.empty());
  });
}

TEST_P(QueueTest, AGetterWaitsForAnItem) {
  Queue<std::string> queue;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<std::string> { co_return co_await queue.get(); });
    co_await let_others_run();
    EXPECT_FALSE(task.done());
    co_await queue.put("late");
    EXPECT_EQ(co_await task, "late");
  });
}

TEST_P(QueueTest, APutterWaitsForRoom) {
  Queue<int> queue(2);
  std::vector<std::string> log;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> {
      for (int i = 0; i < 4; ++i) {
        co_await queue.put(i);
        log.push_back("put " + std::to_string(i));
      }
    });
    co_await let_others_run();
    EXPECT_TRUE(queue.full());
    EXPECT_EQ(log.size(), 2u);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(co_await queue.get(), i);
    co_await task;
    EXPECT_EQ(log.size(), 4u);
  });
}

TEST_P(QueueTest, TheNowaitFormsThrowInsteadOfWaiting) {
  Queue<int> queue(1);
  EXPECT_THROW(static_cast<void>(queue.get_nowait()), QueueEmpty);
  queue.put_nowait(1);
  EXPECT_THROW(queue.put_nowait(2), QueueFull);
  EXPECT_EQ(queue.get_nowait(), 1);
  EXPECT_EQ(queue.maxsize(), 1u);
}

TEST_P(QueueTest, PassesItemsThatCanOnlyBeMoved) {
  Queue<std::unique_ptr<int>> queue(1);
  this->run([&]() -> Coro<void> {
    auto getter = this->spawn([&]() -> Coro<int> { co_return *co_await queue.get() + *co_await queue.get(); });
    co_await queue.put(std::make_unique<int>(1));
    co_await queue.put(std::make_unique<int>(2));
    EXPECT_EQ(co_await getter, 3);
  });
}

TEST_P(QueueTest, AMaxsizeOfZeroOrLessIsNoLimit) {
  for (const int maxsize : {0, -1, -100}) {
    Queue<int> queue(maxsize);
    for (int i = 0; i < 1000; ++i) queue.put_nowait(i);
    EXPECT_FALSE(queue.full());
    EXPECT_EQ(queue.maxsize(), 0u);
  }
}

TEST_P(QueueTest, ATimerMayPutForAGetterAndGetForAPutter) {
  Queue<int> queue(1);
  this->run([&]() -> Coro<void> {
    this->loop.call_later(100us, [&] { queue.put_nowait(1); });
    EXPECT_EQ(co_await queue.get(), 1);
    queue.put_nowait(2);
    this->loop.call_later(100us, [&] { EXPECT_EQ(queue.get_nowait(), 2); });
    co_await queue.put(3);
    EXPECT_EQ(queue.get_nowait(), 3);
  });
}

TEST_P(QueueTest, ProducerAndConsumerTakeTurnsThroughOneSlot) {
  Queue<int> queue(1);
  int sum = 0;
  this->run([&]() -> Coro<void> {
    auto producer = this->spawn([&]() -> Coro<void> {
      for (int i = 0; i < 500; ++i) co_await queue.put(i);
    });
    auto consumer = this->spawn([&]() -> Coro<void> {
      for (int i = 0; i < 500; ++i) sum += co_await queue.get();
    });
    co_await producer;
    co_await consumer;
  });
  EXPECT_EQ(sum, 499 * 500 / 2);
  EXPECT_TRUE(queue.empty());
}

TEST_P(QueueTest, TakingAllThereIsLetsInAllWhoWait) {
  Queue<int> queue(2);
  this->run([&]() -> Coro<void> {
    const auto put = [&](int item) -> Coro<void> { co_await queue.put(item); };
    std::vector<Task<void>> putters;
    for (int i = 0; i < 4; ++i) {
      putters.push_back(this->loop.create_task(put(i)));
      co_await let_others_run();
    }
    for (int i = 0; i < 2; ++i) EXPECT_EQ(queue.get_nowait(), i);
    for (auto& putter : putters) co_await putter;
    EXPECT_EQ(queue.qsize(), 2u);
  });
}

TEST_P(QueueTest, GettersAreServedFirstComeFirstServed) {
  Queue<int> queue;
  std::vector<std::pair<int, int>> got;
  this->run([&]() -> Coro<void> {
    const auto get = [&](int number) -> Coro<void> {
      const int item = co_await queue.get();
      got.emplace_back(number, item);
    };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 3; ++i) {
      tasks.push_back(this->loop.create_task(get(i)));
      co_await let_others_run();
    }
    for (int i = 0; i < 3; ++i) queue.put_nowait(10 + i);
    // Handed over, not up for grabs: whoever comes now finds nothing.
    EXPECT_THROW(static_cast<void>(queue.get_nowait()), QueueEmpty);
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(sorted_if_shuffled(got), (std::vector<std::pair<int, int>>{{0, 10}, {1, 11}, {2, 12}}));
}

TEST_P(QueueTest, PuttersAreServedFirstComeFirstServed) {
  Queue<int> queue(1);
  std::vector<int> got;
  this->run([&]() -> Coro<void> {
    const auto put = [&](int item) -> Coro<void> { co_await queue.put(item); };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 5; ++i) {
      tasks.push_back(this->loop.create_task(put(i)));
      co_await let_others_run();
    }
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

TEST_P(QueueTest, WorksWhileTheLoopIsNotRunning) {
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

TEST_P(QueueTest, ABusyQueueCannotStarveOthers) {
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

TEST_P(QueueTest, ACancelledGetterTakesNothing) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    auto first = this->spawn([&]() -> Coro<int> { co_return co_await queue.get(); });
    auto second = this->spawn([&]() -> Coro<int> { co_return co_await queue.get(); });
    co_await let_others_run();
    first.cancel();
    queue.put_nowait(1);
    EXPECT_EQ(co_await second, 1);
    EXPECT_TRUE(first.cancelled());
  });
}

TEST_P(QueueTest, AGetterCancelledAfterItWasServedThrowsAndLeavesItsItem) {
  Queue<int> queue;
  int got = 0;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> { got = co_await queue.get(); });
    co_await let_others_run();
    queue.put_nowait(8);
    task.cancel();
    task.uncancel();
    co_await let_others_run();
    co_await let_others_run();
    EXPECT_TRUE(task.cancelled());
  });
  EXPECT_EQ(got, 0);
  EXPECT_EQ(queue.get_nowait(), 8);
}

TEST_P(QueueTest, ACancelledPutterPutsNothing) {
  Queue<int> queue(1);
  this->run([&]() -> Coro<void> {
    queue.put_nowait(1);
    auto first = this->spawn([&]() -> Coro<void> { co_await queue.put(2); });
    auto second = this->spawn([&]() -> Coro<void> { co_await queue.put(3); });
    co_await let_others_run();
    first.cancel();
    co_await let_others_run();
    EXPECT_EQ(queue.get_nowait(), 1);
    EXPECT_EQ(queue.get_nowait(), 3);
    EXPECT_TRUE(queue.empty());
    co_await second;
  });
}

TEST_P(QueueTest, APutterCancelledAfterItWasServedHasPut) {
  Queue<int> queue(1);
  bool put = false;
  this->run([&]() -> Coro<void> {
    queue.put_nowait(1);
    auto task = this->spawn([&]() -> Coro<void> {
      co_await queue.put(2);
      put = true;
      co_await let_others_run();
    });
    co_await let_others_run();
    EXPECT_EQ(queue.get_nowait(), 1);
    task.cancel();
    co_await let_others_run();
    co_await let_others_run();
    EXPECT_TRUE(task.cancelled());
    EXPECT_EQ(queue.get_nowait(), 2);
  });
  EXPECT_TRUE(put);
}

TEST_P(QueueTest, ItemsOfACancelledGetterGoToTheOthersInTurn) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    std::vector<Task<int>> readers;
    for (int i = 0; i < 3; ++i) {
      readers.push_back(this->spawn([&]() -> Coro<int> { co_return co_await queue.get(); }));
      co_await let_others_run();
    }
    readers[0].cancel();
    queue.put_nowait(1);
    queue.put_nowait(2);
    EXPECT_EQ(co_await readers[1], 1);
    EXPECT_EQ(co_await readers[2], 2);
    EXPECT_TRUE(readers[0].cancelled());
  });
}

TEST_P(QueueTest, RoomPassesOverAPutterThatWasCancelled) {
  Queue<char> queue(1);
  this->run([&]() -> Coro<void> {
    const auto put = [&](char item) -> Coro<void> { co_await queue.put(item); };
    auto a = this->loop.create_task(put('a'));
    co_await let_others_run();
    auto b = this->loop.create_task(put('b'));
    co_await let_others_run();
    auto x = this->loop.create_task(put('x'));
    co_await let_others_run();
    auto c = this->loop.create_task(put('c'));
    co_await let_others_run();
    EXPECT_TRUE(a.done());
    EXPECT_FALSE(b.done());
    x.cancel();
    co_await let_others_run();
    EXPECT_TRUE(x.cancelled());
    for (const char expected : {'a', 'b', 'c'}) EXPECT_EQ(queue.get_nowait(), expected);
    co_await b;
    co_await c;
  });
}

TEST_P(QueueTest, AWaitThatTimesOutLeavesNothingBehind) {
  Queue<int> queue(1);
  const auto get = [&]() -> Coro<int> { co_return co_await queue.get(); };
  const auto put = [&](int item) -> Coro<void> { co_await queue.put(item); };
  EXPECT_THROW(this->run(wait_for(get(), 1ms)), TimeoutError);
  this->run([&]() -> Coro<void> {
    queue.put_nowait(1);
    bool timed_out = false;
    try {
      co_await wait_for(put(2), 1ms);
    } catch (const TimeoutError&) {
      timed_out = true;
    }
    EXPECT_TRUE(timed_out);
    EXPECT_EQ(queue.get_nowait(), 1) << "not handed to the getter that has gone";
    EXPECT_TRUE(queue.empty());
  });
}

TEST_P(QueueTest, ACancellationTakenBackTooLateIsThrownAllTheSame) {
  Queue<int> empty, full(1);
  this->run([&]() -> Coro<void> {
    full.put_nowait(1);
    auto getter = this->spawn([&]() -> Coro<void> { co_await empty.get(); });
    auto putter = this->spawn([&]() -> Coro<void> { co_await full.put(2); });
    co_await let_others_run();
    getter.cancel();
    getter.uncancel();
    putter.cancel();
    putter.uncancel();
    co_await let_others_run();
    EXPECT_TRUE(getter.cancelled());
    EXPECT_TRUE(putter.cancelled()) << "else it would believe to have put";
  });
}

TEST_P(ManyTasksQueueTest, AnyNumberOfParkedTasksIsCancelledOneStepEach) {
  // A search for each in the list of those who wait would take until tomorrow.
  constexpr std::size_t kTasks = 100'000;
  Queue<int> queue;
  const auto get = [&]() -> Coro<void> { co_await queue.get(); };
  for (std::size_t i = 0; i < kTasks; ++i) this->loop.create_task(get());
  while (this->loop.next_deadline() <= this->loop.time()) this->loop.run_once(TimePoint::min());
  EXPECT_EQ(this->loop.task_count(), kTasks);
  this->loop.cancel_all_tasks();
  while (this->loop.task_count() > 0) this->loop.run_once(TimePoint::min());
  queue.put_nowait(1);
  EXPECT_EQ(queue.get_nowait(), 1);
}

TEST_P(QueueTest, CancellationsAtRandomLoseAndRepeatNothing) {
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
      co_await let_others_run();
    }
    queue.shutdown();
    for (auto& task : tasks) {
      while (!task.done()) co_await let_others_run();
    }
  });
  for (const int count : got) ASSERT_EQ(count, 1);
}

// --- task_done and join

TEST_P(QueueTest, JoinWaitsUntilEveryItemIsDone) {
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
      co_await let_others_run();
      log.push_back("done");
      queue.task_done();
    }
    co_await joiner;
  });
  EXPECT_EQ(log, (std::vector<std::string>{"done", "done", "done", "joined"}));
}

TEST_P(QueueTest, JoinCountsItemsHandedStraightOver) {
  Queue<int> queue(1);
  this->run([&]() -> Coro<void> {
    auto getter = this->spawn([&]() -> Coro<void> { co_await queue.get(); });
    co_await let_others_run();
    queue.put_nowait(1);
    co_await getter;
    queue.put_nowait(2);
    auto putter = this->spawn([&]() -> Coro<void> { co_await queue.put(3); });
    co_await let_others_run();
    for (int i = 0; i < 2; ++i) static_cast<void>(queue.get_nowait());
    auto joiner = this->spawn([&]() -> Coro<void> { co_await queue.join(); });
    for (int i = 0; i < 3; ++i) {
      co_await let_others_run();
      EXPECT_FALSE(joiner.done());
      queue.task_done();
    }
    co_await joiner;
    co_await putter;
  });
}

TEST_P(QueueTest, JoinReturnsWhenWorkersHaveDoneAllOfAnyOrder) {
  const auto check = [&](auto& queue) -> Coro<void> {
    int sum = 0;
    for (int i = 0; i < 100; ++i) queue.put_nowait(i);
    const auto work = [&]() -> Coro<void> {
      for (;;) {
        sum += co_await queue.get();
        queue.task_done();
      }
    };
    std::vector<Task<void>> workers;
    for (int i = 0; i < 2; ++i) workers.push_back(this->loop.create_task(work()));
    co_await queue.join();
    EXPECT_EQ(sum, 4950);
    for (auto& worker : workers) worker.cancel();
    co_await let_others_run();
    EXPECT_THROW(queue.task_done(), std::logic_error);
    co_await queue.join();
    co_await queue.join();
  };
  Queue<int> queue;
  LifoQueue<int> lifo;
  PriorityQueue<int> priority;
  this->run([&]() -> Coro<void> {
    co_await check(queue);
    co_await check(lifo);
    co_await check(priority);
  });
}

TEST_P(QueueTest, ACancelledJoinLeavesTheOthersWaiting) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    queue.put_nowait(1);
    const auto join = [&]() -> Coro<void> { co_await queue.join(); };
    auto first = this->loop.create_task(join());
    auto second = this->loop.create_task(join());
    co_await let_others_run();
    first.cancel();
    co_await let_others_run();
    EXPECT_TRUE(first.cancelled());
    queue.task_done();
    co_await second;
  });
}

TEST_P(QueueTest, OneTaskDoneTooManyIsAnError) {
  Queue<int> queue;
  EXPECT_THROW(queue.task_done(), std::logic_error);
  queue.put_nowait(1);
  queue.task_done();
  EXPECT_THROW(queue.task_done(), std::logic_error);
}

// --- shutdown, by CPython 3.13's rules

TEST_P(QueueTest, AfterShutdownNothingIsPutAndTheRestCanBeGot) {
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

// put and get of every kind are refused.
template <class Q>
Coro<void> expect_shut_down(Q& queue) {
  EXPECT_THROW(queue.put_nowait(0), QueueShutDown);
  EXPECT_THROW(static_cast<void>(queue.get_nowait()), QueueShutDown);
  int refused = 0;
  try {
    co_await queue.put(0);
  } catch (const QueueShutDown&) {
    ++refused;
  }
  try {
    co_await queue.get();
  } catch (const QueueShutDown&) {
    ++refused;
  }
  EXPECT_EQ(refused, 2);
}

TEST_P(QueueTest, ShutDownWhileEmptyItRefusesAtOnce) {
  const auto check = [&](auto& queue) -> Coro<void> {
    auto getter = this->spawn([&]() -> Coro<void> { co_await queue.get(); });
    co_await let_others_run();
    queue.shutdown();
    EXPECT_EQ(queue.qsize(), 0u);
    co_await queue.join();
    co_await let_others_run();
    EXPECT_TRUE(getter.done());
    EXPECT_THROW(getter.result(), QueueShutDown);
    co_await expect_shut_down(queue);
  };
  Queue<int> queue;
  LifoQueue<int> lifo;
  PriorityQueue<int> priority;
  this->run([&]() -> Coro<void> {
    co_await check(queue);
    co_await check(lifo);
    co_await check(priority);
  });
}

TEST_P(QueueTest, ShutDownWhileFullItStillGivesWhatItHas) {
  const auto check = [&](auto& queue) -> Coro<void> {
    queue.put_nowait(1);
    auto joiner = this->spawn([&]() -> Coro<void> { co_await queue.join(); });
    auto putter = this->spawn([&]() -> Coro<void> { co_await queue.put(2); });
    co_await let_others_run();
    EXPECT_FALSE(putter.done());
    queue.shutdown();
    EXPECT_EQ(queue.qsize(), 1u);
    co_await let_others_run();
    EXPECT_TRUE(putter.done());
    EXPECT_THROW(putter.result(), QueueShutDown);
    EXPECT_EQ(co_await queue.get(), 1);
    co_await let_others_run();
    EXPECT_FALSE(joiner.done());
    co_await expect_shut_down(queue);
    queue.task_done();
    co_await joiner;
    EXPECT_THROW(queue.task_done(), std::logic_error);
  };
  Queue<int> queue(1);
  LifoQueue<int> lifo(1);
  PriorityQueue<int> priority(1);
  this->run([&]() -> Coro<void> {
    co_await check(queue);
    co_await check(lifo);
    co_await check(priority);
  });
}

TEST_P(QueueTest, ShutDownImmediatelyItHasNothingAndNothingUnfinished) {
  const auto check = [&](auto& queue) -> Coro<void> {
    queue.put_nowait(1);
    queue.put_nowait(2);
    auto joiner = this->spawn([&]() -> Coro<void> { co_await queue.join(); });
    co_await let_others_run();
    queue.shutdown(true);
    EXPECT_EQ(queue.qsize(), 0u);
    co_await joiner;
    co_await expect_shut_down(queue);
    EXPECT_THROW(queue.task_done(), std::logic_error);
    queue.shutdown();
    queue.shutdown(true);
  };
  Queue<int> queue;
  LifoQueue<int> lifo;
  PriorityQueue<int> priority;
  this->run([&]() -> Coro<void> {
    co_await check(queue);
    co_await check(lifo);
    co_await check(priority);
  });
}

TEST_P(QueueTest, ShutdownWakesGettersAndPutters) {
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
    co_await let_others_run();
    empty.shutdown();
    full.shutdown();
    empty.shutdown();
    for (auto& task : tasks) co_await task;
    EXPECT_EQ(full.qsize(), 1u);
  });
  EXPECT_EQ(refused, 6);
}

TEST_P(QueueTest, AnImmediateShutdownDropsItemsAndCountsThemAsDone) {
  Queue<std::shared_ptr<int>> queue;
  const auto witness = std::make_shared<int>();
  this->run([&]() -> Coro<void> {
    for (int i = 0; i < 3; ++i) queue.put_nowait(witness);
    co_await queue.get();
    auto joiner = this->spawn([&]() -> Coro<void> { co_await queue.join(); });
    co_await let_others_run();
    queue.shutdown(true);
    EXPECT_EQ(witness.use_count(), 1);
    EXPECT_THROW(static_cast<void>(queue.get_nowait()), QueueShutDown);
    co_await let_others_run();
    EXPECT_FALSE(joiner.done()) << "one item is still being worked on";
    queue.task_done();
    co_await joiner;
  });
}

TEST_P(QueueTest, AGetterServedBeforeTheShutdownKeepsItsItem) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<int> { co_return co_await queue.get(); });
    co_await let_others_run();
    queue.put_nowait(4);
    queue.shutdown(true);
    EXPECT_EQ(co_await task, 4);
  });
}

// --- the other orders

TEST_P(QueueTest, ALifoQueueGivesTheNewestFirst) {
  LifoQueue<int> queue;
  for (int i = 0; i < 3; ++i) queue.put_nowait(i);
  EXPECT_EQ(queue.get_nowait(), 2);
  queue.put_nowait(9);
  EXPECT_EQ(queue.get_nowait(), 9);
  EXPECT_EQ(queue.get_nowait(), 1);
}

TEST_P(QueueTest, APriorityQueueGivesTheSmallestFirstAndEqualsInTheOrderPut) {
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

TEST_P(QueueTest, APriorityQueueTakesAComparatorThatHasState) {
  struct FartherFrom {
    int centre;
    bool operator()(int a, int b) const { return std::abs(a - centre) > std::abs(b - centre); }
  };
  PriorityQueue<int, FartherFrom> queue(0, FartherFrom{10});
  for (const int item : {9, 12, 30, 0, 10}) queue.put_nowait(item);
  for (const int expected : {30, 0, 12, 9, 10}) EXPECT_EQ(queue.get_nowait(), expected);
}

TEST_P(QueueTest, AGetterThatWaitsGetsTheNextItemPutInAnyOrder) {
  PriorityQueue<int> queue;
  this->run([&]() -> Coro<void> {
    auto getter = this->spawn([&]() -> Coro<int> { co_return co_await queue.get(); });
    co_await let_others_run();
    queue.put_nowait(5);
    queue.put_nowait(1);
    EXPECT_EQ(co_await getter, 5);
    EXPECT_EQ(queue.get_nowait(), 1);
  });
}

TEST_P(QueueTest, ABoundedPriorityQueueTakesInWhoWaitedAsRoomComes) {
  PriorityQueue<int> queue(2);
  this->run([&]() -> Coro<void> {
    const auto put = [&](int item) -> Coro<void> { co_await queue.put(item); };
    std::vector<Task<void>> tasks;
    for (const int item : {5, 4, 3, 1}) {
      tasks.push_back(this->loop.create_task(put(item)));
      co_await let_others_run();
    }
    std::vector<int> got;
    for (int i = 0; i < 4; ++i) got.push_back(co_await queue.get());
    EXPECT_EQ(got, (std::vector{4, 3, 1, 5}));
    for (auto& task : tasks) co_await task;
  });
}

}  // namespace
}  // namespace argiope
