#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/threads.hpp"
#include "argiope/base/random.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

// --- on one loop it is a queue

class ChannelTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, ChannelTest, kAllWorlds, world_name);

TEST_P(ChannelTest, GivesItemsInTheOrderPut) {
  Channel<int> channel;
  this->run([&]() -> Coro<void> {
    for (int i = 0; i < 300; ++i) co_await channel.put(i);
    EXPECT_EQ(channel.qsize(), 300u);
    EXPECT_FALSE(channel.full());
    for (int i = 0; i < 300; ++i) EXPECT_EQ(co_await channel.get(), i);
    EXPECT_TRUE(channel.empty());
  });
}

TEST_P(ChannelTest, TheNowaitFormsThrowInsteadOfWaiting) {
  Channel<int> channel(1);
  EXPECT_EQ(channel.maxsize(), 1u);
  EXPECT_EQ(Channel<int>(-3).maxsize(), 0u);
  EXPECT_THROW(static_cast<void>(channel.get_nowait()), QueueEmpty);
  channel.put_nowait(1);
  EXPECT_TRUE(channel.full());
  EXPECT_THROW(channel.put_nowait(2), QueueFull);
  EXPECT_EQ(channel.get_nowait(), 1);
}

TEST_P(ChannelTest, PassesItemsThatCanOnlyBeMovedThroughOneSlot) {
  Channel<std::unique_ptr<int>> channel(1);
  int sum = 0;
  this->run([&]() -> Coro<void> {
    auto consumer = this->spawn([&]() -> Coro<void> {
      for (int i = 0; i < 200; ++i) sum += *co_await channel.get();
    });
    for (int i = 0; i < 200; ++i) co_await channel.put(std::make_unique<int>(i));
    co_await consumer;
  });
  EXPECT_EQ(sum, 199 * 100);
}

TEST_P(ChannelTest, WaitersAreServedFirstComeFirstServed) {
  Channel<int> channel(1);
  std::vector<std::pair<int, int>> got;
  this->run([&]() -> Coro<void> {
    const auto get = [&](int number) -> Coro<void> {
      const int item = co_await channel.get();
      got.emplace_back(number, item);
    };
    const auto put = [&](int item) -> Coro<void> { co_await channel.put(item); };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 3; ++i) {
      tasks.push_back(this->loop.create_task(get(i)));
      co_await let_others_run();
    }
    for (int i = 0; i < 3; ++i) channel.put_nowait(10 + i);
    EXPECT_THROW(static_cast<void>(channel.get_nowait()), QueueEmpty) << "handed over, not up for grabs";
    for (int i = 0; i < 4; ++i) {
      tasks.push_back(this->loop.create_task(put(20 + i)));
      co_await let_others_run();
    }
    for (int i = 0; i < 4; ++i) EXPECT_EQ(channel.get_nowait(), 20 + i);
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(sorted_if_shuffled(got), (std::vector<std::pair<int, int>>{{0, 10}, {1, 11}, {2, 12}}));
}

TEST_P(ChannelTest, ABusyChannelCannotStarveOthers) {
  Channel<int> channel;
  bool stop = false;
  this->run([&]() -> Coro<void> {
    this->loop.call_soon([&] { stop = true; });
    while (!stop) {
      co_await channel.put(1);
      co_await channel.get();
    }
  });
}

TEST_P(ChannelTest, WorksWhileTheLoopIsNotRunning) {
  Channel<int> channel(1);
  auto getter = this->spawn([&]() -> Coro<int> { co_return co_await channel.get(); });
  this->settle();
  channel.put_nowait(5);
  this->settle();
  EXPECT_EQ(getter.result(), 5);
}

TEST_P(ChannelTest, ACancelledWaitTakesAndPutsNothing) {
  Channel<int> empty, full(1);
  this->run([&]() -> Coro<void> {
    full.put_nowait(1);
    auto getter = this->spawn([&]() -> Coro<void> { co_await empty.get(); });
    auto putter = this->spawn([&]() -> Coro<void> { co_await full.put(2); });
    co_await let_others_run();
    getter.cancel();
    putter.cancel();
    putter.uncancel();
    co_await let_others_run();
    EXPECT_TRUE(getter.cancelled());
    EXPECT_TRUE(putter.cancelled());
    empty.put_nowait(7);
    EXPECT_EQ(empty.get_nowait(), 7);
    EXPECT_EQ(full.get_nowait(), 1);
    EXPECT_TRUE(full.empty());
  });
}

TEST_P(ChannelTest, AGetterCancelledAfterItWasServedThrowsAndLeavesItsItem) {
  Channel<int> channel;
  int got = 0;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> { got = co_await channel.get(); });
    co_await let_others_run();
    channel.put_nowait(8);
    task.cancel();
    co_await let_others_run();
    EXPECT_TRUE(task.cancelled());
  });
  EXPECT_EQ(got, 0);
  EXPECT_EQ(channel.get_nowait(), 8);
}

