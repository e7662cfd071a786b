// or_return: an error passes through coroutines as if each had returned it.
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/sync.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

using Log = std::vector<std::string>;

struct Noted {
  Log& log;
  std::string name;
  Noted(Log& into, std::string what) : log(into), name(std::move(what)) {}
  Noted(const Noted&) = delete;
  ~Noted() { log.push_back("~" + name); }
};

Coro<Result<int>> give_result(int value) {
  co_await yield_now();
  co_return value;
}
Coro<Result<int>> give_at_once(int value) { co_return value; }
Coro<Result<int>> fail_result(std::string message) {
  co_await yield_now();
  co_return fail(Errc::not_found, std::move(message));
}
Coro<Result<int>> fail_at_once(std::string message) { co_return fail(Errc::not_found, std::move(message)); }
Coro<Result<void>> check(bool good) {
  co_await yield_now();
  if (!good) co_return fail(Errc::refused, "not good");
  co_return {};
}

class OrReturn : public OnVirtualLoop {};

TEST_F(OrReturn, GivesTheValue) {
  const auto sum = []() -> Coro<Result<int>> {
    const int a = co_await or_return(give_result(3));
    const int b = co_await or_return(give_at_once(4));
    co_await or_return(check(true));
    co_return a + b + co_await or_return(Result<int>{5});
  };
  EXPECT_EQ(loop_.run_until_complete(sum()), 12);
}

TEST_F(OrReturn, ReturnsTheErrorAndRunsNoFurther) {
  bool went_on = false;
  const auto outer = [&](Coro<Result<int>> inner) -> Coro<Result<std::string>> {
    co_await or_return(std::move(inner));
    went_on = true;
    co_return "value";
  };
  for (const bool at_once : {false, true}) {
    const auto result = loop_.run_until_complete(outer(at_once ? fail_at_once("gone") : fail_result("gone")));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::not_found);
    EXPECT_EQ(result.error().message, "gone");
    EXPECT_FALSE(went_on);
  }
}

TEST_F(OrReturn, PassesOnAResultThatIsThere) {
  const auto outer = [](Result<int> given) -> Coro<Result<void>> {
    co_await or_return(given);
    co_await or_return(std::move(given));
    co_return {};
  };
  EXPECT_TRUE(loop_.run_until_complete(outer(1)));
  const auto result = loop_.run_until_complete(outer(fail(Errc::io, "broken")));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "broken");
}

TEST_F(OrReturn, GivesAndReturnsWhatCanOnlyBeMoved) {
  const auto make = [](bool good) -> Coro<Result<std::unique_ptr<int>>> {
    if (!good) co_return fail(Errc::io, "none");
    co_return std::make_unique<int>(6);
  };
  const auto outer = [&](bool good) -> Coro<Result<std::unique_ptr<int>>> {
    std::unique_ptr<int> value = co_await or_return(make(good));
    ++*value;
    co_return value;
  };
  EXPECT_EQ(**loop_.run_until_complete(outer(true)), 7);
  EXPECT_FALSE(loop_.run_until_complete(outer(false)));
}

TEST_F(OrReturn, DestroysVariablesInnermostFirstBeforeTheCallerRunsOn) {
  Log log;
  const auto inner = [&]() -> Coro<Result<int>> {
    const Noted first(log, "inner 1");
    const Noted second(log, "inner 2");
    const int value = co_await or_return(fail_result("gone"));
    const Noted third(log, "never");
    co_return value;
  };
  const auto middle = [&](Noted& parameter) -> Coro<Result<void>> {
    const Noted variable(log, "middle");
    parameter.name = "parameter";
    {
      const Noted scope(log, "scope");
      co_await or_return(inner());
    }
    co_return {};
  };
  const auto outer = [&]() -> Coro<void> {
    Noted parameter(log, "not yet");
    // Within one expression, too, what is awaited is gone before the next part of it.
    const auto told = [&](Result<void> result) {
      log.push_back(result ? "value" : result.error().message);
      return 0;
    };
    const int done = told(co_await middle(parameter));
    log.push_back("outer goes on" + std::string(static_cast<std::size_t>(done), '!'));
  };
  loop_.run_until_complete(outer());
  EXPECT_EQ(log, (Log{"~inner 2", "~inner 1", "~scope", "~middle", "gone", "outer goes on", "~parameter"}));
}

