#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "argiope/async/sync.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class BarrierTest : public InSomeWorld {
 public:
  static constexpr int kParties = 5;
  Barrier barrier{kParties};

  template <class Body>
  std::vector<Task<void>> start(int n, Body body) {
    std::vector<Task<void>> tasks;
    for (int i = 0; i < n; ++i) tasks.push_back(this->spawn(body));
    return tasks;
  }
  Coro<void> all(std::vector<Task<void>> tasks) {
    for (auto& task : tasks) co_await task;
  }
  // n tasks that each run `body`, to their end.
  template <class Body>
  void run_tasks(int n, Body body) {
    this->run([&]() -> Coro<void> { co_await this->all(this->start(n, body)); });
  }
  // True when it let the caller pass, false when it was broken.
  static Coro<bool> passes(Barrier& at) {
    try {
      co_await at.wait();
      co_return true;
    } catch (const BrokenBarrierError&) {
      co_return false;
    }
  }
  void expect_empty_and_whole() {
    EXPECT_EQ(barrier.n_waiting(), 0u);
    EXPECT_FALSE(barrier.broken());
  }
};
INSTANTIATE_TEST_SUITE_P(AllWorlds, BarrierTest, kAllWorlds, world_name);

TEST_P(BarrierTest, NeedsAParty) {
  EXPECT_THROW(Barrier(0), std::invalid_argument);
  EXPECT_THROW(Barrier(-4), std::invalid_argument);
  EXPECT_EQ(Barrier(3).parties(), 3u);
}

TEST_P(BarrierTest, LetsNobodyPassBeforeAllHaveCome) {
  int passed = 0;
  this->run([&]() -> Coro<void> {
    std::vector<Task<void>> tasks;
    for (std::size_t i = 1; i <= 5; ++i) {
      EXPECT_EQ(passed, 0);
      tasks.push_back(this->spawn([&]() -> Coro<void> {
        co_await this->barrier.wait();
        ++passed;
      }));
      co_await let_others_run();
      if (i < 5) {
        EXPECT_EQ(this->barrier.n_waiting(), i);
      }
    }
    co_await this->all(std::move(tasks));
  });
  EXPECT_EQ(passed, 5);
  this->expect_empty_and_whole();
}

