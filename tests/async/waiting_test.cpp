#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "support/cancellation_sweep.hpp"
#include "support/give.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class WaitTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, WaitTest, kAllWorlds, world_name);
class AsCompletedTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, AsCompletedTest, kAllWorlds, world_name);
class ShieldTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, ShieldTest, kAllWorlds, world_name);

Coro<int> fail_after(Duration delay, std::string message) {
  co_await sleep(delay);
  throw std::runtime_error(message);
}

template <class... Ts>
std::vector<Future<int>> futures_of(const Ts&... futures) {
  return {futures...};
}

// --- wait

TEST_P(WaitTest, ForAllGivesAllAsDoneInTheOrderGiven) {
  this->run([&]() -> Coro<void> {
    auto slow = this->loop.create_task(give_after(2ms, 2));
    auto fast = this->loop.create_task(give_after(1ms, 1));
    const auto [done, pending] = co_await wait(futures_of(slow, fast));
    EXPECT_TRUE(pending.empty());
    EXPECT_EQ(done.size(), 2u);
    EXPECT_EQ(done.at(0).result(), 2);
    EXPECT_EQ(done.at(1).result(), 1);

    const TimePoint before = this->loop.time();
    const auto again = co_await wait(futures_of(slow, fast));
    EXPECT_EQ(again.done.size(), 2u) << "what is done already needs no wait";
    if (this->world.has_simulated_time()) EXPECT_EQ(this->loop.time(), before);
  });
}

TEST_P(WaitTest, OneGivenTwiceIsThereTwice) {
  this->run([&]() -> Coro<void> {
    auto task = this->loop.create_task(give_after(1ms, 1));
    const auto result = co_await wait(futures_of(task, task));
    EXPECT_EQ(result.done.size(), 2u);
  });
}

