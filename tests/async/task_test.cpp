// Tasks, futures and cancellation, by asyncio's rules.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "argiope/async/sleep.hpp"
#include "argiope/async/sync.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

class TaskTest : public OnEachLoop {};
INSTANTIATE_TEST_SUITE_P(Loops, TaskTest, testing::Values("asio", "virtual"));

Coro<int> add(int a, int b) { co_return a + b; }
Coro<int> add_slowly(int a, int b) {
  co_await sleep(1ms);
  co_return co_await add(a, b);
}
Coro<void> fail_with(std::string text) {
  co_await yield_now();
  throw std::runtime_error(text);
}

TEST_P(TaskTest, ReturnsWhatItsCoroutineReturns) { EXPECT_EQ(loop_->run_until_complete(add_slowly(1, 2)), 3); }

TEST_P(TaskTest, ThrowsWhatItsCoroutineThrows) {
  try {
    loop_->run_until_complete(fail_with("boom"));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "boom");
  }
}

TEST_P(TaskTest, MovesAResultThatCannotBeCopied) {
  auto make = []() -> Coro<std::unique_ptr<int>> { co_return std::make_unique<int>(5); };
  auto body = [&]() -> Coro<int> { co_return *co_await EventLoop::current().create_task(make()); };
  EXPECT_EQ(loop_->run_until_complete(body()), 5);
}

TEST_P(TaskTest, DoesNotStartBeforeTheLoopTurns) {
  bool started = false;
  auto body = [&]() -> Coro<void> {
    auto child = [&]() -> Coro<void> {
      started = true;
      co_return;
    };
    Task<void> task = EventLoop::current().create_task(child());
    EXPECT_FALSE(started);
    co_await task;
    EXPECT_TRUE(started);
  };
  loop_->run_until_complete(body());
}

TEST_P(TaskTest, RunsReadyTasksFirstComeFirstServed) {
  std::string order;
  auto letter = [&](char c) -> Coro<void> {
    order += c;
    co_await yield_now();
    order += static_cast<char>(c - 32);
  };
  auto body = [&]() -> Coro<void> {
    std::vector<Task<void>> tasks;
    for (const char c : {'a', 'b', 'c'}) tasks.push_back(EventLoop::current().create_task(letter(c)));
    for (auto& task : tasks) co_await task;
  };
  loop_->run_until_complete(body());
  EXPECT_EQ(order, "abcABC");
}

TEST_P(TaskTest, RunsToItsEndWithoutAHandle) {
  int ended = 0;
  auto child = [&]() -> Coro<void> {
    co_await sleep(1ms);
    ++ended;
  };
  auto body = [&]() -> Coro<void> {
    EventLoop::current().create_task(child());
    co_await sleep(50ms);
  };
  loop_->run_until_complete(body());
  EXPECT_EQ(ended, 1);
}

TEST_P(TaskTest, CancelledBeforeItsStartNeverRuns) {
  bool ran = false;
  auto child = [&]() -> Coro<void> {
    ran = true;
    co_return;
  };
  auto body = [&]() -> Coro<void> {
    Task<void> task = EventLoop::current().create_task(child());
    EXPECT_TRUE(task.cancel());
    EXPECT_THROW(co_await task, CancelledError);
    EXPECT_TRUE(task.cancelled());
    EXPECT_FALSE(task.cancel());
  };
  loop_->run_until_complete(body());
  EXPECT_FALSE(ran);
}

TEST_P(TaskTest, CancelledWhileItWaitsIsWokenWithCancelledError) {
  bool cleaned_up = false;
  auto child = [&]() -> Coro<void> {
    try {
      co_await sleep(1h);
    } catch (const CancelledError& error) {
      EXPECT_STREQ(error.what(), "enough");
      cleaned_up = true;
      throw;
    }
  };
  auto body = [&]() -> Coro<void> {
    Task<void> task = EventLoop::current().create_task(child());
    co_await yield_now();
    task.cancel("enough");
    EXPECT_FALSE(task.done());
    EXPECT_THROW(co_await task, CancelledError);
  };
  loop_->run_until_complete(body());
  EXPECT_TRUE(cleaned_up);
}

