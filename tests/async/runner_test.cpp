#include <signal.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/threads.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

// A backend of each kind; the loop is the runner's.
template <class World>
class RunnerTest : public ::testing::Test {
 public:
  World world;
};
using Backends = ::testing::Types<RealTime, VirtualTime>;
TYPED_TEST_SUITE(RunnerTest, Backends, WorldNames);

Coro<int> yield_and_give(int value) {
  co_await yield_now();
  co_return value;
}

bool has_default_sigint() {
  struct sigaction current {};
  ::sigaction(SIGINT, nullptr, &current);
  return current.sa_handler == SIG_DFL;
}

TYPED_TEST(RunnerTest, RunGivesTheResultAndEndsTheLoop) { EXPECT_EQ(run(this->world.backend, yield_and_give(7)), 7); }

TYPED_TEST(RunnerTest, PassesOnTheException) {
  const auto fail = []() -> Coro<void> {
    co_await yield_now();
    throw std::runtime_error("main");
  };
  EXPECT_THROW(run(this->world.backend, fail()), std::runtime_error);
}

TYPED_TEST(RunnerTest, RunsSeveralOnTheSameLoop) {
  Runner runner(this->world.backend);
  EventLoop* const loop = &runner.loop();
  const auto which = []() -> Coro<EventLoop*> { co_return &EventLoop::current(); };
  EXPECT_EQ(runner.run(which()), loop);
  EXPECT_EQ(runner.run(which()), loop);
}

TYPED_TEST(RunnerTest, TheMainTaskHasAName) {
  const auto name = []() -> Coro<std::string> { co_return std::string(current_task().name()); };
  EXPECT_EQ(run(this->world.backend, name()), "main");
}

TYPED_TEST(RunnerTest, CloseCancelsWhatIsLeftAndLetsItEnd) {
  bool cleaned_up = false;
  const auto left = [&]() -> Coro<void> {
    try {
      co_await sleep(1h);
    } catch (const CancelledError&) {
    }
    co_await yield_now();
    cleaned_up = true;
  };
  const auto main = [&]() -> Coro<void> {
    EventLoop::current().create_task(left());
    co_await yield_now();
  };
  run(this->world.backend, main());
  EXPECT_TRUE(cleaned_up);
}

TYPED_TEST(RunnerTest, WhatIsThrownWhileClosingIsReported) {
  std::vector<std::string> reports;
  const auto left = []() -> Coro<void> {
    try {
      co_await sleep(1h);
    } catch (const CancelledError&) {
      throw std::runtime_error("in the end");
    }
  };
  const auto main = [&]() -> Coro<void> {
    EventLoop::current().create_task(left(), "left");
    co_await yield_now();
  };
  Runner runner(this->world.backend);
  runner.loop().set_exception_handler(
      [&](std::string_view where, const std::exception_ptr&) { reports.emplace_back(where); });
  runner.run(main());
  runner.close();
  EXPECT_EQ(reports, (std::vector<std::string>{"left"}));
}

TYPED_TEST(RunnerTest, ClosedItRunsNothingMore) {
  Runner runner(this->world.backend);
  runner.close();
  runner.close();
  EXPECT_THROW(runner.loop(), std::logic_error);
  EXPECT_THROW(runner.run(yield_and_give(1)), std::logic_error);
}

TYPED_TEST(RunnerTest, CloseWaitsForTheDefaultExecutor) {
  std::atomic<bool> finished{false};
  const auto main = [&]() -> Coro<void> {
    co_await to_thread([] {});
    static_cast<void>(to_thread([&] { finished = true; }));
  };
  run(this->world.backend, main());
  EXPECT_TRUE(finished);
}

// --- SIGINT

TYPED_TEST(RunnerTest, SigintCancelsTheMainTaskAndIsThrown) {
  bool cleaned_up = false;
  const auto main = [&]() -> Coro<void> {
    EventLoop::current().call_soon([] { ::raise(SIGINT); });
    try {
      co_await sleep(1h);
    } catch (const CancelledError&) {
      cleaned_up = true;
      throw;
    }
  };
  Runner runner(this->world.backend);
  EXPECT_THROW(runner.run(main()), KeyboardInterrupt);
  EXPECT_TRUE(cleaned_up);
  EXPECT_TRUE(has_default_sigint());
  EXPECT_EQ(runner.run(yield_and_give(2)), 2) << "the runner goes on";
}

TYPED_TEST(RunnerTest, AMainTaskMaySwallowSigint) {
  const auto main = []() -> Coro<int> {
    EventLoop::current().call_soon([] { ::raise(SIGINT); });
    try {
      co_await sleep(1h);
    } catch (const CancelledError&) {
    }
    co_return 3;
  };
  EXPECT_EQ(run(this->world.backend, main()), 3);
}

TYPED_TEST(RunnerTest, ACancellationThatCameWithSigintStaysOne) {
  const auto main = []() -> Coro<void> {
    AnyTask self = current_task();
    EventLoop::current().call_soon([self]() mutable {
      self.cancel("from within");
      ::raise(SIGINT);
    });
    try {
      co_await sleep(1h);
    } catch (const CancelledError&) {
    }
    co_await sleep(1h);  // where the signal's cancellation strikes, however late it comes
  };
  EXPECT_THROW(run(this->world.backend, main()), CancelledError);
}