TEST_F(OrReturn, GivesALockBackBeforeTheCallerWantsIt) {
  Lock lock;
  const auto inner = [&]() -> Coro<Result<void>> {
    const auto held = co_await lock.scoped();
    co_await or_return(check(false));
    co_return {};
  };
  const auto outer = [&]() -> Coro<bool> {
    const auto both = [](bool good, Semaphore::Permit) { return good; };
    co_return both((co_await inner()).has_value(), co_await lock.scoped());
  };
  EXPECT_FALSE(loop_.run_until_complete(outer()));
  EXPECT_FALSE(lock.locked());
}

TEST_F(OrReturn, IsSeenByNoCatchBlock) {
  bool caught = false;
  const auto outer = [&]() -> Coro<Result<int>> {
    try {
      co_return co_await or_return(fail_result("gone"));
    } catch (...) {
      caught = true;
    }
    co_return 0;
  };
  EXPECT_EQ(loop_.run_until_complete(outer()).error().message, "gone");
  EXPECT_FALSE(caught);
}

TEST_F(OrReturn, ThrowsWhatTheAwaitedThrows) {
  Log log;
  const auto inner = [&]() -> Coro<Result<int>> {
    const Noted variable(log, "inner");
    co_await yield_now();
    throw std::length_error("thrown");
  };
  const auto outer = [&]() -> Coro<Result<int>> {
    try {
      co_return co_await or_return(inner());
    } catch (const std::length_error&) {
      log.push_back("caught");
    }
    co_return 9;
  };
  EXPECT_EQ(loop_.run_until_complete(outer()), 9);
  EXPECT_EQ(log, (Log{"~inner", "caught"}));
}

TEST_F(OrReturn, WorksInALoopUntilTheFirstError) {
  const auto count = [](int until_error) -> Coro<Result<int>> {
    int sum = 0;
    for (int i = 0; i < 1000; ++i) {
      if (i == until_error) co_await or_return(Result<void>{fail(Errc::io, std::to_string(sum))});
      sum += co_await or_return(i % 2 == 0 ? give_result(1) : give_at_once(1));
    }
    co_return sum;
  };
  EXPECT_EQ(loop_.run_until_complete(count(-1)), 1000);
  EXPECT_EQ(loop_.run_until_complete(count(500)).error().message, "500");
}

TEST_F(OrReturn, ManyErrorsInARowLeaveTheTaskWhole) {
  const auto inner = [](int i) -> Coro<Result<int>> {
    const std::string local(100, 'x');
    if (i % 3 == 0) co_return co_await or_return(fail_result("every third"));
    co_return co_await or_return(give_result(i));
  };
  const auto outer = [&]() -> Coro<int> {
    int failed = 0;
    for (int i = 0; i < 3000; ++i) failed += !co_await inner(i);
    co_return failed;
  };
  EXPECT_EQ(loop_.run_until_complete(outer()), 1000);
}

// As deep as a recursion of coroutines may be. The error unwinds it level by level, and not on the stack.
Coro<Result<int>> descend(int levels) {
  const std::unique_ptr<int> local = std::make_unique<int>(levels);
  if (levels == 0) co_return fail(Errc::internal, "the bottom");
  co_return *local + co_await or_return(descend(levels - 1));
}
TEST_F(OrReturn, PassesAnErrorThroughManyLevels) {
  EXPECT_EQ(loop_.run_until_complete(descend(100000)).error().message, "the bottom");
}