TEST_P(WaitTest, ForNothingIsRefused) {
  this->run([]() -> Coro<void> {
    bool refused = false;
    try {
      co_await wait(std::vector<Future<int>>{});
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
  });
}

TEST_P(WaitTest, ForAFutureOfAnotherLoopIsRefused) {
  VirtualBackend backend;
  EventLoop other(backend);
  const auto stranger = other.create_future<int>();
  this->run([&]() -> Coro<void> {
    bool refused = false;
    try {
      co_await wait(futures_of(stranger));
    } catch (const std::logic_error&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
  });
}

TEST_P(WaitTest, ForTheFirstReturnsWhenOneIsDone) {
  this->run([&]() -> Coro<void> {
    auto fast = this->loop.create_task(give_after(1ms, 1));
    auto slow = this->loop.create_task(give_after(1h, 2));
    const auto [done, pending] = co_await wait(futures_of(slow, fast), When::first_completed);
    EXPECT_EQ(done.size(), 1u);
    EXPECT_EQ(done.at(0).result(), 1);
    EXPECT_EQ(pending.size(), 1u);
    EXPECT_FALSE(slow.done());
    slow.cancel();
  });
}

TEST_P(WaitTest, ForTheFirstGivesAllThatAreDoneByThen) {
  this->run([&]() -> Coro<void> {
    auto one = this->loop.template create_future<int>();
    auto two = this->loop.template create_future<int>();
    this->loop.call_soon([&] {
      one.set_result(1);
      two.set_result(2);
    });
    const auto result = co_await wait(futures_of(one, two), When::first_completed);
    EXPECT_EQ(result.done.size(), 2u);
  });
}

TEST_P(WaitTest, ForTheFirstExceptionReturnsWhenOneFailed) {
  this->run([&]() -> Coro<void> {
    auto failing = this->loop.create_task(fail_after(1ms, "x"));
    auto slow = this->loop.create_task(give_after(1h, 2));
    const auto [done, pending] = co_await wait(futures_of(slow, failing), When::first_exception);
    EXPECT_EQ(done.size(), 1u);
    EXPECT_THROW(done.at(0).result(), std::runtime_error);
    EXPECT_EQ(pending.size(), 1u);

    const auto again = co_await wait(futures_of(slow, failing), When::first_exception);
    EXPECT_EQ(again.done.size(), 1u) << "one that had failed before counts as well";
    slow.cancel();
  });
}

TEST_P(WaitTest, ForTheFirstExceptionWaitsForAllWhenNoneFails) {
  this->run([&]() -> Coro<void> {
    auto cancelled = this->loop.create_task(give_after(1h, 1));
    auto slow = this->loop.create_task(give_after(2ms, 2));
    this->loop.call_soon([&] { cancelled.cancel(); });
    const auto result = co_await wait(futures_of(cancelled, slow), When::first_exception);
    EXPECT_EQ(result.done.size(), 2u) << "a cancellation is no exception";
  });
}

TEST_P(WaitTest, ForAllDoesNotThrowWhatTheyThrew) {
  this->run([&]() -> Coro<void> {
    auto failing = this->loop.create_task(fail_after(1ms, "x"));
    auto fine = this->loop.create_task(give_after(2ms, 2));
    const auto result = co_await wait(futures_of(failing, fine));
    EXPECT_EQ(result.done.size(), 2u);
    EXPECT_NE(failing.exception(), nullptr);
    EXPECT_EQ(fine.exception(), nullptr);
  });
}

TEST_P(WaitTest, AnExceptionNobodyTookIsReported) {
  const Reports reports(this->loop);
  this->run([&]() -> Coro<void> {
    std::vector<Task<int>> tasks;
    tasks.push_back(this->loop.create_task(fail_after(0ms, "unheard"), "loud"));
    co_await wait(std::move(tasks));
  });
  EXPECT_EQ(reports.lines(), (std::vector<std::string>{"loud: unheard"}));
}

TEST_P(WaitTest, WithATimeoutReturnsWhatIsDoneByThenAndCancelsNothing) {
  this->run([&]() -> Coro<void> {
    auto fast = this->loop.create_task(give_after(1ms, 1));
    // A real machine may stall until both times have come.
    if (!this->world.has_simulated_time()) co_await wait(futures_of(fast));
    auto never = this->loop.template create_future<int>();
    const auto [done, pending] = co_await wait(futures_of(never, fast), When::all_completed, 20ms);
    EXPECT_EQ(done.size(), 1u);
    EXPECT_EQ(pending.size(), 1u);
    EXPECT_FALSE(never.done());
  });
  EXPECT_EQ(this->loop.next_deadline(), kNever);
}

TEST_P(WaitTest, WithATimeoutThatHasPassedItLooksOnce) {
  this->run([&]() -> Coro<void> {
    auto never = this->loop.template create_future<int>();
    for (const Duration timeout : {Duration{0}, Duration{-1h}}) {
      const auto result = co_await wait(futures_of(never), When::all_completed, timeout);
      EXPECT_EQ(result.pending.size(), 1u);
    }
  });
}

TEST_P(WaitTest, AnUnusedTimeoutIsTakenBack) {
  this->run([&]() -> Coro<void> {
    auto fast = this->loop.create_task(give_after(1ms, 1));
    co_await wait(futures_of(fast), When::all_completed, 1h);
  });
  EXPECT_EQ(this->loop.next_deadline(), kNever);
}

TEST_P(WaitTest, OneThatEndsAtTheInstantOfTheTimeoutIsDone) {
  this->run([&]() -> Coro<void> {
    const TimePoint when = this->loop.time() + 1ms;
    auto future = this->loop.template create_future<int>();
    this->loop.call_at(when, [&] { future.set_result(1); });
    const auto result = co_await wait(futures_of(future), When::all_completed, when - this->loop.time());
    EXPECT_EQ(result.done.size(), 1u);
  });
}

TEST_P(WaitTest, CancelledItLeavesTheFuturesAlone) {
  this->run([&]() -> Coro<void> {
    auto gate = this->loop.template create_future<int>();
    auto inner = this->spawn([&]() -> Coro<int> { co_return co_await gate; });
    auto outer = this->spawn([&]() -> Coro<void> { co_await wait(futures_of(inner)); });
    co_await yield_now();
    co_await yield_now();
    outer.cancel();
    co_await wait(std::vector{outer});
    EXPECT_TRUE(outer.cancelled());
    EXPECT_FALSE(inner.done());
    gate.set_result(3);
    EXPECT_EQ(co_await inner, 3);
  });
}

TEST_P(WaitTest, TakesTasksOfAnyType) {
  this->run([&]() -> Coro<void> {
    auto number = this->loop.create_task(give_after(1ms, 1));
    auto nothing = this->spawn([]() -> Coro<void> { co_return; });
    const auto result = co_await wait(std::vector<AnyTask>{number, nothing});
    EXPECT_EQ(result.done.size(), 2u);
    EXPECT_TRUE(result.done.at(0) == AnyTask(number));
  });
}

// --- as_completed

TEST_P(AsCompletedTest, GivesThemInTheOrderInWhichTheyEnd) {
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    std::vector<Future<int>> futures;
    for (int i = 0; i < 3; ++i) futures.push_back(this->loop.template create_future<int>());
    auto completed = as_completed(futures);
    futures[2].set_result(2);
    futures[0].set_result(0);
    this->loop.call_soon([&] { futures[1].set_result(1); });
    while (completed.remaining() > 0) order.push_back((co_await completed.next()).result());
  });
  EXPECT_EQ(order, (std::vector{2, 0, 1}));
}

