#include "argiope/async/detail/future.hpp"

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class FutureTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, FutureTest, kAllWorlds, world_name);

TEST_P(FutureTest, ResumesTheTaskThatWaitsWhenTheResultIsSet) {
  auto future = this->loop.template create_future<int>();
  this->loop.call_soon([future]() mutable { future.set_result(5); });
  EXPECT_EQ(this->run([&]() -> Coro<int> { co_return co_await future; }), 5);
}

TEST_P(FutureTest, GivesTheSameResultToEverybodyWhoWaits) {
  auto future = this->loop.template create_future<std::string>();
  std::vector<const std::string*> seen;
  this->run([&]() -> Coro<void> {
    const auto wait = [&]() -> Coro<void> { seen.push_back(&co_await future); };
    auto first = this->loop.create_task(wait());
    auto second = this->loop.create_task(wait());
    co_await yield_now();
    future.set_result("shared");
    co_await first;
    co_await second;
  });
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(future.result(), "shared");
}

TEST_P(FutureTest, MovesTheValueOutOfAnRvalue) {
  auto future = this->loop.template create_future<std::unique_ptr<int>>();
  future.set_result(std::make_unique<int>(9));
  const auto value = this->run([&]() -> Coro<std::unique_ptr<int>> { co_return co_await std::move(future); });
  EXPECT_EQ(*value, 9);
}

TEST_P(FutureTest, IsSetOnce) {
  auto future = this->loop.template create_future<int>();
  future.set_result(1);
  EXPECT_THROW(future.set_result(2), InvalidStateError);
  EXPECT_THROW(future.set_exception(std::runtime_error("late")), InvalidStateError);
  EXPECT_FALSE(future.cancel());
  EXPECT_EQ(future.result(), 1);
}

TEST_P(FutureTest, HasNoResultWhilePending) {
  auto future = this->loop.template create_future<int>();
  EXPECT_FALSE(future.done());
  EXPECT_THROW(static_cast<void>(future.result()), InvalidStateError);
  EXPECT_THROW(static_cast<void>(future.exception()), InvalidStateError);
}

TEST_P(FutureTest, ThrowsItsExceptionFromResultAndFromAwait) {
  auto future = this->loop.template create_future<int>();
  future.set_exception(std::runtime_error("no luck"));
  EXPECT_THROW(static_cast<void>(future.result()), std::runtime_error);
  EXPECT_TRUE(future.exception() != nullptr);
  EXPECT_THROW(this->run([&]() -> Coro<int> { co_return co_await future; }), std::runtime_error);
}

TEST_P(FutureTest, ThrowsCancelledErrorWithItsMessageOnceCancelled) {
  auto future = this->loop.template create_future<int>();
  EXPECT_TRUE(future.cancel("not needed"));
  EXPECT_TRUE(future.cancelled());
  EXPECT_FALSE(future.cancel());
  for (int i = 0; i < 2; ++i) {
    try {
      static_cast<void>(future.result());
      ADD_FAILURE() << "should have thrown";
    } catch (const CancelledError& error) {
      EXPECT_STREQ(error.what(), "not needed");
    }
  }
  EXPECT_THROW(static_cast<void>(future.exception()), CancelledError);
}

TEST_P(FutureTest, CancellingATaskCancelsTheFutureItAwaits) {
  auto future = this->loop.template create_future<int>();
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<int> { co_return co_await future; });
    co_await let_others_run();
    task.cancel("enough");
    std::string caught;
    try {
      co_await task;
    } catch (const CancelledError& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "enough");
    EXPECT_TRUE(task.cancelled());
  });
  EXPECT_TRUE(future.cancelled());
}

TEST_P(FutureTest, CancellingTheFutureEndsTheTaskThatAwaitsIt) {
  auto future = this->loop.template create_future<void>();
  this->run([&]() -> Coro<void> {
    auto task = this->spawn([&]() -> Coro<void> { co_await future; });
    co_await yield_now();
    future.cancel("gone");
    co_await sleep(0ms);
    co_await sleep(0ms);
    EXPECT_TRUE(task.cancelled());
    EXPECT_EQ(task.cancelling(), 0);
  });
}

