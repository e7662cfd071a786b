#include "argiope/async/coro.hpp"

#include <memory>
#include <stdexcept>
#include <string>

#include "support/give.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

using CoroTest = LoopTest<VirtualTime>;

Coro<void> mark(bool& marked) {
  marked = true;
  co_return;
}
Coro<int> fail_with(std::string what) {
  throw std::runtime_error(what);
  co_return 0;
}

TEST_F(CoroTest, DoesNothingUntilAwaited) {
  bool marked = false;
  { const Coro<void> never = mark(marked); }
  EXPECT_FALSE(marked);
  run(mark(marked));
  EXPECT_TRUE(marked);
}

TEST_F(CoroTest, RunsAtOnceInTheAwaitingTask) {
  run([]() -> Coro<void> {
    bool marked = false;
    Coro<void> later = mark(marked);
    EXPECT_FALSE(marked);
    co_await std::move(later);
    EXPECT_TRUE(marked);
  });
}

TEST_F(CoroTest, GivesItsValue) {
  EXPECT_EQ(run([]() -> Coro<int> { co_return co_await give(20) + co_await give(22); }), 42);
}

TEST_F(CoroTest, GivesValuesThatCanOnlyBeMoved) {
  const auto boxed = run([]() -> Coro<std::unique_ptr<int>> { co_return std::make_unique<int>(7); });
  EXPECT_EQ(*boxed, 7);
}

TEST_F(CoroTest, GivesValuesThatHaveNoDefault) {
  struct NoDefault {
    explicit NoDefault(int number) : value(number) {}
    int value;
  };
  EXPECT_EQ(run([]() -> Coro<NoDefault> { co_return NoDefault{3}; }).value, 3);
}

TEST_F(CoroTest, ThrowsFromTheAwaitWhatTheFunctionThrew) {
  run([]() -> Coro<void> {
    std::string caught;
    try {
      co_await fail_with("broken");
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "broken");
  });
  EXPECT_THROW(run(fail_with("again")), std::runtime_error);
}

TEST_F(CoroTest, AnExceptionThatIsNotCaughtTravelsThroughEveryCaller) {
  const auto outer = [](auto& self, int depth) -> Coro<int> {
    if (depth == 0) co_return co_await fail_with("deep");
    co_return co_await self(self, depth - 1);
  };
  try {
    run(outer(outer, 100));
    FAIL() << "should have thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "deep");
  }
}

TEST_F(CoroTest, UnwindsItsLocalsWhenItEnds) {
  const auto witness = std::make_shared<int>();
  const auto hold = [](std::shared_ptr<int> held) -> Coro<void> {
    const auto copy = held;
    co_await yield_now();
  };
  run(hold(witness));
  EXPECT_EQ(witness.use_count(), 1);
}

TEST_F(CoroTest, OneThatIsNeverAwaitedFreesItsParameters) {
  const auto witness = std::make_shared<int>();
  const auto hold = [](std::shared_ptr<int>) -> Coro<void> { co_return; };
  {
    const Coro<void> never = hold(witness);
    EXPECT_EQ(witness.use_count(), 2);
  }
  EXPECT_EQ(witness.use_count(), 1);
}

TEST_F(CoroTest, MovesLeaveTheSourceEmpty) {
  Coro<int> first = give(1);
  Coro<int> second = std::move(first);
  EXPECT_FALSE(first);
  ASSERT_TRUE(second);
  EXPECT_EQ(run(std::move(second)), 1);
}

TEST_F(CoroTest, AMillionCompletionsInARowUseNoStack) {
  const long sum = run([]() -> Coro<long> {
    long total = 0;
    for (int i = 0; i < 1'000'000; ++i) total += co_await give(1);
    co_return total;
  });
  EXPECT_EQ(sum, 1'000'000);
}

TEST_F(CoroTest, DeepRecursionUsesTheHeapAndNotTheStack) {
  const auto descend = [](auto& self, int depth) -> Coro<int> {
    if (depth == 0) co_return 0;
    co_return 1 + co_await self(self, depth - 1);
  };
  EXPECT_EQ(run(descend(descend, 200'000)), 200'000);
}

// The everyday patterns that old compilers get wrong (docs/coroutine-pitfalls.md).
TEST_F(CoroTest, CompilesConditionsWithoutLocals) {
  const auto choose = [](int value) -> Coro<int> {
    if (co_await give(value)) co_return 1;
    co_return co_await give(value) ? 2 : co_await give(3);
  };
  EXPECT_EQ(run(choose(1)), 1);
  EXPECT_EQ(run(choose(0)), 3);
}

TEST_F(CoroTest, DestroysTemporariesOfAnAwaitOnce) {
  struct Options {
    std::shared_ptr<int> held;
    int number = 0;
  };
  const auto witness = std::make_shared<int>();
  const auto take = [](Options options) -> Coro<int> { co_return options.number; };
  const auto call = [](auto function) -> Coro<int> { co_return function(); };
  const int sum = run([&]() -> Coro<int> {
    co_return co_await take(Options{.held = witness, .number = 1}) + co_await take({.held = witness, .number = 2}) +
        co_await call([witness] { return 4; });
  });
  EXPECT_EQ(sum, 7);
  EXPECT_EQ(witness.use_count(), 1);
}

}  // namespace
}  // namespace argiope
