#include "argiope/async/sync.hpp"

#include <algorithm>
#include <stdexcept>

#include "argiope/async/sleep.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

template <class World>
using SyncTest = LoopTest<World>;
TYPED_TEST_SUITE(SyncTest, AllWorlds, WorldNames);

// --- Event

TYPED_TEST(SyncTest, AnEventWakesEverybodyInTheOrderTheyCame) {
  Event event;
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    const auto wait = [&](int number) -> Coro<void> {
      co_await event.wait();
      order.push_back(number);
    };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 5; ++i) tasks.push_back(this->loop.create_task(wait(i)));
    co_await yield_now();
    EXPECT_TRUE(order.empty());
    event.set();
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
  EXPECT_TRUE(event.is_set());
}

TYPED_TEST(SyncTest, AnEventThatIsSetDoesNotMakeWait) {
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

TYPED_TEST(SyncTest, AnEventSetAndClearedAtOnceStillWakesThoseWhoWaited) {
  Event event;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> { co_await event.wait(); });
    co_await yield_now();
    event.set();
    event.clear();
    co_await task;
  });
}

TYPED_TEST(SyncTest, AnEventCanBeSetWhileTheLoopIsNotRunning) {
  Event event;
  auto task = this->spawn([&]() -> Coro<void> { co_await event.wait(); });
  this->settle();
  event.set();
  this->settle();
  EXPECT_TRUE(task.done());
}

TYPED_TEST(SyncTest, AWaiterThatIsCancelledLeavesTheEvent) {
  Event event;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> { co_await event.wait(); });
    co_await yield_now();
    task.cancel();
    co_await yield_now();
    EXPECT_TRUE(task.cancelled());
    event.set();
  });
}

TYPED_TEST(SyncTest, AnEventDestroyedUnderAWaiterLeavesItToBeCancelled) {
  auto event = std::make_unique<Event>();
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> { co_await event->wait(); });
    co_await yield_now();
    event.reset();
    task.cancel();
    co_await yield_now();
    EXPECT_TRUE(task.cancelled());
  });
}

// --- Semaphore

TYPED_TEST(SyncTest, ASemaphoreLetsInAsManyAsItHasPermits) {
  Semaphore semaphore(3);
  int inside = 0, most = 0;
  this->run([&]() -> Coro<void> {
    const auto enter = [&]() -> Coro<void> {
      const auto permit = co_await semaphore.scoped();
      most = std::max(most, ++inside);
      co_await yield_now();
      --inside;
    };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 20; ++i) tasks.push_back(this->loop.create_task(enter()));
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(most, 3);
  EXPECT_FALSE(semaphore.locked());
}

TYPED_TEST(SyncTest, ASemaphoreServesFirstComeFirstServed) {
  Semaphore semaphore(0);
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    const auto enter = [&](int number) -> Coro<void> {
      co_await semaphore.acquire();
      order.push_back(number);
    };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 4; ++i) tasks.push_back(this->loop.create_task(enter(i)));
    co_await yield_now();
    semaphore.release();
    // A permit that was handed over cannot be snatched by whoever comes in between.
    EXPECT_TRUE(semaphore.locked());
    tasks.push_back(this->loop.create_task(enter(4)));
    co_await yield_now();
    for (int i = 0; i < 4; ++i) semaphore.release();
    for (auto& task : tasks) co_await task;
  });
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
}

TYPED_TEST(SyncTest, ACancelledAcquireTakesNoPermit) {
  Semaphore semaphore(1);
  this->run([&]() -> Coro<void> {
    co_await semaphore.acquire();
    auto task = this->spawn([&]() -> Coro<void> { co_await semaphore.acquire(); });
    co_await yield_now();
    task.cancel();
    semaphore.release();
    co_await yield_now();
    EXPECT_TRUE(task.cancelled());
    EXPECT_FALSE(semaphore.locked());
  });
}

TYPED_TEST(SyncTest, APermitGrantedBeforeTheCancellationIsKeptAndTheNextAwaitThrows) {
  Semaphore semaphore(0);
  bool acquired = false, thrown = false;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> {
      const auto permit = co_await semaphore.scoped();
      acquired = true;
      try {
        co_await yield_now();
      } catch (const CancelledError&) {
        thrown = true;
        throw;
      }
    });
    co_await yield_now();
    semaphore.release();
    task.cancel();
    co_await yield_now();
    co_await yield_now();
    EXPECT_TRUE(task.cancelled());
  });
  EXPECT_TRUE(acquired && thrown);
  EXPECT_FALSE(semaphore.locked()) << "the permit came back";
}

TYPED_TEST(SyncTest, APermitMayBeReleasedWhileTheLoopIsNotRunning) {
  Semaphore semaphore(0);
  auto task = this->spawn([&]() -> Coro<void> { co_await semaphore.acquire(); });
  this->settle();
  semaphore.release();
  this->settle();
  EXPECT_TRUE(task.done());
}

TYPED_TEST(SyncTest, FreePermitsAreTakenWithoutWaiting) {
  Semaphore semaphore(1000);
  this->run([&]() -> Coro<void> {
    for (int i = 0; i < 1000; ++i) co_await semaphore.acquire();
  });
  EXPECT_TRUE(semaphore.locked());
}

// --- Lock

TYPED_TEST(SyncTest, ALockKeepsTasksApart) {
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

TYPED_TEST(SyncTest, ReleasingAFreeLockIsAnError) {
  Lock lock;
  EXPECT_THROW(lock.release(), std::logic_error);
  this->run([&]() -> Coro<void> {
    co_await lock.acquire();
    lock.release();
    EXPECT_THROW(lock.release(), std::logic_error);
  });
}

TYPED_TEST(SyncTest, ALockIsFreedWhenItsHolderThrows) {
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