TYPED_TEST(RunnerTest, ASecondSigintDoesNotWaitForTheMainTask) {
  bool ended = false;
  const auto main = [&]() -> Coro<void> {
    EventLoop::current().call_soon([] { ::raise(SIGINT); });
    try {
      co_await sleep(1h);
    } catch (const CancelledError&) {
    }
    EventLoop::current().call_soon([] { ::raise(SIGINT); });
    try {
      co_await sleep(1h);
    } catch (const CancelledError&) {
      ended = true;
      throw;
    }
  };
  Runner runner(this->world.backend);
  EXPECT_THROW(runner.run(main()), KeyboardInterrupt);
  EXPECT_FALSE(ended);
  runner.close();
  EXPECT_TRUE(ended) << "closing cancels it once more";
}

TYPED_TEST(RunnerTest, ASigintHandlerOfTheProgramsOwnStays) {
  int seen = 0;
  const auto main = [&]() -> Coro<void> {
    EventLoop& loop = EventLoop::current();
    loop.add_signal_handler(SIGINT, [&] { ++seen; });
    ::raise(SIGINT);
    co_await sleep(1ms);
  };
  Runner runner(this->world.backend);
  runner.run(main());
  EXPECT_EQ(seen, 1);
  EXPECT_FALSE(has_default_sigint()) << "replaced within run(), it is not run()'s to remove";
  runner.run(yield_and_give(1));
  EXPECT_FALSE(has_default_sigint()) << "there before run(), it is left alone";
  runner.close();
  EXPECT_TRUE(has_default_sigint());
}

TYPED_TEST(RunnerTest, SigintEndsAMainThatYieldsWithoutWaiting) {
  int turns = 0;
  const auto main = [&]() -> Coro<void> {
    for (;;) {
      if (++turns == 10) ::raise(SIGINT);
      co_await yield_now();
    }
  };
  Runner runner(this->world.backend);
  EXPECT_THROW(runner.run(main()), KeyboardInterrupt);
}

TYPED_TEST(RunnerTest, SigintCancelsTheFutureThatMainAwaits) {
  Runner runner(this->world.backend);
  auto future = runner.loop().template create_future<int>();
  const auto main = [](Future<int> awaited) -> Coro<void> {
    EventLoop::current().call_soon([] { ::raise(SIGINT); });
    co_await awaited;
  };
  EXPECT_THROW(runner.run(main(future)), KeyboardInterrupt);
  EXPECT_TRUE(future.cancelled());
}

TYPED_TEST(RunnerTest, OtherThreadsThanTheMainOneLeaveSigintAlone) {
  const auto main = [](bool& has_default) -> Coro<void> {
    has_default = has_default_sigint();
    co_await yield_now();
  };
  bool has_default_here = true, has_default_there = false;
  Runner runner(this->world.backend);
  runner.run(main(has_default_here));
  EXPECT_FALSE(has_default_here);
  std::thread([&] { run(main(has_default_there)); }).join();
  EXPECT_TRUE(has_default_there);
}

TYPED_TEST(RunnerTest, SeveralThreadsMayRunAtOnceEachItsOwn) {
  std::atomic<int> sum{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i <= 8; ++i) threads.emplace_back([&sum, i] { sum += run(yield_and_give(i)); });
  }
  EXPECT_EQ(sum, 36);
}

TYPED_TEST(RunnerTest, SigintThatComesAsMainBeginsEndsIt) {
  const auto main = []() -> Coro<void> { co_await sleep(1h); };
  Runner runner(this->world.backend);
  runner.loop().call_soon([] { ::raise(SIGINT); });
  EXPECT_THROW(runner.run(main()), KeyboardInterrupt);
  EXPECT_EQ(runner.run(yield_and_give(4)), 4);
}

TYPED_TEST(RunnerTest, DebugModeIsOnWhenAskedFor) {
  const auto is_on = []() -> Coro<bool> { co_return EventLoop::current().get_debug(); };
  for (const bool on : {false, true}) {
    Runner runner(this->world.backend, on);
    EXPECT_EQ(runner.loop().get_debug(), on);
    EXPECT_EQ(runner.run(is_on()), on);
  }
}

TYPED_TEST(RunnerTest, DoesNotRunFromWithinItsOwnRun) {
  Runner runner(this->world.backend);
  bool inner_ran = false;
  const auto inner = [&]() -> Coro<void> {
    inner_ran = true;
    co_return;
  };
  const auto main = [&]() -> Coro<void> {
    EXPECT_THROW(runner.run(inner()), std::logic_error);
    for (int i = 0; i < 4; ++i) co_await yield_now();
  };
  runner.run(main());
  EXPECT_FALSE(inner_ran) << "what was refused is not run behind the caller's back";
  EXPECT_EQ(runner.run(yield_and_give(2)), 2);
}

TYPED_TEST(RunnerTest, RefusesAnEmptyCoroutineAndGoesOn) {
  Runner runner(this->world.backend);
  EXPECT_THROW(runner.run(Coro<int>{}), std::invalid_argument);
  EXPECT_EQ(runner.run(yield_and_give(3)), 3);
}

TYPED_TEST(RunnerTest, WhatIsLeftWhenMainFailsIsEndedTooAndMainsFailureIsThrown) {
  bool ended = false;
  std::vector<std::string> reports;
  const auto left = [&]() -> Coro<void> {
    try {
      co_await sleep(1h);
    } catch (const CancelledError&) {
      ended = true;
      throw std::runtime_error("in the end");
    }
  };
  const auto main = [&]() -> Coro<void> {
    EventLoop& loop = EventLoop::current();
    loop.set_exception_handler([&](std::string_view where, const std::exception_ptr&) { reports.emplace_back(where); });
    loop.create_task(left(), "left");
    co_await yield_now();
    throw std::length_error("main");
  };
  EXPECT_THROW(run(this->world.backend, main()), std::length_error);
  EXPECT_TRUE(ended);
  EXPECT_EQ(reports, (std::vector<std::string>{"left"}));
}

}  // namespace
}  // namespace argiope
