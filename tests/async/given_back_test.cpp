// What a task had been given when it was cancelled, and had not run on with, goes back: no item, permit or notification
// is lost with a task that has no await left. The first tests go by CPython's test_queues, line by line.
#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "argiope/async/group.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/threads.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class GivenBackTest : public InSomeWorld {
 public:
  template <class AnyQueue>
  static Coro<int> get(AnyQueue& queue) {
    co_return co_await queue.get();
  }
  template <class AnyQueue>
  static Coro<void> put(AnyQueue& queue, int item) {
    co_await queue.put(item);
  }
  template <class AnyLock>
  static Coro<void> acquire(AnyLock& lock) {
    co_await lock.acquire();
  }
  // Tasks that wait for an item, each parked before the next begins.
  template <class AnyQueue>
  Coro<std::vector<Task<int>>> readers(AnyQueue& queue, int count) {
    std::vector<Task<int>> tasks;
    for (int i = 0; i < count; ++i) {
      tasks.push_back(this->loop.create_task(get(queue)));
      co_await let_others_run();
    }
    co_return tasks;
  }
  template <class AnyQueue>
  static std::vector<int> drain(AnyQueue& queue) {
    std::vector<int> items;
    while (!queue.empty()) items.push_back(queue.get_nowait());
    return items;
  }
  template <class T>
  static Coro<bool> ends_cancelled(Task<T> task) {
    for (int i = 0; i < 100 && !task.done(); ++i) co_await yield_now();
    co_return task.done() && task.cancelled();
  }
};
INSTANTIATE_TEST_SUITE_P(AllWorlds, GivenBackTest, kAllWorlds, world_name);

// --- queues

TEST_P(GivenBackTest, TheItemOfACancelledReaderIsTheNextOnes) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    auto reader = this->loop.create_task(this->get(queue));
    co_await let_others_run();
    queue.put_nowait(1);
    queue.put_nowait(2);
    reader.cancel();
    EXPECT_TRUE(co_await this->ends_cancelled(reader));
    reader = this->loop.create_task(this->get(queue));
    EXPECT_EQ(co_await reader, 1) << "2 means that 1 was lost";
  });
}

TEST_P(GivenBackTest, TheItemOfOneOfThreeReadersGoesToAnother) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    auto readers = co_await this->readers(queue, 3);
    queue.put_nowait(1);
    queue.put_nowait(2);
    readers[0].cancel();
    EXPECT_TRUE(co_await this->ends_cancelled(readers[0]));
    EXPECT_EQ((std::set{co_await readers[1], co_await readers[2]}), (std::set{1, 2}));
  });
}

TEST_P(GivenBackTest, AWriterThatEndsCancelledHasNotPutAndOneThatDoesNotHas) {
  Queue<int> queue(1);
  this->run([&]() -> Coro<void> {
    queue.put_nowait(1);
    auto writer = this->loop.create_task(this->put(queue, 2));
    co_await let_others_run();
    EXPECT_EQ(queue.get_nowait(), 1);
    writer.cancel();
    if (co_await this->ends_cancelled(writer)) {
      writer = this->loop.create_task(this->put(queue, 2));
      co_await writer;
    }
    EXPECT_EQ(queue.get_nowait(), 2);
    EXPECT_EQ(queue.qsize(), 0u);
  });
}

TEST_P(GivenBackTest, AWriterThatWasLetInIsCancelledAtItsNextAwait) {
  Queue<int> queue(1);
  bool went_on = false;
  this->run([&]() -> Coro<void> {
    queue.put_nowait(1);
    auto writer = this->spawn([&]() -> Coro<void> {
      co_await queue.put(2);
      went_on = true;
      co_await queue.put(3);
    });
    co_await let_others_run();
    EXPECT_EQ(queue.get_nowait(), 1);
    EXPECT_TRUE(writer.cancel());
    EXPECT_TRUE(writer.cancel()) << "once more changes nothing";
    EXPECT_TRUE(co_await this->ends_cancelled(writer));
    EXPECT_TRUE(went_on);
    EXPECT_EQ(this->drain(queue), (std::vector{2}));
  });
}

