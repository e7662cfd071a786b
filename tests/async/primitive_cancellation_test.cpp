// Every primitive with one of its users cancelled at every point: before it starts, at each of its awaits, between
// being served and running on, and after its end. What then holds is what the others can see: no item is lost or
// doubled, no wake-up is lost (the virtual loop reports a deadlock), nothing stays locked.
#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "argiope/async/queue.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/threads.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

// Lets the others run until it is true; what takes longer than this will never come.
template <class Condition>
Coro<void> until(Condition condition) {
  for (int i = 0; i < 1000 && !condition(); ++i) co_await yield_now();
  EXPECT_TRUE(condition());
}

// Runs `Scenario`'s victim and others on a loop of their own, once for each number of steps after which the victim is
// cancelled, with whoever cancels it running before it and after it in each round.
template <class Scenario>
void sweep() {
  constexpr int kSteps = 48;
  for (const bool canceller_first : {true, false}) {
    for (int steps = 0; steps < kSteps; ++steps) {
      SCOPED_TRACE(testing::Message() << "cancelled after " << steps << " steps, canceller first: " << canceller_first);
      Scenario scenario;
      VirtualBackend backend;
      EventLoop loop(backend);
      shuffle_if_asked(loop);
      Task<void> victim;
      const auto cancel = [&]() -> Coro<void> {
        for (int i = 0; i < steps; ++i) co_await yield_now();
        victim.cancel();
      };
      const auto everything = [&]() -> Coro<void> {
        Task<void> canceller;
        std::vector<Task<void>> others;
        for (int i = 0; i < Scenario::kBefore; ++i) others.push_back(loop.create_task(scenario.other(i)));
        if (canceller_first) canceller = loop.create_task(cancel());
        victim = loop.create_task(scenario.victim());
        if (!canceller_first) canceller = loop.create_task(cancel());
        for (int i = Scenario::kBefore; i < Scenario::kOthers; ++i)
          others.push_back(loop.create_task(scenario.other(i)));
        co_await canceller;
        co_await until([&] { return victim.done(); });
        co_await scenario.finish();
        for (auto& other : others) co_await other;
      };
      ASSERT_NO_THROW(loop.run_until_complete(everything()));
      scenario.check();
    }
  }
}

// Items in and out of a queue. A producer notes what it has put only when put() says so.
template <class AnyQueue>
struct Traffic {
  static constexpr int kItems = 6;
  AnyQueue queue{2};
  std::multiset<int> put, got;

  Coro<void> produce(int from) {
    for (int i = from; i < from + kItems; ++i) {
      co_await queue.put(i);
      put.insert(i);
    }
  }
  Coro<void> consume() {
    try {
      for (;;) {
        got.insert(co_await queue.get());
        co_await yield_now();
      }
    } catch (const QueueShutDown&) {
    }
  }
  // The other producers have put their last, and it has been taken.
  Coro<void> finish(std::size_t least) {
    co_await until([&] { return put.size() >= least && queue.empty(); });
    for (int i = 0; i < 8; ++i) co_await yield_now();
    queue.shutdown();
  }
  void check() const { EXPECT_EQ(put, got); }
};

template <class AnyQueue>
struct CancelledConsumer : Traffic<AnyQueue> {
  static constexpr int kBefore = 1, kOthers = 3;
  Coro<void> victim() { return this->consume(); }
  Coro<void> other(int i) { return i == 0 ? this->produce(0) : i == 1 ? this->consume() : this->produce(100); }
  Coro<void> finish() { return Traffic<AnyQueue>::finish(2 * this->kItems); }
};
template <class AnyQueue>
struct CancelledProducer : Traffic<AnyQueue> {
  static constexpr int kBefore = 1, kOthers = 3;
  Coro<void> victim() { return this->produce(0); }
  Coro<void> other(int i) { return i == 1 ? this->consume() : this->produce(100 * (i + 1)); }
  Coro<void> finish() { return Traffic<AnyQueue>::finish(2 * this->kItems); }
};

TEST(CancellationSweep, OfAConsumerOfAQueue) { sweep<CancelledConsumer<Queue<int>>>(); }
TEST(CancellationSweep, OfAProducerOfAQueue) { sweep<CancelledProducer<Queue<int>>>(); }
TEST(CancellationSweep, OfAConsumerOfAPriorityQueue) { sweep<CancelledConsumer<PriorityQueue<int>>>(); }
TEST(CancellationSweep, OfAProducerOfALifoQueue) { sweep<CancelledProducer<LifoQueue<int>>>(); }
TEST(CancellationSweep, OfAConsumerOfAChannel) { sweep<CancelledConsumer<Channel<int>>>(); }
TEST(CancellationSweep, OfAProducerOfAChannel) { sweep<CancelledProducer<Channel<int>>>(); }

struct CancelledJoin {
  static constexpr int kBefore = 1, kOthers = 3;
  Queue<int> queue;
  int joined = 0;

  CancelledJoin() {
    for (int i = 0; i < 4; ++i) queue.put_nowait(i);
  }
  Coro<void> victim() { co_await queue.join(); }
  Coro<void> other(int i) {
    if (i < 2) {
      co_await queue.join();
      ++joined;
      co_return;
    }
    while (!queue.empty()) {
      co_await queue.get();
      co_await yield_now();
      queue.task_done();
    }
  }
  Coro<void> finish() { co_return; }
  void check() const { EXPECT_EQ(joined, 2); }
};
TEST(CancellationSweep, OfWhoJoinsAQueue) { sweep<CancelledJoin>(); }

