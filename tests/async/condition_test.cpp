#include <stdexcept>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class ConditionTest : public InSomeWorld {
 protected:
  Condition condition;
  std::vector<int> order;

  // Waits once, notes its number, and keeps the lock.
  Task<void> wait_and_keep(int number) {
    return this->spawn([this, number]() -> Coro<void> {
      co_await condition.acquire();
      co_await condition.wait();
      order.push_back(number);
    });
  }
  Task<void> wait_and_release(int number) {
    return this->spawn([this, number]() -> Coro<void> {
      const auto held = co_await condition.scoped();
      co_await condition.wait();
      order.push_back(number);
    });
  }
  Coro<void> notify(std::size_t n) {
    const auto held = co_await condition.scoped();
    condition.notify(n);
  }
  Coro<void> turns(int n) {
    for (int i = 0; i < n; ++i) co_await let_others_run();
  }
};
INSTANTIATE_TEST_SUITE_P(AllWorlds, ConditionTest, kAllWorlds, world_name);

TEST_P(ConditionTest, WhoWasNotifiedGoesOnWhenTheLockIsFree) {
  Condition& condition = this->condition;
  this->run([&]() -> Coro<void> {
    std::vector<Task<void>> tasks;
    for (int i = 1; i <= 3; ++i) {
      tasks.push_back(this->wait_and_keep(i));
      co_await this->turns(2);
    }
    EXPECT_FALSE(condition.locked()) << "given up by those who wait";

    co_await condition.acquire();
    condition.notify();
    co_await this->turns(2);
    EXPECT_TRUE(this->order.empty()) << "the lock is ours";
    condition.release();
    co_await this->turns(2);
    EXPECT_EQ(this->order, (std::vector{1}));
    EXPECT_TRUE(condition.locked());

    condition.notify(2);
    co_await this->turns(2);
    EXPECT_EQ(this->order, (std::vector{1}));
    condition.release();
    co_await this->turns(2);
    EXPECT_EQ(this->order.size(), 2u);
    condition.release();
    co_await this->turns(2);
    EXPECT_EQ(sorted_if_shuffled(this->order), (std::vector{1, 2, 3}));
    EXPECT_TRUE(condition.locked());
    for (auto& task : tasks) co_await task;
  });
}

TEST_P(ConditionTest, NotifyWakesAsManyAsSaidAndNotifyAllWakesTheRest) {
  this->run([&]() -> Coro<void> {
    std::vector<Task<void>> tasks;
    for (int i = 1; i <= 6; ++i) {
      tasks.push_back(this->wait_and_release(i));
      co_await let_others_run();
    }
    co_await this->notify(0);
    co_await this->turns(3);
    EXPECT_TRUE(this->order.empty());
    co_await this->notify(1);
    co_await this->turns(3);
    EXPECT_EQ(this->order, (std::vector{1}));
    {
      const auto held = co_await this->condition.scoped();
      this->condition.notify(1);
      this->condition.notify(2);
    }
    co_await this->turns(8);
    EXPECT_EQ(sorted_if_shuffled(this->order), (std::vector{1, 2, 3, 4}));
    {
      const auto held = co_await this->condition.scoped();
      this->condition.notify_all();
      this->condition.notify(2048);
    }
    for (auto& task : tasks) co_await task;
    EXPECT_EQ(sorted_if_shuffled(this->order), (std::vector{1, 2, 3, 4, 5, 6}));
  });
}

TEST_P(ConditionTest, NeedsItsLock) {
  EXPECT_THROW(this->condition.notify(), std::logic_error);
  EXPECT_THROW(this->condition.notify_all(), std::logic_error);
  EXPECT_THROW(this->condition.release(), std::logic_error);
  EXPECT_THROW(this->run(this->condition.wait()), std::logic_error);
}

TEST_P(ConditionTest, WaitForAsksAgainAfterEveryNotification) {
  int value = 0, asked = 0;
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<int> {
      const auto held = co_await this->condition.scoped();
      co_return co_await this->condition.wait_for([&] {
        EXPECT_TRUE(this->condition.locked());
        ++asked;
        return value;
      });
    });
    co_await let_others_run();
    co_await this->notify(1);
    co_await this->turns(3);
    EXPECT_FALSE(task.done());
    EXPECT_EQ(asked, 2);
    value = 7;
    co_await this->turns(3);
    EXPECT_FALSE(task.done()) << "nobody told it";
    co_await this->notify(1);
    EXPECT_EQ(co_await task, 7) << "what the predicate returned";
    EXPECT_FALSE(this->condition.locked());
  });
}

TEST_P(ConditionTest, WaitForNeedsTheLockOnlyToWait) {
  EXPECT_EQ(this->run(this->condition.wait_for([] { return 5; })), 5);
  EXPECT_THROW(this->run(this->condition.wait_for([] { return false; })), std::logic_error);
}