TEST_P(TaskTest, CancellingForwardsToTheTaskThatIsAwaited) {
  Task<void> inner;
  auto outer_body = [&]() -> Coro<void> { co_await inner; };
  auto forever = []() -> Coro<void> { co_await sleep(1h); };
  auto body = [&]() -> Coro<void> {
    inner = EventLoop::current().create_task(forever());
    Task<void> outer = EventLoop::current().create_task(outer_body());
    co_await yield_now();
    outer.cancel();
    EXPECT_THROW(co_await outer, CancelledError);
    EXPECT_TRUE(inner.cancelled());
    inner = {};
  };
  loop_->run_until_complete(body());
}

TEST_P(TaskTest, MaySwallowItsCancellation) {
  auto stubborn = []() -> Coro<int> {
    try {
      co_await sleep(1h);
    } catch (const CancelledError&) {
    }
    co_return 7;
  };
  auto body = [&]() -> Coro<int> {
    Task<int> task = EventLoop::current().create_task(stubborn());
    co_await yield_now();
    task.cancel();
    co_return co_await task;
  };
  EXPECT_EQ(loop_->run_until_complete(body()), 7);
}

TEST_P(TaskTest, CancellingItselfTakesEffectAtTheNextAwait) {
  bool went_on = false;
  Task<void> task;
  auto child = [&]() -> Coro<void> {
    task.cancel();
    went_on = true;
    co_await yield_now();
    ADD_FAILURE() << "not cancelled";
  };
  auto body = [&]() -> Coro<void> {
    task = EventLoop::current().create_task(child());
    EXPECT_THROW(co_await task, CancelledError);
    task = {};
  };
  loop_->run_until_complete(body());
  EXPECT_TRUE(went_on);
}

TEST_P(TaskTest, CountsCancellationsAndTakesThemBack) {
  auto child = [&]() -> Coro<void> { co_await sleep(1h); };
  auto body = [&]() -> Coro<void> {
    Task<void> task = EventLoop::current().create_task(child());
    task.cancel();
    task.cancel();
    EXPECT_EQ(task.cancelling(), 2);
    EXPECT_EQ(task.uncancel(), 1);
    EXPECT_THROW(co_await task, CancelledError);
  };
  loop_->run_until_complete(body());
}

TEST_P(TaskTest, ReportsAnExceptionNobodyAskedForWithItsName) {
  std::vector<std::string> reports;
  loop_->set_exception_handler([&](std::string_view where, const std::exception_ptr&) { reports.emplace_back(where); });
  auto body = [&]() -> Coro<void> {
    EventLoop::current().create_task(fail_with("unseen"), "careless");
    Task<void> seen = EventLoop::current().create_task(fail_with("seen"), "careful");
    EXPECT_THROW(co_await seen, std::runtime_error);
    for (int i = 0; i < 5; ++i) co_await yield_now();
  };
  loop_->run_until_complete(body());
  EXPECT_EQ(reports, std::vector<std::string>{"careless"});
}

TEST_P(TaskTest, CannotAwaitItself) {
  Task<void> task;
  auto child = [&]() -> Coro<void> { co_await task; };
  auto body = [&]() -> Coro<void> {
    task = EventLoop::current().create_task(child());
    EXPECT_THROW(co_await task, std::logic_error);
    task = {};
  };
  loop_->run_until_complete(body());
}