// Everybody goes in and out three times, one at a time or two at a time.
template <class AnyLock, int kAtOnce>
struct CancelledHolder {
  static constexpr int kBefore = 2, kOthers = 4;
  AnyLock lock = make();
  int inside = 0, most = 0, rounds = 0;

  static AnyLock make() {
    if constexpr (kAtOnce == 1) {
      return AnyLock();
    } else {
      return AnyLock(kAtOnce);
    }
  }
  Coro<void> go_in_and_out(int& count) {
    for (int i = 0; i < 3; ++i) {
      const auto held = co_await lock.scoped();
      struct Inside {
        int& number;
        explicit Inside(int& n) : number(n) { ++number; }
        ~Inside() { --number; }
      } const here(inside);
      most = std::max(most, inside);
      co_await yield_now();
      ++count;
    }
  }
  Coro<void> victim() {
    int mine = 0;
    co_await go_in_and_out(mine);
  }
  Coro<void> other(int) { return go_in_and_out(rounds); }
  Coro<void> finish() { co_return; }
  void check() const {
    EXPECT_EQ(rounds, 12);
    EXPECT_LE(most, kAtOnce);
    EXPECT_EQ(inside, 0);
    EXPECT_FALSE(lock.locked());
  }
};
TEST(CancellationSweep, OfWhoHoldsOrWantsALock) { sweep<CancelledHolder<Lock, 1>>(); }
TEST(CancellationSweep, OfWhoHoldsOrWantsAPermit) { sweep<CancelledHolder<Semaphore, 2>>(); }
TEST(CancellationSweep, OfWhoHoldsOrWantsABoundedPermit) { sweep<CancelledHolder<BoundedSemaphore, 2>>(); }

// A buffer of one item under a condition; each item is told of to one who waits.
struct CancelledWaiter {
  static constexpr int kBefore = 1, kOthers = 4;
  static constexpr int kItems = 8;
  Condition condition;
  int items = 0, taken = 0;
  bool closed = false;

  Coro<void> take() {
    const auto held = co_await condition.scoped();
    for (;;) {
      co_await condition.wait_for([&] {
        EXPECT_TRUE(condition.locked());
        return items > 0 || closed;
      });
      if (items == 0) co_return;
      --items;
      ++taken;
    }
  }
  Coro<void> give() {
    for (int i = 0; i < kItems; ++i) {
      co_await put_one();
      co_await until([&] { return items == 0; });
    }
  }
  Coro<void> put_one() {
    const auto held = co_await condition.scoped();
    ++items;
    condition.notify();
  }
  Coro<void> victim() { return take(); }
  Coro<void> other(int i) { return i == 2 ? give() : take(); }
  Coro<void> finish() {
    // Of each item one was told, once: it is taken, or the notification was lost.
    co_await until([&] { return taken == kItems; });
    const auto held = co_await condition.scoped();
    closed = true;
    condition.notify_all();
  }
  void check() const { EXPECT_FALSE(condition.locked()); }
};
TEST(CancellationSweep, OfWhoWaitsForACondition) { sweep<CancelledWaiter>(); }

struct CancelledListener {
  static constexpr int kBefore = 1, kOthers = 3;
  Event event;
  int heard = 0;

  Coro<void> listen() {
    for (int i = 0; i < 3; ++i) {
      co_await event.wait();
      ++heard;
      co_await yield_now();
      co_await yield_now();
    }
  }
  Coro<void> victim() { return listen(); }
  Coro<void> other(int i) {
    if (i < 2) {
      co_await listen();
      co_return;
    }
    for (int round = 0; round < 12; ++round) {
      event.set();
      event.clear();
      co_await yield_now();
    }
    event.set();
  }
  Coro<void> finish() { co_return; }
  void check() const { EXPECT_GE(heard, 6); }
};
TEST(CancellationSweep, OfWhoWaitsForAnEvent) { sweep<CancelledListener>(); }

// Three come twice; when the victim is missing, somebody takes its place.
struct CancelledParty {
  static constexpr int kBefore = 1, kOthers = 2;
  Barrier barrier{3};
  int victims_rounds = 0, rounds = 0;

  Coro<void> come(int& count) {
    for (int i = 0; i < 2; ++i) {
      co_await barrier.wait();
      ++count;
    }
  }
  Coro<void> victim() { return come(victims_rounds); }
  Coro<void> other(int) { return come(rounds); }
  Coro<void> finish() {
    // A victim that was let through and cancelled before it knew has been there all the same.
    for (int missing = 0; missing < 2 && rounds < 4; ++missing) {
      co_await until([&] { return rounds == 4 || barrier.n_waiting() == 2; });
      if (rounds < 4) co_await barrier.wait();
    }
  }
  void check() const {
    EXPECT_EQ(rounds, 4);
    EXPECT_EQ(barrier.n_waiting(), 0u);
    EXPECT_FALSE(barrier.broken());
  }
};
TEST(CancellationSweep, OfWhoWaitsAtABarrier) { sweep<CancelledParty>(); }

}  // namespace
}  // namespace argiope