TEST_P(ConditionTest, IsItsLock) {
  Lock lock;
  Condition condition(lock), other(lock);
  this->run([&]() -> Coro<void> {
    EXPECT_FALSE(condition.locked());
    {
      const auto held = co_await condition.scoped();
      EXPECT_TRUE(lock.locked() && condition.locked() && other.locked());
    }
    EXPECT_FALSE(lock.locked() || condition.locked());
    {
      const auto held = co_await lock.scoped();
      EXPECT_TRUE(condition.locked());
      condition.notify_all();
    }
    EXPECT_FALSE(condition.locked());
  });
}

TEST_P(ConditionTest, AConditionHearsOnlyItsOwnNotifications) {
  Lock lock;
  Condition full(lock), empty(lock);
  bool told_full = false, told_empty = false;
  this->run([&]() -> Coro<void> {
    const auto wait = [&](Condition& which, bool& told) -> Coro<void> {
      const auto held = co_await which.scoped();
      co_await which.wait();
      told = true;
    };
    auto first = this->loop.create_task(wait(full, told_full));
    auto second = this->loop.create_task(wait(empty, told_empty));
    co_await let_others_run();
    {
      const auto held = co_await lock.scoped();
      empty.notify_all();
    }
    co_await second;
    EXPECT_TRUE(told_empty && !told_full);
    first.cancel();
    co_await this->turns(3);
    EXPECT_TRUE(first.cancelled());
    EXPECT_FALSE(lock.locked());
  });
}

// --- cancellation

TEST_P(ConditionTest, ACancelledWaitHasTheLockAgain) {
  this->run([&]() -> Coro<void> {
    bool locked_inside = false;
    auto task = this->spawn([&]() -> Coro<void> {
      co_await this->condition.acquire();
      try {
        co_await this->condition.wait();
      } catch (const CancelledError& error) {
        EXPECT_STREQ(error.what(), "enough");
        locked_inside = this->condition.locked();
        throw;
      }
    });
    co_await let_others_run();
    task.cancel("enough");
    co_await this->turns(2);
    EXPECT_TRUE(task.cancelled());
    EXPECT_TRUE(locked_inside);
    EXPECT_TRUE(this->condition.locked());
    co_await this->turns(1);
    this->condition.release();
  });
}

TEST_P(ConditionTest, ACancelledWaitWaitsForTheLockHoweverOftenItIsCancelled) {
  this->run([&]() -> Coro<void> {
    auto task = this->wait_and_keep(1);
    co_await let_others_run();
    co_await this->condition.acquire();
    for (int i = 0; i < 3; ++i) {
      task.cancel();
      co_await this->turns(2);
      EXPECT_FALSE(task.done()) << "we hold the lock";
    }
    this->condition.release();
    co_await this->turns(2);
    EXPECT_TRUE(task.cancelled());
    EXPECT_TRUE(this->condition.locked());
    EXPECT_TRUE(this->order.empty());
  });
}

TEST_P(ConditionTest, CancelledWhileItWaitsForTheContestedLockItStillGetsIt) {
  this->run([&]() -> Coro<void> {
    auto task = this->wait_and_keep(1);
    co_await let_others_run();
    co_await this->condition.acquire();
    this->condition.notify();
    this->loop.call_soon([&] { task.cancel(); });
    this->loop.call_soon([&] { this->condition.release(); });
    co_await this->turns(4);
    EXPECT_TRUE(task.done());
    EXPECT_TRUE(this->condition.locked());
  });
}

TEST_P(ConditionTest, CancelledAfterItWasNotifiedItEndsCancelledAndFreesTheLock) {
  this->run([&]() -> Coro<void> {
    auto task = this->wait_and_release(1);
    co_await let_others_run();
    co_await this->condition.acquire();
    this->condition.notify();
    co_await let_others_run();  // now it waits for the lock
    task.cancel();
    co_await let_others_run();
    this->condition.release();
    co_await this->turns(2);
    EXPECT_TRUE(task.cancelled());
    EXPECT_FALSE(this->condition.locked());
  });
}

TEST_P(ConditionTest, ANotificationOfACancelledWaiterGoesToTheNext) {
  this->run([&]() -> Coro<void> {
    auto first = this->wait_and_release(1);
    auto second = this->wait_and_release(2);
    co_await let_others_run();
    co_await this->notify(1);
    first.cancel();
    co_await second;
    EXPECT_TRUE(first.cancelled());
    EXPECT_EQ(this->order, (std::vector{2}));
  });
}

TEST_P(ConditionTest, ATimeoutMayStrikeInsideTheLock) {
  this->run([&]() -> Coro<void> {
    const auto held = co_await this->condition.scoped();
    bool timed_out = false;
    try {
      co_await wait_for(this->condition.wait(), 1ms);
    } catch (const TimeoutError&) {
      timed_out = true;
    }
    EXPECT_TRUE(timed_out);
    EXPECT_TRUE(this->condition.locked());
  });
  EXPECT_FALSE(this->condition.locked());
}

}  // namespace
}  // namespace argiope