TEST_P(AsCompletedTest, RunsCoroutinesAtTheSameTime) {
  this->run([&]() -> Coro<void> {
    std::vector<Coro<int>> coros;
    coros.push_back(give_after(2ms, 2));
    coros.push_back(give_after(1ms, 1));
    auto completed = as_completed(std::move(coros));
    EXPECT_EQ(this->loop.task_count(), 3u);
    int sum = 0;
    while (completed.remaining() > 0) sum += (co_await completed.next()).result();
    EXPECT_EQ(sum, 3);
  });
}

TEST_P(AsCompletedTest, GivesTheFutureAndTheFutureItsException) {
  this->run([&]() -> Coro<void> {
    std::vector<Coro<int>> coros;
    coros.push_back(fail_after(0ms, "x"));
    auto completed = as_completed(std::move(coros));
    Task<int> task = co_await completed.next();
    EXPECT_THROW(task.result(), std::runtime_error);
  });
}

TEST_P(AsCompletedTest, WithATimeoutGivesWhatEndedBeforeAndThenThrows) {
  this->run([&]() -> Coro<void> {
    auto fast = this->loop.create_task(give_after(1ms, 1));
    // A real machine may stall until both times have come.
    if (!this->world.has_simulated_time()) co_await wait(futures_of(fast));
    auto never = this->loop.template create_future<int>();
    auto completed = as_completed(futures_of(never, fast), 20ms);
    EXPECT_EQ((co_await completed.next()).result(), 1);
    bool timed_out = false;
    try {
      co_await completed.next();
    } catch (const TimeoutError&) {
      timed_out = true;
    }
    EXPECT_TRUE(timed_out);
    EXPECT_FALSE(never.done());
    EXPECT_EQ(completed.remaining(), 1u);
  });
}

TEST_P(AsCompletedTest, OneThatEndsAtTheInstantOfTheTimeoutIsGiven) {
  this->run([&]() -> Coro<void> {
    const TimePoint when = this->loop.time() + 1ms;
    auto future = this->loop.template create_future<int>();
    this->loop.call_at(when, [&] { future.set_result(1); });
    auto completed = as_completed(futures_of(future), when - this->loop.time());
    EXPECT_EQ((co_await completed.next()).result(), 1);
  });
}