TEST_P(GivenBackTest, AWriterThatCancelsItselfAfterwardsEndsCancelled) {
  Queue<int> queue(1);
  this->run([&]() -> Coro<void> {
    queue.put_nowait(1);
    auto writer = this->spawn([&]() -> Coro<void> {
      co_await queue.put(2);
      current_task().cancel();
    });
    co_await let_others_run();
    EXPECT_EQ(queue.get_nowait(), 1);
    writer.cancel();
    EXPECT_TRUE(co_await this->ends_cancelled(writer)) << "its own cancellation came in its last step";
  });
}

TEST_P(GivenBackTest, ItemsComeBackInTheOrderPutWhoeverIsCancelledFirst) {
  std::vector<std::size_t> order{0, 1, 2};
  do {
    Queue<int> queue;
    this->run([&]() -> Coro<void> {
      auto readers = co_await this->readers(queue, 3);
      for (int i = 1; i <= 4; ++i) queue.put_nowait(i);
      for (const std::size_t i : order) readers[i].cancel();
      EXPECT_EQ(queue.qsize(), 4u) << "at once, not when they have run";
      queue.put_nowait(5);
      for (auto& reader : readers) EXPECT_TRUE(co_await this->ends_cancelled(reader));
    });
    EXPECT_EQ(this->drain(queue), (std::vector{1, 2, 3, 4, 5}));
  } while (std::ranges::next_permutation(order).found);
}

TEST_P(GivenBackTest, AnItemThatComesBackTwiceIsStillTheFirst) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    auto readers = co_await this->readers(queue, 3);
    queue.put_nowait(1);
    readers[0].cancel();  // to the second
    queue.put_nowait(2);  // to the third
    readers[2].cancel();
    readers[1].cancel();
    for (auto& reader : readers) EXPECT_TRUE(co_await this->ends_cancelled(reader));
    queue.put_nowait(3);
  });
  EXPECT_EQ(this->drain(queue), (std::vector{1, 2, 3}));
}

TEST_P(GivenBackTest, ItemsOfALifoQueueComeBackBelowThoseThatCameLater) {
  LifoQueue<int> queue;
  this->run([&]() -> Coro<void> {
    auto readers = co_await this->readers(queue, 2);
    for (int i = 1; i <= 3; ++i) queue.put_nowait(i);
    readers[1].cancel();
    readers[0].cancel();
    for (auto& reader : readers) EXPECT_TRUE(co_await this->ends_cancelled(reader));
  });
  EXPECT_EQ(this->drain(queue), (std::vector{3, 2, 1}));
}

struct Urgent {
  bool operator()(int a, int b) const { return a / 10 < b / 10; }
};

TEST_P(GivenBackTest, ItemsOfAPriorityQueueComeBackBeforeTheirEqualsThatCameLater) {
  PriorityQueue<int, Urgent> queue;
  this->run([&]() -> Coro<void> {
    auto readers = co_await this->readers(queue, 2);
    for (const int item : {21, 22, 11, 23, 12}) queue.put_nowait(item);
    readers[1].cancel();
    readers[0].cancel();
    for (auto& reader : readers) EXPECT_TRUE(co_await this->ends_cancelled(reader));
  });
  EXPECT_EQ(this->drain(queue), (std::vector{11, 12, 21, 22, 23}));
}

TEST_P(GivenBackTest, AQueueThatGotBackMoreThanItsSizeLetsNobodyInBeforeThereIsRoom) {
  Queue<int> queue(1);
  this->run([&]() -> Coro<void> {
    auto readers = co_await this->readers(queue, 1);
    queue.put_nowait(1);
    queue.put_nowait(2);
    auto writer = this->loop.create_task(this->put(queue, 3), {}, Start::eagerly);
    readers[0].cancel();
    EXPECT_EQ(queue.qsize(), 2u);
    EXPECT_TRUE(queue.full());
    EXPECT_THROW(queue.put_nowait(9), QueueFull);
    EXPECT_EQ(queue.get_nowait(), 1);
    co_await let_others_run();
    EXPECT_FALSE(writer.done()) << "one is stored still";
    EXPECT_EQ(queue.get_nowait(), 2);
    co_await writer;
    EXPECT_EQ(queue.get_nowait(), 3);
    EXPECT_TRUE(readers[0].cancelled());
  });
}