TEST_P(ChannelTest, AfterShutdownTheRestCanBeGot) {
  Channel<int> channel(1);
  this->run([&]() -> Coro<void> {
    channel.put_nowait(1);
    auto putter = this->spawn([&]() -> Coro<void> { co_await channel.put(2); });
    co_await let_others_run();
    channel.close();
    co_await let_others_run();
    EXPECT_THROW(putter.result(), QueueShutDown);
    EXPECT_THROW(channel.put_nowait(3), QueueShutDown);
    EXPECT_EQ(co_await channel.get(), 1);
    EXPECT_THROW(static_cast<void>(channel.get_nowait()), QueueShutDown);
    bool refused = false;
    try {
      co_await channel.get();
    } catch (const QueueShutDown&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    channel.shutdown();
  });
}

TEST_P(ChannelTest, AnImmediateShutdownDropsItems) {
  Channel<std::shared_ptr<int>> channel;
  const auto witness = std::make_shared<int>();
  for (int i = 0; i < 3; ++i) channel.put_nowait(witness);
  channel.shutdown(true);
  EXPECT_EQ(witness.use_count(), 1);
  EXPECT_THROW(static_cast<void>(channel.get_nowait()), QueueShutDown);
}

// --- between loops, which one thread drives in turn

// A virtual loop that counts how often it is woken.
class CountingBackend final : public IoBackend {
 public:
  const Clock& clock() const noexcept override { return virtual_.clock(); }
  bool runs_in_real_time() const noexcept override { return false; }
  void poll() override {}
  void wait(TimePoint until, bool outside_work) override { virtual_.wait(until, outside_work); }
  std::unique_ptr<Watch> watch(int fd) override { return virtual_.watch(fd); }
  void wake() noexcept override {
    ++wakes;
    virtual_.wake();
  }
  int wakes = 0;

 private:
  VirtualBackend virtual_;
};

class BetweenLoops : public ::testing::Test {
 protected:
  BetweenLoops() {
    shuffle_if_asked(first_);
    shuffle_if_asked(second_);
  }
  CountingBackend first_backend_, second_backend_;
  EventLoop first_{first_backend_}, second_{second_backend_};

  static void settle(EventLoop& loop) {
    for (int i = 0; i < 16; ++i) loop.run_once(TimePoint::min());
  }
  static Coro<void> get_into(Channel<int>& channel, std::vector<int>& got) { got.push_back(co_await channel.get()); }
  static Coro<void> put(Channel<int>& channel, int item) { co_await channel.put(item); }
};

TEST_F(BetweenLoops, APutOnOneLoopWakesAGetterOfTheOther) {
  Channel<int> channel;
  std::vector<int> got;
  auto getter = first_.create_task(get_into(channel, got));
  settle(first_);
  second_.run_until_complete(put(channel, 3));
  EXPECT_FALSE(getter.done()) << "its own loop has not run";
  settle(first_);
  EXPECT_TRUE(getter.done());
  EXPECT_EQ(got, (std::vector{3}));
}

TEST_F(BetweenLoops, AGetOnOneLoopWakesAPutterOfTheOther) {
  Channel<int> channel(1);
  channel.put_nowait(1);
  auto putter = first_.create_task(put(channel, 2));
  settle(first_);
  std::vector<int> got;
  second_.run_until_complete(get_into(channel, got));
  settle(first_);
  EXPECT_TRUE(putter.done());
  second_.run_until_complete(get_into(channel, got));
  EXPECT_EQ(got, (std::vector{1, 2}));
}

TEST_F(BetweenLoops, ABurstCostsOneWake) {
  Channel<int> channel;
  std::vector<int> got;
  std::vector<Task<void>> getters;
  for (int i = 0; i < 100; ++i) getters.push_back(first_.create_task(get_into(channel, got)));
  settle(first_);
  first_backend_.wakes = 0;
  for (int i = 0; i < 150; ++i) second_.run_until_complete(put(channel, i));
  EXPECT_EQ(first_backend_.wakes, 1);
  settle(first_);
  EXPECT_EQ(got.size(), 100u);
  EXPECT_EQ(channel.qsize(), 50u);
  got = sorted_if_shuffled(got);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i);
}