TEST_P(AsCompletedTest, AnUnusedTimeoutIsTakenBack) {
  this->run([&]() -> Coro<void> {
    auto fast = this->loop.create_task(give_after(1ms, 1));
    auto completed = as_completed(futures_of(fast), 1h);
    EXPECT_EQ((co_await completed.next()).result(), 1);
    EXPECT_EQ(this->loop.next_deadline(), kNever);
  });
}

TEST_P(AsCompletedTest, ServesThoseWhoWaitFirstComeFirstServed) {
  this->run([&]() -> Coro<void> {
    std::vector<Future<int>> futures;
    for (int i = 0; i < 2; ++i) futures.push_back(this->loop.template create_future<int>());
    auto completed = as_completed(futures);
    const auto next = [&]() -> Coro<int> { co_return (co_await completed.next()).result(); };
    auto first = this->loop.create_task(next());
    co_await let_others_run();
    auto second = this->loop.create_task(next());
    co_await let_others_run();
    futures[1].set_result(1);
    EXPECT_EQ(co_await first, 1);
    futures[0].set_result(0);
    EXPECT_EQ(co_await second, 0);
  });
}

TEST_P(AsCompletedTest, PastTheLastIsAnError) {
  this->run([]() -> Coro<void> {
    auto completed = as_completed(std::vector<Future<int>>{});
    EXPECT_EQ(completed.remaining(), 0u);
    bool refused = false;
    try {
      co_await completed.next();
    } catch (const std::logic_error&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
  });
}

TEST_P(AsCompletedTest, MayGoBeforeAllHaveEnded) {
  this->run([&]() -> Coro<void> {
    auto slow = this->loop.create_task(give_after(1ms, 1));
    { const auto completed = as_completed(futures_of(slow), 1h); }
    EXPECT_EQ(co_await slow, 1);
  });
  EXPECT_EQ(this->loop.next_deadline(), kNever);
}

// --- shield

TEST_P(ShieldTest, GivesTheResult) {
  this->run([&]() -> Coro<void> {
    EXPECT_EQ(co_await shield(give_after(1ms, 4)), 4);
    auto future = this->loop.template create_future<int>();
    this->loop.call_soon([&] { future.set_result(5); });
    EXPECT_EQ(co_await shield(future), 5);
    EXPECT_EQ(co_await shield(future), 5) << "the value is a copy";
  });
}

TEST_P(ShieldTest, MovesWhatCannotBeCopied) {
  this->run([&]() -> Coro<void> {
    auto future = this->loop.template create_future<std::unique_ptr<int>>();
    future.set_result(std::make_unique<int>(6));
    const std::unique_ptr<int> value = co_await shield(future);
    EXPECT_EQ(*value, 6);
  });
}

TEST_P(ShieldTest, PassesOnTheException) {
  this->run([]() -> Coro<void> {
    std::string what;
    try {
      co_await shield(fail_after(1ms, "inner"));
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    EXPECT_EQ(what, "inner");
  });
}

TEST_P(ShieldTest, WhenTheFutureIsCancelledSoIsWhoAwaitsIt) {
  this->run([&]() -> Coro<void> {
    auto inner = this->loop.create_task(give_after(1h, 1));
    auto outer = this->loop.create_task(shield(inner));
    co_await yield_now();
    inner.cancel();
    co_await wait(std::vector{outer});
    EXPECT_TRUE(outer.cancelled());
  });
}

TEST_P(ShieldTest, CancellingWhoAwaitsItLeavesItRunning) {
  this->run([&]() -> Coro<void> {
    int proof = 0;
    auto gate = this->loop.template create_future<void>();
    const auto inner = [&]() -> Coro<void> {
      co_await gate;
      proof += 1;
    };
    auto outer = this->spawn([&]() -> Coro<void> {
      co_await shield(inner());
      proof += 100;
    });
    co_await yield_now();
    co_await yield_now();
    outer.cancel();
    co_await wait(std::vector{outer});
    EXPECT_TRUE(outer.cancelled());
    gate.set_result();
    co_await yield_now();
    co_await yield_now();
    EXPECT_EQ(proof, 1);
  });
}

TEST_P(ShieldTest, WhatItThrowsAfterNobodyAwaitsItIsReported) {
  const Reports reports(this->loop);
  this->run([&]() -> Coro<void> {
    auto outer = this->loop.create_task(wait_for(shield(fail_after(2ms, "late")), 0ms));
    co_await wait(std::vector{outer});
    EXPECT_THROW(outer.result(), TimeoutError);
    while (reports.lines().empty()) co_await sleep(1ms);
  });
  EXPECT_EQ(reports.lines(), (std::vector<std::string>{"task: late"}));
}

TEST_P(ShieldTest, AroundAGatherItsChildrenGoOn) {
  this->run([&]() -> Coro<void> {
    auto one = this->loop.template create_future<int>();
    auto two = this->loop.template create_future<int>();
    auto parent = this->loop.create_task(gather(std::vector{one, two}));
    auto outer = this->loop.create_task(shield(parent));
    co_await yield_now();
    outer.cancel();
    co_await wait(std::vector{outer});
    EXPECT_TRUE(outer.cancelled());
    one.set_result(1);
    two.set_result(2);
    EXPECT_EQ(co_await parent, (std::vector{1, 2}));
  });
}

TEST_P(ShieldTest, InsideAGatherTheShieldedGoOn) {
  this->run([&]() -> Coro<void> {
    auto one = this->loop.template create_future<int>();
    auto two = this->loop.template create_future<int>();
    std::vector<Coro<int>> shields;
    shields.push_back(shield(one));
    shields.push_back(shield(two));
    auto parent = this->loop.create_task(gather(std::move(shields)));
    co_await yield_now();
    co_await yield_now();
    parent.cancel();
    co_await wait(std::vector{parent});
    EXPECT_TRUE(parent.cancelled());
    EXPECT_FALSE(one.done());
    EXPECT_FALSE(two.done());
  });
}

// --- cancelled at every step

struct WaitScenario {
  Coro<void> run() {
    EventLoop& loop = EventLoop::current();
    auto gate = loop.create_future<int>();
    loop.call_later(2ms, [gate]() mutable {
      if (!gate.done()) gate.set_result(1);
    });
    std::vector<Task<int>> tasks;
    tasks.push_back(loop.create_task(give_after(1ms, 1)));
    tasks.push_back(loop.create_task(shield(gate)));
    co_await wait(tasks, When::first_completed, 5ms);
    co_await wait(tasks, When::all_completed, 1ms);
    co_await wait(tasks);
  }
  void check() const {}
};
TEST(CancellationSweep, Wait) { sweep_cancellation_shuffled<WaitScenario>(); }

struct AsCompletedScenario {
  std::vector<int> seen;
  Coro<void> run() {
    std::vector<Coro<int>> coros;
    for (int i = 0; i < 4; ++i) coros.push_back(give_after(i * 1ms, i));
    auto completed = as_completed(std::move(coros), 1h);
    while (completed.remaining() > 0) seen.push_back((co_await completed.next()).result());
  }
  void check() const {
    std::vector<int> expected(seen.size());
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(seen, expected) << "none lost, none twice";
  }
};
TEST(CancellationSweep, AsCompleted) { sweep_cancellation_shuffled<AsCompletedScenario>(); }

struct ShieldScenario {
  bool inner_ended = false;
  Coro<void> work() {
    co_await yield_now();
    co_await sleep(1ms);
    inner_ended = true;
  }
  bool shielded = false;
  Coro<void> run() {
    co_await yield_now();
    shielded = true;
    co_await shield(work());
  }
  void check() const { EXPECT_EQ(inner_ended, shielded) << "whoever was shielded ends by itself"; }
};
TEST(CancellationSweep, Shield) { sweep_cancellation_shuffled<ShieldScenario>(); }

}  // namespace
}  // namespace argiope