TEST_F(OrReturn, EndsATask) {
  const auto outer = []() -> Coro<Result<int>> { co_return co_await or_return(fail_result("gone")); };
  for (const Start start : {Start::next_turn, Start::eagerly}) {
    const auto main = [&]() -> Coro<std::string> {
      Task<Result<int>> task = EventLoop::current().create_task(outer(), {}, start);
      co_return (co_await task).error().message;
    };
    EXPECT_EQ(loop_.run_until_complete(main()), "gone");
  }
  const auto at_once = []() -> Coro<Result<int>> { co_return co_await or_return(Result<int>{fail(Errc::io, "now")}); };
  EXPECT_EQ(loop_.run_until_complete(at_once()).error().message, "now");
  EXPECT_EQ(loop_.task_count(), 0u);
}

TEST_F(OrReturn, WorksInATimeoutAndInAGroup) {
  const auto outer = []() -> Coro<Result<int>> {
    co_return co_await or_return(wait_for(give_result(2), 1s)) + co_await or_return(wait_for(fail_result("late"), 1s));
  };
  const auto main = [&]() -> Coro<void> {
    Task<Result<int>> task;
    co_await TaskGroup::run([&](TaskGroup& group) -> Coro<void> {
      task = group.create_task(outer());
      co_return;
    });
    EXPECT_EQ(task.result().error().message, "late");
  };
  loop_.run_until_complete(main());
}

TEST_F(OrReturn, ACancelledAwaitThrowsAndUnwindsAsEver) {
  for (int steps = 0; steps < 3; ++steps) {
    Log log;
    bool waited = false;
    const auto inner = [&]() -> Coro<Result<int>> {
      const Noted variable(log, "inner");
      waited = true;
      co_await sleep(1h);
      co_return 1;
    };
    const auto outer = [&]() -> Coro<Result<int>> {
      const Noted variable(log, "outer");
      const int value = co_await or_return(inner());
      log.push_back("went on");
      co_return value;
    };
    const auto main = [&]() -> Coro<void> {
      auto task = EventLoop::current().create_task(outer());
      for (int i = 0; i < steps; ++i) co_await yield_now();
      task.cancel();
      EXPECT_THROW((void)co_await task, CancelledError);
    };
    loop_.run_until_complete(main());
    EXPECT_EQ(log, waited ? (Log{"~inner", "~outer"}) : Log{});
    if (steps == 0) EXPECT_FALSE(waited);
  }
}

TEST_F(OrReturn, ALoopThatEndsUnwindsWhatAwaits) {
  Log log;
  const auto inner = [&]() -> Coro<Result<int>> {
    const Noted variable(log, "inner");
    co_await sleep(1h);
    co_return 1;
  };
  const auto outer = [&]() -> Coro<Result<int>> {
    const Noted variable(log, "outer");
    co_return co_await or_return(inner());
  };
  {
    EventLoop loop(backend_);
    loop.create_task(outer());
    loop.run_once(TimePoint::min());
  }
  EXPECT_EQ(log, (Log{"~inner", "~outer"}));
}

TEST_F(OrReturn, DebugModeWarnsOfOneThatNobodyAwaits) {
  Log warnings;
  loop_.set_debug(true);
  loop_.set_warning_handler([&](std::string_view message) { warnings.emplace_back(message); });
  const auto main = []() -> Coro<Result<void>> {
    static_cast<void>(or_return(give_result(1)));
    co_return {};
  };
  EXPECT_TRUE(loop_.run_until_complete(main()));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("never awaited"), std::string::npos) << warnings[0];
}

// --- value_or_throw

TEST(ValueOrThrow, GivesTheValueOrThrowsItsError) {
  EXPECT_EQ(value_or_throw(Result<int>{4}), 4);
  EXPECT_EQ(*value_or_throw(Result<std::unique_ptr<int>>{std::make_unique<int>(5)}), 5);
  value_or_throw(Result<void>{});
  const Result<int> kept = 6;
  EXPECT_EQ(value_or_throw(kept), 6);
  try {
    value_or_throw(Result<void>{fail(Errc::disk_full, "the disk is full")});
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, Errc::disk_full);
    EXPECT_STREQ(failure.what(), "the disk is full");
  }
}

}  // namespace
}  // namespace argiope