TEST_P(GivenBackTest, AnItemThatWasTakenAtTheEndOfABudgetComesBackToo) {
  constexpr int kItems = 300;
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    for (int i = 0; i < kItems; ++i) queue.put_nowait(i);
    std::vector<int> got;
    auto reader = this->spawn([&]() -> Coro<void> {
      for (int i = 0; i < kItems; ++i) got.push_back(co_await queue.get());
    });
    co_await yield_now();
    while (got.empty()) co_await yield_now();
    reader.cancel();
    EXPECT_TRUE(co_await this->ends_cancelled(reader));
    EXPECT_LT(got.size(), static_cast<std::size_t>(kItems));
    const auto rest = this->drain(queue);
    got.insert(got.end(), rest.begin(), rest.end());
    std::vector<int> all(kItems);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(got, all);
  });
}

TEST_P(GivenBackTest, AfterAnImmediateShutdownWhatWasServedIsKept) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    auto readers = co_await this->readers(queue, 1);
    queue.put_nowait(1);
    queue.shutdown(true);
    readers[0].cancel();
    EXPECT_EQ(co_await readers[0], 1) << "there is nowhere to go";
    queue.task_done();
    co_await queue.join();
  });
}

TEST_P(GivenBackTest, AQueueMayEndBeforeWhoWasServedIsCancelled) {
  auto queue = std::make_unique<Queue<int>>();
  auto lock = std::make_unique<Lock>();
  this->run([&]() -> Coro<void> {
    auto readers = co_await this->readers(*queue, 2);
    co_await lock->acquire();
    auto holder = this->loop.create_task(this->acquire(*lock));
    co_await let_others_run();
    queue->put_nowait(1);
    lock->release();
    queue.reset();
    lock.reset();
    for (auto& reader : readers) reader.cancel();
    holder.cancel();
    EXPECT_EQ(co_await readers[0], 1);
    EXPECT_TRUE(co_await this->ends_cancelled(readers[1]));
    co_await holder;
  });
}

TEST_P(GivenBackTest, TheItemOfAGroupThatFailsStaysInTheQueue) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    bool failed = false;
    try {
      co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
        const auto fail = []() -> Coro<void> {
          throw std::runtime_error("one of them");
          co_return;
        };
        group.create_task(this->get(queue));
        co_await let_others_run();
        queue.put_nowait(7);
        group.create_task(fail(), {}, Start::eagerly);
        queue.put_nowait(8);
      });
    } catch (const ExceptionGroup&) {
      failed = true;
    }
    EXPECT_TRUE(failed);
  });
  // The getter may have run on before it was cancelled; then it has its item, and only then.
  const auto left = this->drain(queue);
  EXPECT_TRUE(left == (std::vector{7, 8}) || left == (std::vector{8}));
}

TEST_P(GivenBackTest, TheItemOfACancelledGatherStaysInTheQueue) {
  Queue<int> queue;
  this->run([&]() -> Coro<void> {
    auto both = this->spawn([&]() -> Coro<void> { co_await gather(this->get(queue), this->get(queue)); });
    co_await let_others_run();
    queue.put_nowait(1);
    both.cancel();
    // The gather's own task runs first and cancels its children, one of which has just been served: unless the order is
    // chance.
    EXPECT_TRUE(co_await this->ends_cancelled(both));
  });
  if (!shuffled()) EXPECT_LE(queue.qsize(), 1u);
}