TEST_P(BarrierTest, GivesEachOfTheRoundItsNumber) {
  std::vector<std::size_t> numbers;
  this->run_tasks(5, [&]() -> Coro<void> {
    co_await this->barrier.wait();
    numbers.push_back(co_await this->barrier.wait());
  });
  std::ranges::sort(numbers);
  EXPECT_EQ(numbers, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST_P(BarrierTest, OfOnePartyMakesNobodyWait) {
  Barrier single(1);
  this->run([&]() -> Coro<void> {
    EXPECT_EQ(co_await single.wait(), 0u);
    EXPECT_EQ(co_await single.wait(), 0u);
  });
  EXPECT_EQ(single.n_waiting(), 0u);
  EXPECT_FALSE(single.broken());
}

TEST_P(BarrierTest, IsPassedRoundAfterRound) {
  int first_rounds = 0, second_rounds = 0;
  this->run_tasks(5, [&]() -> Coro<void> {
    co_await this->barrier.wait();
    ++first_rounds;
    co_await this->barrier.wait();
    EXPECT_EQ(first_rounds, 5);
    ++second_rounds;
  });
  EXPECT_EQ(second_rounds, 5);
  this->expect_empty_and_whole();
}

TEST_P(BarrierTest, FillsAgainOnlyWhenTheRoundBeforeHasLeft) {
  // The first to leave comes back at once, and must not be taken for one of the round that is still leaving.
  std::vector<std::size_t> waiting_after_leaving;
  this->run([&]() -> Coro<void> {
    auto tasks = this->start(5, [&]() -> Coro<void> {
      co_await this->barrier.wait();
      waiting_after_leaving.push_back(this->barrier.n_waiting());
      co_await this->barrier.wait();
    });
    co_await this->all(std::move(tasks));
  });
  EXPECT_EQ(waiting_after_leaving, (std::vector<std::size_t>{0, 0, 0, 0, 0}));
  this->expect_empty_and_whole();
}

TEST_P(BarrierTest, WhoComesWhileOthersLeaveWaitsForTheNextRound) {
  // Two of five come again; the other three meet elsewhere before they do.
  Barrier elsewhere(3);
  int again = 2, met = 0;
  this->run_tasks(5, [&]() -> Coro<void> {
    co_await this->barrier.wait();
    if (again-- > 0) {
      co_await this->barrier.wait();
      EXPECT_EQ(met, 3);
    } else {
      co_await elsewhere.wait();
      ++met;
      co_await this->barrier.wait();
    }
  });
  EXPECT_EQ(met, 3);
  this->expect_empty_and_whole();
}

TEST_P(BarrierTest, WhoIsCancelledCountsNoLonger) {
  Barrier three(3);
  int passed = 0;
  this->run([&]() -> Coro<void> {
    const auto come = [&]() -> Coro<void> {
      co_await three.wait();
      ++passed;
    };
    auto first = this->loop.create_task(come());
    auto second = this->loop.create_task(come());
    co_await let_others_run();
    EXPECT_EQ(three.n_waiting(), 2u);
    first.cancel();
    co_await let_others_run();
    EXPECT_EQ(three.n_waiting(), 1u);
    EXPECT_TRUE(first.cancelled());
    auto third = this->loop.create_task(come());
    co_await let_others_run();
    EXPECT_EQ(three.n_waiting(), 2u);
    co_await come();
    co_await second;
    co_await third;
  });
  EXPECT_EQ(passed, 3);
  EXPECT_FALSE(three.broken());
}

TEST_P(BarrierTest, WhoIsCancelledWhileLeavingDoesNotHoldUpTheNextRound) {
  this->run([&]() -> Coro<void> {
    auto tasks = this->start(4, [&]() -> Coro<void> { co_await this->barrier.wait(); });
    co_await let_others_run();
    co_await this->barrier.wait();
    tasks[1].cancel();
    co_await let_others_run();
    EXPECT_TRUE(tasks[1].cancelled());
    tasks = this->start(4, [&]() -> Coro<void> { co_await this->barrier.wait(); });
    co_await this->barrier.wait();
    co_await this->all(std::move(tasks));
  });
  this->expect_empty_and_whole();
}

// --- reset and abort

TEST_P(BarrierTest, ResetOfAnEmptyOneChangesNothing) {
  this->barrier.reset();
  this->expect_empty_and_whole();
}

TEST_P(BarrierTest, ResetSendsAwayWhoWaits) {
  int broken = 0;
  this->run([&]() -> Coro<void> {
    auto tasks = this->start(4, [&]() -> Coro<void> { broken += !co_await this->passes(this->barrier); });
    co_await let_others_run();
    this->barrier.reset();
    EXPECT_EQ(this->barrier.n_waiting(), 0u);
    co_await this->all(std::move(tasks));
  });
  EXPECT_EQ(broken, 4);
  this->expect_empty_and_whole();
}

TEST_P(BarrierTest, ResetWhileTheyLeaveBreaksItForThoseWhoHaveNotLeft) {
  int passed = 0, broken = 0;
  this->run_tasks(5, [&]() -> Coro<void> {
    if (!co_await this->passes(this->barrier)) {
      ++broken;
    } else if (++passed == 3) {
      this->barrier.reset();
    }
  });
  EXPECT_EQ(passed, 3);
  EXPECT_EQ(broken, 2);
  this->expect_empty_and_whole();
}

TEST_P(BarrierTest, ResetWhileTheyLeaveDoesNotTouchWhoWaitsForTheNextRound) {
  int passed = 0, broken = 0, broken_again = 0;
  this->run_tasks(5, [&]() -> Coro<void> {
    if (!co_await this->passes(this->barrier)) {
      ++broken;
    } else if (++passed == 3) {
      this->barrier.reset();
    }
    broken_again += !co_await this->passes(this->barrier);
  });
  EXPECT_EQ(broken, 2);
  EXPECT_EQ(broken_again, 0);
  this->expect_empty_and_whole();
}

TEST_P(BarrierTest, WhoWasSentAwayMayComeAgain) {
  int broken = 0, passed = 0;
  this->run([&]() -> Coro<void> {
    auto tasks = this->start(4, [&]() -> Coro<void> {
      broken += !co_await this->passes(this->barrier);
      passed += co_await this->passes(this->barrier);
    });
    co_await let_others_run();
    this->barrier.reset();
    passed += co_await this->passes(this->barrier);
    co_await this->all(std::move(tasks));
  });
  EXPECT_EQ(broken, 4);
  EXPECT_EQ(passed, 5);
  this->expect_empty_and_whole();
}

TEST_P(BarrierTest, ResetByTheLastWhoLeavesBreaksNothing) {
  int left = 0, passed = 0;
  this->run_tasks(5, [&]() -> Coro<void> {
    co_await this->barrier.wait();
    if (++left == 5) this->barrier.reset();
    passed += co_await this->passes(this->barrier);
    passed += co_await this->passes(this->barrier);
  });
  EXPECT_EQ(passed, 10);
  this->expect_empty_and_whole();
}

TEST_P(BarrierTest, AbortBreaksItUntilReset) {
  this->barrier.abort();
  EXPECT_TRUE(this->barrier.broken());
  EXPECT_FALSE(this->run(this->passes(this->barrier)));
  this->barrier.reset();
  this->run_tasks(5, [&]() -> Coro<void> { co_await this->barrier.wait(); });
  this->expect_empty_and_whole();
}

TEST_P(BarrierTest, AbortSendsAwayWhoLeavesAndWhoWaitsForTheNextRound) {
  int passed = 0, broken_leaving = 0, broken_waiting = 0;
  this->run_tasks(5, [&]() -> Coro<void> {
    if (!co_await this->passes(this->barrier)) {
      ++broken_leaving;
    } else if (++passed == 3) {
      this->barrier.abort();
    } else {
      broken_waiting += !co_await this->passes(this->barrier);
    }
  });
  EXPECT_EQ(broken_leaving, 2);
  EXPECT_EQ(broken_waiting, 2);
  EXPECT_TRUE(this->barrier.broken());
  EXPECT_EQ(this->barrier.n_waiting(), 0u);
}

// One of five fails between two barriers, and breaks the second for the others.
template <class Test>
Coro<void> meet_twice_and_fail_once(Test& test, Barrier& barrier, int& broken) {
  const std::size_t number = co_await barrier.wait();
  if (number == 2) {
    barrier.abort();
  } else {
    broken += !co_await test.passes(barrier);
  }
}

TEST_P(BarrierTest, OneThatFailsBreaksItForTheOthers) {
  int broken = 0, broken_leaving = 0;
  this->run_tasks(5, [&]() -> Coro<void> {
    try {
      co_await meet_twice_and_fail_once(*this, this->barrier, broken);
    } catch (const BrokenBarrierError&) {
      ++broken_leaving;
    }
  });
  EXPECT_EQ(broken + broken_leaving, 4);
  EXPECT_TRUE(this->barrier.broken());
  EXPECT_EQ(this->barrier.n_waiting(), 0u);
}

TEST_P(BarrierTest, BrokenByOneThatFailedItIsMendedByReset) {
  Barrier meeting(5);
  int broken = 0, passed = 0;
  this->run_tasks(5, [&]() -> Coro<void> {
    try {
      co_await meet_twice_and_fail_once(*this, this->barrier, broken);
    } catch (const BrokenBarrierError&) {
      ++broken;
    }
    // Everybody must have left before the reset, and nobody come before it.
    if (co_await meeting.wait() == 2) this->barrier.reset();
    co_await meeting.wait();
    passed += co_await this->passes(this->barrier);
  });
  EXPECT_EQ(broken, 4);
  EXPECT_EQ(passed, 5);
  this->expect_empty_and_whole();
}

TEST_P(BarrierTest, AResetOfABrokenOneThatIsStillLeftKeepsOutWhoComes) {
  int broken = 0, passed = 0;
  this->run([&]() -> Coro<void> {
    auto leaving = this->start(2, [&]() -> Coro<void> { broken += !co_await this->passes(this->barrier); });
    co_await let_others_run();
    this->barrier.abort();
    this->barrier.reset();
    EXPECT_FALSE(this->barrier.broken());
    auto coming = this->start(4, [&]() -> Coro<void> { passed += co_await this->passes(this->barrier); });
    co_await this->barrier.wait();
    co_await this->all(std::move(leaving));
    co_await this->all(std::move(coming));
  });
  EXPECT_EQ(broken, 2);
  EXPECT_EQ(passed, 4);
  this->expect_empty_and_whole();
}

}  // namespace
}  // namespace argiope