TEST_F(BetweenLoops, WaitersOfAllLoopsTogetherAreServedInTheOrderTheyCame) {
  Channel<int> channel;
  std::vector<int> got_first, got_second;
  for (int i = 0; i < 2; ++i) {
    first_.create_task(get_into(channel, got_first));
    settle(first_);
    second_.create_task(get_into(channel, got_second));
    settle(second_);
  }
  for (int i = 0; i < 4; ++i) channel.put_nowait(i);
  settle(second_);
  settle(first_);
  EXPECT_EQ(sorted_if_shuffled(got_first), (std::vector{0, 2}));
  EXPECT_EQ(sorted_if_shuffled(got_second), (std::vector{1, 3}));
}

TEST_F(BetweenLoops, AGetterServedButNotYetToldLeavesItsItemWhenCancelled) {
  Channel<int> channel;
  std::vector<int> got;
  auto getter = first_.create_task(get_into(channel, got));
  settle(first_);
  second_.run_until_complete(put(channel, 3));
  EXPECT_TRUE(channel.empty());
  getter.cancel();
  EXPECT_EQ(channel.qsize(), 1u);
  settle(first_);
  EXPECT_TRUE(getter.cancelled());
  EXPECT_EQ(got, (std::vector<int>{}));
  EXPECT_EQ(channel.get_nowait(), 3);
}

TEST_F(BetweenLoops, WhatACancelledGetterLeavesGoesToOneOfAnotherLoop) {
  Channel<int> channel;
  std::vector<int> first_got, second_got;
  auto first = first_.create_task(get_into(channel, first_got));
  settle(first_);
  auto second = second_.create_task(get_into(channel, second_got));
  settle(second_);
  channel.put_nowait(3);
  first.cancel();
  settle(first_);
  settle(second_);
  EXPECT_TRUE(first.cancelled());
  EXPECT_EQ(second_got, (std::vector{3}));
}

TEST_F(BetweenLoops, APutterLetInButNotYetToldHasPutWhenCancelled) {
  Channel<int> channel(1);
  channel.put_nowait(1);
  auto putter = first_.create_task(put(channel, 2));
  settle(first_);
  EXPECT_EQ(channel.get_nowait(), 1);
  putter.cancel();
  settle(first_);
  EXPECT_TRUE(putter.done());
  EXPECT_FALSE(putter.cancelled()) << "it has no await left";
  EXPECT_EQ(channel.get_nowait(), 2);
}

TEST_F(BetweenLoops, ShutdownReachesWaitersOfAllLoops) {
  Channel<int> empty, full(1);
  std::vector<int> got;
  full.put_nowait(1);
  auto getter = first_.create_task(get_into(empty, got));
  auto putter = second_.create_task(put(full, 2));
  settle(first_);
  settle(second_);
  empty.shutdown();
  full.shutdown();
  settle(first_);
  settle(second_);
  EXPECT_THROW(getter.result(), QueueShutDown);
  EXPECT_THROW(putter.result(), QueueShutDown);
}