TEST_P(TaskTest, AMillionCompletionsNeedNoStack) {
  auto body = []() -> Coro<int> {
    int sum = 0;
    for (int i = 0; i < 1'000'000; ++i) sum += co_await add(i, 1) & 1;
    co_return sum;
  };
  EXPECT_EQ(loop_->run_until_complete(body()), 500'000);
}

TEST_P(TaskTest, OneThatNeverSuspendsForRealStillLetsOthersRun) {
  bool stop = false;
  auto busy = [&]() -> Coro<int> {
    Semaphore semaphore(1);
    int rounds = 0;
    while (!stop) {
      co_await semaphore.acquire();  // never has to wait
      semaphore.release();
      if (++rounds > 100'000) co_return -1;
    }
    co_return rounds;
  };
  auto body = [&]() -> Coro<int> {
    Task<int> task = EventLoop::current().create_task(busy());
    for (int i = 0; i < 3; ++i) co_await yield_now();
    stop = true;
    co_return co_await task;
  };
  EXPECT_GT(loop_->run_until_complete(body()), 0);
}

TEST_P(TaskTest, AMillionParkedTasksAreCancelledAtOnce) {
  Event event;
  auto park = [&]() -> Coro<void> { co_await event.wait(); };
  auto body = [&]() -> Coro<int> {
    constexpr int kTasks = 100'000;
    std::vector<Task<void>> tasks;
    for (int i = 0; i < kTasks; ++i) tasks.push_back(EventLoop::current().create_task(park()));
    co_await yield_now();
    for (auto& task : tasks) task.cancel();
    co_await yield_now();
    int cancelled = 0;
    for (auto& task : tasks) cancelled += task.cancelled();
    co_return cancelled;
  };
  EXPECT_EQ(loop_->run_until_complete(body()), 100'000);
}

TEST_P(TaskTest, UnfinishedOnesAreUnwoundWithTheirLoop) {
  auto counted = std::make_shared<int>(0);
  auto child = [](std::shared_ptr<int> held) -> Coro<void> {
    Event never;
    co_await never.wait();
    (void)held;
  };
  auto body = [&]() -> Coro<void> {
    for (int i = 0; i < 10; ++i) EventLoop::current().create_task(child(counted));
    co_await yield_now();
  };
  loop_->run_until_complete(body());
  EXPECT_EQ(counted.use_count(), 11);
  loop_.reset();
  EXPECT_EQ(counted.use_count(), 1);
}

class FutureTest : public OnVirtualLoop {};

TEST_F(FutureTest, WakesWhoeverAwaitsItInOrder) {
  std::string order;
  auto future = loop_.create_future<int>();
  auto wait = [&](char c) -> Coro<void> {
    EXPECT_EQ(co_await future, 42);
    order += c;
  };
  auto body = [&]() -> Coro<void> {
    auto a = loop_.create_task(wait('a'));
    auto b = loop_.create_task(wait('b'));
    co_await yield_now();
    future.add_done_callback([&] { order += '!'; });
    future.set_result(42);
    EXPECT_EQ(order, "");  // woken, not run
    co_await a;
    co_await b;
  };
  loop_.run_until_complete(body());
  EXPECT_EQ(order, "ab!");
}

TEST_F(FutureTest, RefusesASecondResult) {
  auto future = loop_.create_future<int>();
  EXPECT_THROW(future.result(), InvalidStateError);
  future.set_result(1);
  EXPECT_EQ(future.result(), 1);
  EXPECT_THROW(future.set_result(2), InvalidStateError);
  EXPECT_THROW(future.set_exception(std::runtime_error("x")), InvalidStateError);
  EXPECT_FALSE(future.cancel());
}

TEST_F(FutureTest, CarriesAnExceptionWithItsType) {
  auto future = loop_.create_future<void>();
  future.set_exception(std::out_of_range("far"));
  auto body = [&]() -> Coro<void> { co_await future; };
  EXPECT_THROW(loop_.run_until_complete(body()), std::out_of_range);
}

TEST_F(FutureTest, CancellingTheAwaitingTaskCancelsIt) {
  auto future = loop_.create_future<void>();
  auto wait = [&]() -> Coro<void> { co_await future; };
  auto body = [&]() -> Coro<void> {
    auto task = loop_.create_task(wait());
    co_await yield_now();
    task.cancel();
    EXPECT_TRUE(future.cancelled());
    EXPECT_THROW(co_await task, CancelledError);
  };
  loop_.run_until_complete(body());
}

TEST_F(FutureTest, RefusesATaskOfAnotherLoop) {
  VirtualBackend other_backend;
  EventLoop other(other_backend);
  auto future = other.create_future<void>();
  auto body = [&]() -> Coro<void> { co_await future; };
  EXPECT_THROW(loop_.run_until_complete(body()), std::logic_error);
}

}  // namespace
}  // namespace argiope