// Idioms without an await after the one that gives: whatever is cancelled and when, nothing is lost or doubled.
TEST_P(GivenBackTest, TasksThatOnlyGetOrPutLoseAndRepeatNothing) {
  Random random(12);
  Queue<int> queue(2);
  std::vector<int> put, got;
  this->run([&]() -> Coro<void> {
    std::vector<Task<int>> readers;
    std::vector<std::pair<int, Task<void>>> writers;
    for (int i = 0; i < 4000; ++i) {
      switch (random.below(5)) {
        case 0: readers.push_back(this->loop.create_task(this->get(queue))); break;
        case 1: writers.emplace_back(i, this->loop.create_task(this->put(queue, i))); break;
        case 2:
          if (!readers.empty()) readers[random.below(readers.size())].cancel();
          break;
        case 3:
          if (!writers.empty()) writers[random.below(writers.size())].second.cancel();
          break;
        default: co_await yield_now();
      }
    }
    for (auto& reader : readers) reader.cancel();
    for (auto& [item, writer] : writers) writer.cancel();
    for (auto& reader : readers) {
      if (!co_await this->ends_cancelled(reader)) got.push_back(reader.result());
    }
    for (auto& [item, writer] : writers) {
      if (!co_await this->ends_cancelled(writer)) put.push_back(item);
    }
  });
  for (const int item : this->drain(queue)) got.push_back(item);
  std::ranges::sort(got);
  EXPECT_GT(put.size(), 100u);
  EXPECT_EQ(got, put);
}

// --- permits, locks and notifications

TEST_P(GivenBackTest, ThePermitOfATaskThatOnlyAcquiresGoesToTheNext) {
  Semaphore semaphore(0);
  this->run([&]() -> Coro<void> {
    auto first = this->loop.create_task(this->acquire(semaphore));
    co_await let_others_run();
    auto second = this->loop.create_task(this->acquire(semaphore));
    co_await let_others_run();
    semaphore.release();
    first.cancel();
    EXPECT_TRUE(co_await this->ends_cancelled(first));
    co_await second;
    EXPECT_TRUE(semaphore.locked());
    semaphore.release();
    EXPECT_EQ(semaphore.value(), 1u);
  });
}

TEST_P(GivenBackTest, ALockHandedToATaskThatIsCancelledIsFree) {
  Lock lock;
  this->run([&]() -> Coro<void> {
    co_await lock.acquire();
    auto waiter = this->loop.create_task(this->acquire(lock));
    co_await let_others_run();
    lock.release();
    waiter.cancel();
    EXPECT_FALSE(lock.locked()) << "at once";
    EXPECT_TRUE(co_await this->ends_cancelled(waiter));
    co_await lock.acquire();
    lock.release();
  });
}

TEST_P(GivenBackTest, PermitsOfTasksThatOnlyAcquireAreNeverLost) {
  constexpr std::size_t kPermits = 3;
  Random random(13);
  BoundedSemaphore semaphore(kPermits);
  this->run([&]() -> Coro<void> {
    std::vector<Task<void>> holders;
    for (int i = 0; i < 3000; ++i) {
      switch (random.below(4)) {
        case 0: holders.push_back(this->loop.create_task(this->acquire(semaphore))); break;
        case 1:
          if (!holders.empty()) holders[random.below(holders.size())].cancel();
          break;
        case 2: {
          const auto held = std::ranges::find_if(holders, [](auto& task) { return task.done() && !task.cancelled(); });
          if (held == holders.end()) break;
          semaphore.release();
          holders.erase(held);
          break;
        }
        default: co_await yield_now();
      }
    }
    for (auto& holder : holders) holder.cancel();
    for (auto& holder : holders) {
      if (!co_await this->ends_cancelled(holder)) semaphore.release();
    }
  });
  EXPECT_EQ(semaphore.value(), kPermits);
}