TEST_P(FutureTest, CallsBackInTheOrderAdded) {
  auto future = this->loop.template create_future<void>();
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) future.add_done_callback([&order, i] { order.push_back(i); });
  future.set_result();
  EXPECT_TRUE(order.empty()) << "callbacks come through call_soon, not at once";
  future.add_done_callback([&order] { order.push_back(5); });
  this->settle();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5}));
}

TEST_P(FutureTest, WakesTasksAndCallsBackInTheOrderTheyCame) {
  if (shuffled()) GTEST_SKIP() << "about the order";
  auto future = this->loop.template create_future<void>();
  std::vector<int> order;
  this->run([&]() -> Coro<void> {
    const auto wait = [&](int number) -> Coro<void> {
      co_await future;
      order.push_back(number);
    };
    auto first = this->loop.create_task(wait(1));
    co_await yield_now();
    future.add_done_callback([&] { order.push_back(2); });
    auto third = this->loop.create_task(wait(3));
    co_await yield_now();
    future.set_result();
    co_await first;
    co_await third;
  });
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST_P(FutureTest, ACallbackCanBeTakenBack) {
  auto future = this->loop.template create_future<void>();
  const auto witness = std::make_shared<int>();
  bool called = false;
  Handle handle = future.add_done_callback([&called, witness] { called = true; });
  handle.cancel();
  EXPECT_EQ(witness.use_count(), 1) << "what it captured goes at once";
  future.set_result();
  this->settle();
  EXPECT_FALSE(called);
  EXPECT_TRUE(handle.cancelled());
}

TEST_P(FutureTest, LivesUntilItsCallbacksHaveRun) {
  std::optional<bool> done;
  {
    auto future = this->loop.template create_future<int>();
    detail::FutureCore* core = future.core();
    future.add_done_callback([core, &done] { done = core->done(); });
    future.set_result(1);
  }
  this->settle();
  EXPECT_EQ(done, true);
}

TEST_P(FutureTest, AnExceptionNobodyAskedForIsReported) {
  const Reports reports(this->loop);
  {
    auto future = this->loop.template create_future<int>();
    future.set_exception(std::runtime_error("lost"));
    EXPECT_TRUE(reports.lines().empty()) << "somebody may still ask";
  }
  EXPECT_EQ(reports.lines(), (std::vector<std::string>{"future: lost"}));
}

TEST_P(FutureTest, AnExceptionThatWasAskedForIsNotReported) {
  const Reports reports(this->loop);
  {
    auto future = this->loop.template create_future<int>();
    future.set_exception(std::runtime_error("seen"));
    EXPECT_TRUE(future.exception() != nullptr);
  }
  EXPECT_TRUE(reports.lines().empty());
}

TEST_P(FutureTest, AwaitingOneOfAnotherLoopIsAnError) {
  VirtualBackend other_backend;
  EventLoop other(other_backend);
  auto foreign = other.create_future<int>();
  EXPECT_THROW(this->run([&]() -> Coro<int> { co_return co_await foreign; }), std::logic_error);
}

TEST_P(FutureTest, AwaitingADoneOneDoesNotSuspend) {
  auto future = this->loop.template create_future<int>();
  future.set_result(1);
  bool other_ran = false;
  this->run([&]() -> Coro<void> {
    this->loop.call_soon([&] { other_ran = true; });
    co_await future;
    EXPECT_FALSE(other_ran);
  });
}

TEST_P(FutureTest, CanBeSettledWhileTheLoopIsNotRunning) {
  auto future = this->loop.template create_future<int>();
  int got = 0;
  auto task = this->spawn([&]() -> Coro<void> { got = co_await future; });
  this->settle();
  future.set_result(3);
  EXPECT_EQ(got, 0);
  this->run([&]() -> Coro<void> { co_await task; });
  EXPECT_EQ(got, 3);
}

TEST_P(FutureTest, OnceCancelledItTakesNoResult) {
  auto future = this->loop.template create_future<int>();
  EXPECT_FALSE(future.cancelled());
  EXPECT_TRUE(future.cancel());
  EXPECT_TRUE(future.done());
  EXPECT_THROW(future.set_result(1), InvalidStateError);
  EXPECT_THROW(future.set_exception(std::runtime_error("late")), InvalidStateError);
  EXPECT_FALSE(future.cancel());
}

TEST_P(FutureTest, OnceFailedItTakesNothingElse) {
  auto future = this->loop.template create_future<int>();
  future.set_exception(std::runtime_error("no luck"));
  EXPECT_TRUE(future.done());
  EXPECT_FALSE(future.cancelled());
  EXPECT_THROW(future.set_result(1), InvalidStateError);
  EXPECT_THROW(future.set_exception(std::runtime_error("again")), InvalidStateError);
  EXPECT_FALSE(future.cancel());
  EXPECT_NE(future.exception(), nullptr);
}

TEST_P(FutureTest, WithAResultItHasNoException) {
  auto future = this->loop.template create_future<int>();
  future.set_result(42);
  EXPECT_FALSE(future.cancelled());
  EXPECT_EQ(future.exception(), nullptr);
}

TEST_P(FutureTest, AwaitedTwiceItGivesItsValueTwice) {
  auto future = this->loop.template create_future<int>();
  this->loop.call_soon([future]() mutable { future.set_result(7); });
  this->run([&]() -> Coro<void> {
    EXPECT_EQ(co_await future, 7);
    EXPECT_EQ(co_await future, 7);
  });
}

TEST_P(FutureTest, CallsBackHoweverItEnds) {
  int called = 0;
  auto failed = this->loop.template create_future<int>();
  auto cancelled = this->loop.template create_future<int>();
  failed.add_done_callback([&] { ++called; });
  cancelled.add_done_callback([&] { ++called; });
  failed.set_exception(std::runtime_error("seen"));
  static_cast<void>(failed.exception());
  cancelled.cancel();
  this->settle();
  EXPECT_EQ(called, 2);
}

TEST_P(FutureTest, ACallbackMayAddAndTakeBackOthers) {
  auto future = this->loop.template create_future<void>();
  std::vector<int> order;
  std::vector<Handle> handles(64);
  future.add_done_callback([&] {
    for (std::size_t i = 1; i < handles.size(); i += 2) handles[i].cancel();
    future.add_done_callback([&] { order.push_back(-1); });
  });
  for (std::size_t i = 0; i < handles.size(); ++i) {
    handles[i] = future.add_done_callback([&order, i] { order.push_back(static_cast<int>(i)); });
  }
  future.set_result();
  this->settle();
  this->settle();
  EXPECT_EQ(order.size(), 33u);
  EXPECT_EQ(order.back(), -1);
}

TEST_P(FutureTest, WithoutAnExceptionNothingIsReported) {
  const Reports reports(this->loop);
  { auto abandoned = this->loop.template create_future<int>(); }
  {
    auto unread = this->loop.template create_future<int>();
    unread.set_result(42);
  }
  {
    auto read = this->loop.template create_future<int>();
    read.set_exception(std::runtime_error("boom"));
    EXPECT_THROW(static_cast<void>(read.result()), std::runtime_error);
  }
  EXPECT_TRUE(reports.lines().empty());
}

TEST(Future, MayOutliveItsLoop) {
  VirtualBackend backend;
  Future<int> pending, failed, value;
  const auto witness = std::make_shared<int>();
  Handle handle;
  {
    EventLoop loop(backend);
    pending = loop.create_future<int>();
    handle = pending.add_done_callback([witness] {});
    failed = loop.create_future<int>();
    failed.set_exception(std::runtime_error("never asked for"));
    value = loop.create_future<int>();
    value.set_result(4);
  }
  EXPECT_EQ(value.result(), 4);
  EXPECT_FALSE(pending.done());
  pending = {};
  handle.cancel();
  EXPECT_EQ(witness.use_count(), 1);
}

}  // namespace
}  // namespace argiope