TEST_F(BetweenLoops, ALoopThatEndsLeavesTheChannelToTheOthers) {
  Channel<int> channel;
  std::vector<int> got;
  {
    EventLoop passing(first_backend_);
    passing.create_task(get_into(channel, got));
    passing.create_task(get_into(channel, got));
    settle(passing);
    channel.put_nowait(1);  // for the first of them; its wake-up is dropped with the loop
  }
  // Wherever the next loops come to live, they are woken.
  for (int i = 0; i < 3; ++i) {
    auto passing = std::make_unique<EventLoop>(first_backend_);
    passing->create_task(get_into(channel, got));
    settle(*passing);
    channel.put_nowait(10 + i);
    if (i == 1) continue;
    settle(*passing);
  }
  EXPECT_EQ(got, (std::vector{10, 12}));
  auto getter = second_.create_task(get_into(channel, got));
  settle(second_);
  channel.put_nowait(20);
  settle(second_);
  EXPECT_TRUE(getter.done());
}

TEST_F(BetweenLoops, AChannelMayEndBeforeAWakeUpArrives) {
  std::vector<int> got;
  {
    Channel<int> channel;
    auto getter = first_.create_task(get_into(channel, got));
    settle(first_);
    channel.put_nowait(1);
    for (int i = 0; i < 3 && !getter.done(); ++i) first_.run_once(TimePoint::min());
  }
  {
    Channel<int> channel;
    auto getter = first_.create_task(get_into(channel, got));
    settle(first_);
    second_.run_until_complete(put(channel, 2));
    first_.cancel_all_tasks();
    settle(first_);
    EXPECT_TRUE(getter.done());
    channel.put_nowait(3);
  }
  settle(first_);
  {
    Channel<int> channel;
    auto getter = first_.create_task(get_into(channel, got));
    settle(first_);
    second_.run_until_complete(put(channel, 4));
  }
  first_.cancel_all_tasks();
  settle(first_);
  EXPECT_EQ(got, (std::vector{1}));
}

TEST_F(BetweenLoops, CancellationsAtRandomLoseAndRepeatNothing) {
  Random random(5);
  Channel<int> channel(3);
  constexpr int kItems = 2000;
  std::vector<int> got(kItems);
  int put = 0, taken = 0;
  const auto produce = [&]() -> Coro<void> {
    while (put < kItems) {
      const int item = put++;
      for (bool done = false; !done;) {
        try {
          co_await channel.put(item);
          done = true;
        } catch (const CancelledError&) {
        }
      }
    }
  };
  const auto consume = [&]() -> Coro<void> {
    for (;;) {
      try {
        const int item = co_await channel.get();
        ++got[static_cast<std::size_t>(item)];
        ++taken;
      } catch (const CancelledError&) {
      } catch (const QueueShutDown&) {
        co_return;
      }
    }
  };
  std::vector<Task<void>> tasks;
  for (EventLoop* loop : {&first_, &second_}) {
    for (int i = 0; i < 3; ++i) {
      tasks.push_back(loop->create_task(produce()));
      tasks.push_back(loop->create_task(consume()));
    }
  }
  settle(first_);
  settle(second_);
  while (taken < kItems) {
    EventLoop& loop = random.below(2) == 0 ? first_ : second_;
    loop.run_once(TimePoint::min());
    if (random.below(2) == 0) tasks[random.below(tasks.size())].cancel();
  }
  channel.shutdown();
  settle(first_);
  settle(second_);
  EXPECT_EQ(first_.task_count() + second_.task_count(), 0u);
  for (const int count : got) ASSERT_EQ(count, 1);
}

// --- between threads