TEST_P(GivenBackTest, ANotificationOfATaskThatOnlyWaitsGoesToTheNext) {
  Condition condition;
  this->run([&]() -> Coro<void> {
    std::vector<int> woken;
    const auto wait = [&](int number) -> Coro<void> {
      const auto held = co_await condition.scoped();
      co_await condition.wait();
      woken.push_back(number);
    };
    auto first = this->loop.create_task(wait(1));
    co_await let_others_run();
    auto second = this->loop.create_task(wait(2));
    co_await let_others_run();
    // The first is notified, waits for the lock, is handed it, and is cancelled before it runs on.
    co_await condition.acquire();
    condition.notify();
    co_await let_others_run();
    condition.release();
    first.cancel();
    EXPECT_TRUE(co_await this->ends_cancelled(first));
    co_await second;
    EXPECT_EQ(woken, (std::vector{2}));
    EXPECT_FALSE(condition.locked());
  });
}

TEST_P(GivenBackTest, AFutureGivenToACancelledNextIsGivenAgain) {
  this->run([&]() -> Coro<void> {
    const auto give = [](int value) -> Coro<int> {
      co_await yield_now();
      co_return value;
    };
    std::vector<Coro<int>> coros;
    coros.push_back(give(1));
    auto completed = as_completed(std::move(coros));
    const auto take = [&]() -> Coro<int> { co_return (co_await completed.next()).result(); };
    // Cancelled at every step of its way.
    for (int steps = 0; completed.remaining() > 0 && steps < 20; ++steps) {
      auto taker = this->loop.create_task(take());
      for (int i = 0; i < steps; ++i) co_await yield_now();
      taker.cancel();
      if (!co_await this->ends_cancelled(taker)) EXPECT_EQ(taker.result(), 1);
    }
    EXPECT_EQ(completed.remaining(), 0u);
  });
}

// --- channels

TEST_P(GivenBackTest, TheItemOfACancelledReaderOfAChannelIsTheNextOnes) {
  Channel<int> channel;
  this->run([&]() -> Coro<void> {
    auto readers = co_await this->readers(channel, 3);
    for (int i = 1; i <= 4; ++i) channel.put_nowait(i);
    readers[2].cancel();
    readers[0].cancel();
    EXPECT_EQ(channel.qsize(), 3u);
    EXPECT_EQ(co_await readers[1], 2);
    for (const std::size_t i : {0, 2}) EXPECT_TRUE(co_await this->ends_cancelled(readers[i]));
  });
  EXPECT_EQ(this->drain(channel), (std::vector{1, 3, 4}));
}

TEST_P(GivenBackTest, AWriterOfAChannelThatEndsCancelledHasNotPut) {
  Channel<int> channel(1);
  this->run([&]() -> Coro<void> {
    channel.put_nowait(1);
    auto let_in = this->loop.create_task(this->put(channel, 2));
    auto waiting = this->loop.create_task(this->put(channel, 3));
    co_await let_others_run();
    // Which of the two was first is chance where the order is shuffled.
    EXPECT_EQ(channel.get_nowait(), 1);
    let_in.cancel();
    waiting.cancel();
    const bool first = co_await this->ends_cancelled(let_in), second = co_await this->ends_cancelled(waiting);
    EXPECT_NE(first, second);
    EXPECT_EQ(this->drain(channel), (std::vector{first ? 3 : 2}));
  });
}

TEST_P(GivenBackTest, AnItemOfAChannelTakenAtTheEndOfABudgetComesBackToo) {
  constexpr int kItems = 300;
  Channel<int> channel;
  this->run([&]() -> Coro<void> {
    for (int i = 0; i < kItems; ++i) channel.put_nowait(i);
    int got = 0;
    auto reader = this->spawn([&]() -> Coro<void> {
      for (int i = 0; i < kItems; ++i) EXPECT_EQ(co_await channel.get(), got++);
    });
    while (got == 0) co_await yield_now();
    reader.cancel();
    EXPECT_TRUE(co_await this->ends_cancelled(reader));
    EXPECT_LT(got, kItems);
    const auto rest = this->drain(channel);
    EXPECT_EQ(rest.size(), static_cast<std::size_t>(kItems - got));
    EXPECT_EQ(rest.front(), got);
  });
}

}  // namespace
}  // namespace argiope