// A thread with a loop of its own that runs what it is given.
template <class Body>
std::thread in_thread(Body body) {
  return std::thread([body = std::move(body)]() mutable {
    const SystemClock clock;
    AsioBackend backend(clock);
    EventLoop loop(backend);
    shuffle_if_asked(loop);
    loop.run_until_complete(body());
  });
}

TEST(ChannelBetweenThreads, EveryItemArrivesOnceAndEachProducersInOrder) {
  constexpr int kProducers = 2, kConsumers = 2, kItems = 20000;
  Channel<std::pair<int, int>> channel(64);
  std::vector<std::thread> producers, consumers;
  std::atomic<long> sum = 0, count = 0;
  for (int c = 0; c < kConsumers; ++c) {
    consumers.push_back(in_thread([&]() -> Coro<void> {
      std::vector<int> last(kProducers, -1);
      for (;;) {
        std::pair<int, int> item;
        try {
          item = co_await channel.get();
        } catch (const QueueShutDown&) {
          co_return;
        }
        EXPECT_LT(last[static_cast<std::size_t>(item.first)], item.second);
        last[static_cast<std::size_t>(item.first)] = item.second;
        sum += item.second;
        ++count;
      }
    }));
  }
  for (int p = 0; p < kProducers; ++p) {
    producers.push_back(in_thread([&, p]() -> Coro<void> {
      for (int i = 0; i < kItems; ++i) co_await channel.put({p, i});
    }));
  }
  for (auto& thread : producers) thread.join();
  channel.close();
  for (auto& thread : consumers) thread.join();
  EXPECT_EQ(count.load(), static_cast<long>(kProducers) * kItems);
  EXPECT_EQ(sum.load(), static_cast<long>(kProducers) * kItems * (kItems - 1) / 2);
}

TEST(ChannelBetweenThreads, APlainThreadPutsWithoutALoop) {
  Channel<int> channel;
  std::atomic<long> sum = 0;
  std::thread consumer = in_thread([&]() -> Coro<void> {
    for (int i = 0; i < 1000; ++i) sum += co_await channel.get();
  });
  for (int i = 0; i < 1000; ++i) channel.put_nowait(i);
  consumer.join();
  EXPECT_EQ(sum.load(), 499500);
}

TEST(ChannelBetweenThreads, CancellationsAtRandomLoseAndRepeatNothing) {
  constexpr int kItems = 4000;
  Channel<int> channel(4);
  std::vector<std::atomic<int>> got(kItems);
  std::atomic<int> next = 0, taken = 0;
  // On each of two threads: two that put, two that get, and one that cancels them.
  const auto shard = [&](std::uint64_t seed) {
    return [&, seed]() -> Coro<void> {
      EventLoop& loop = EventLoop::current();
      const auto produce = [&]() -> Coro<void> {
        for (int item = next++; item < kItems; item = next++) {
          for (bool done = false; !done;) {
            try {
              co_await channel.put(item);
              done = true;
            } catch (const CancelledError&) {
            }
          }
        }
      };
      const auto consume = [&]() -> Coro<void> {
        for (;;) {
          try {
            const int item = co_await channel.get();
            ++got[static_cast<std::size_t>(item)];
            if (++taken == kItems) channel.close();
          } catch (const CancelledError&) {
          } catch (const QueueShutDown&) {
            co_return;
          }
        }
      };
      std::vector<Task<void>> tasks;
      for (int i = 0; i < 2; ++i) {
        tasks.push_back(loop.create_task(produce()));
        tasks.push_back(loop.create_task(consume()));
      }
      co_await yield_now();
      Random random(seed);
      while (taken < kItems) {
        tasks[random.below(tasks.size())].cancel();
        co_await sleep(10us);
      }
      for (auto& task : tasks) {
        while (!task.done()) co_await yield_now();
      }
    };
  };
  std::thread first = in_thread(shard(1)), second = in_thread(shard(2));
  first.join();
  second.join();
  for (auto& count : got) ASSERT_EQ(count.load(), 1);
}

}  // namespace
}  // namespace argiope
