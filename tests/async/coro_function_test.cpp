// What takes a function that returns a Coro keeps it: create_task, run and the like, with all that a lambda captures.
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/threads.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

// Notes its destruction; by move it is one and the same.
class Captured {
 public:
  Captured(std::vector<std::string>& log, std::string name) : log_(&log), name_(std::move(name)) {}
  Captured(Captured&& other) noexcept : log_(std::exchange(other.log_, nullptr)), name_(std::move(other.name_)) {}
  Captured& operator=(Captured&&) = delete;
  ~Captured() {
    if (log_ != nullptr) log_->push_back(name_ + " destroyed");
  }
  const std::string& name() const noexcept { return name_; }

 private:
  std::vector<std::string>* log_;
  std::string name_;
};

using Log = std::vector<std::string>;

Coro<std::string> joined(std::string first, const std::string& second) {
  co_await yield_now();
  co_return first + " " + second;
}
Coro<int> unboxed(std::unique_ptr<int> box) {
  co_await yield_now();
  co_return *box;
}
Coro<void> append(std::string& to, char letter) {
  co_await yield_now();
  to += letter;
}
Coro<int> forty_two() { co_return 42; }

class CoroFunctionTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(, CoroFunctionTest, kAllWorlds, world_name);

TEST_P(CoroFunctionTest, ATemporaryLambdaLivesUntilItsCoroutineHasEnded) {
  Log log;
  Task<void> task = this->loop.create_task([&log, captured = Captured(log, "capture")]() -> Coro<void> {
    log.push_back("starts with " + captured.name());
    co_await let_others_run();
    log.push_back("ends with " + captured.name());
  });
  this->loop.run_until_complete([&]() -> Coro<void> {
    co_await task;
    log.push_back("awaited");
  });
  EXPECT_EQ(log, (Log{"starts with capture", "ends with capture", "capture destroyed", "awaited"}));
}

TEST_P(CoroFunctionTest, ItIsDestroyedAfterTheCoroutinesOwnVariables) {
  Log log;
  this->run([&]() -> Coro<void> {
    co_await this->loop.create_task([&log, captured = Captured(log, "capture")]() -> Coro<void> {
      const Captured local(log, "local of " + captured.name());
      co_await yield_now();
    });
  });
  EXPECT_EQ(log, (Log{"local of capture destroyed", "capture destroyed"}));
}

TEST_P(CoroFunctionTest, ItIsDestroyedWhenTheCoroutineThrows) {
  Log log;
  auto task = this->loop.create_task([captured = Captured(log, "capture")]() -> Coro<int> {
    co_await yield_now();
    throw std::runtime_error("with " + captured.name());
  });
  this->settle();
  EXPECT_EQ(log, (Log{"capture destroyed"}));
  try {
    static_cast<void>(task.result());
    FAIL() << "should have thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "with capture");
  }
}

TEST_P(CoroFunctionTest, CancelledInItsWaitTheCoroutineStillHasItsCaptures) {
  Log log;
  auto task = this->loop.create_task([&log, captured = Captured(log, "capture")]() -> Coro<void> {
    try {
      co_await sleep(1h);
    } catch (const CancelledError&) {
      log.push_back("cancelled with " + captured.name());
      throw;
    }
  });
  this->settle();
  task.cancel();
  this->settle();
  EXPECT_TRUE(task.cancelled());
  EXPECT_EQ(log, (Log{"cancelled with capture", "capture destroyed"}));
}

TEST_P(CoroFunctionTest, CancelledBeforeItsFirstStepItIsDestroyedUncalled) {
  Log log;
  auto task = this->loop.create_task([&log, captured = Captured(log, "capture")]() -> Coro<void> {
    log.push_back("called with " + captured.name());
    co_return;
  });
  task.cancel();
  this->settle();
  EXPECT_TRUE(task.cancelled());
  EXPECT_EQ(log, (Log{"capture destroyed"}));
}

TEST_P(CoroFunctionTest, TheEndOfTheLoopDestroysItAfterItsCoroutine) {
  Log log;
  {
    VirtualBackend backend;
    EventLoop other(backend);
    static_cast<void>(other.create_task([&log, captured = Captured(log, "capture")]() -> Coro<void> {
      const Captured local(log, "local of " + captured.name());
      co_await sleep(1h);
    }));
    static_cast<void>(other.create_task([captured = Captured(log, "uncalled")]() -> Coro<void> { co_return; }));
    other.run_once(TimePoint::min());
    static_cast<void>(other.create_task([captured = Captured(log, "late")]() -> Coro<void> { co_return; }));
    EXPECT_EQ(log, (Log{"uncalled destroyed"}));
  }
  EXPECT_EQ(log, (Log{"uncalled destroyed", "local of capture destroyed", "capture destroyed", "late destroyed"}));
}

TEST_P(CoroFunctionTest, WhatTheCallItselfThrowsIsTheTasks) {
  Log log;
  auto task = this->loop.create_task([captured = Captured(log, "capture")]() -> Coro<void> {
    if (!captured.name().empty()) throw std::runtime_error("no coroutine yet");
    return sleep_for(1ms);
  });
  EXPECT_TRUE(log.empty());
  this->settle();
  EXPECT_THROW(task.result(), std::runtime_error);
  EXPECT_EQ(log, (Log{"capture destroyed"}));
}

TEST_P(CoroFunctionTest, AnEmptyFunctionMakesNoTask) {
  EXPECT_THROW(static_cast<void>(this->loop.create_task(std::function<Coro<void>()>{})), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(this->loop.create_task(std::move_only_function<Coro<int>()>{})),
               std::invalid_argument);
  Coro<int> (*const nothing)() = nullptr;
  EXPECT_THROW(static_cast<void>(this->loop.create_task(nothing)), std::invalid_argument);
  EXPECT_EQ(this->loop.task_count(), 0u);
}

TEST_P(CoroFunctionTest, AnEmptyCoroOfItIsTheTasksFailure) {
  auto task = this->loop.create_task([] { return Coro<int>{}; });
  this->settle();
  EXPECT_THROW(static_cast<void>(task.result()), std::invalid_argument);
}

TEST_P(CoroFunctionTest, CapturesMayBeMovableOnly) {
  auto box = std::make_unique<int>(7);
  EXPECT_EQ(this->loop.run_until_complete([box = std::move(box)]() -> Coro<int> {
    co_await yield_now();
    co_return *box;
  }),
            7);
}

TEST_P(CoroFunctionTest, ResultsMayBeMovableOnly) {
  const auto box = this->loop.run_until_complete([]() -> Coro<std::unique_ptr<int>> {
    co_await yield_now();
    co_return std::make_unique<int>(8);
  });
  EXPECT_EQ(*box, 8);
}

TEST_P(CoroFunctionTest, ArgumentsAreBoundToAFunction) {
  // `second` is a reference to what is bound, which lives as long.
  auto words = this->loop.create_task(
      std::bind_front(&joined, "one", std::string("a string that is longer than it has room for")));
  auto moved = this->loop.create_task(std::bind_front(&unboxed, std::make_unique<int>(9)));
  std::string letters;
  auto referred = this->loop.create_task(std::bind_front(&append, std::ref(letters), 'x'));
  this->settle();
  EXPECT_EQ(words.result(), "one a string that is longer than it has room for");
  EXPECT_EQ(moved.result(), 9);
  EXPECT_EQ(letters, "x");
}

TEST_P(CoroFunctionTest, AMemberFunctionIsBoundToItsObject) {
  struct Shop {
    int sold = 0;
    Coro<void> sell(int pieces) {
      co_await yield_now();
      sold += pieces;
    }
  } shop;
  auto task = this->loop.create_task(std::bind_front(&Shop::sell, &shop, 3));
  this->settle();
  EXPECT_TRUE(task.done());
  EXPECT_EQ(shop.sold, 3);
}

TEST_P(CoroFunctionTest, AnObjectThatCanOnlyBeCalledByItsNameIsTakenToo) {
  struct Counter {
    int calls = 0;
    Coro<int> operator()() & { co_return ++calls; }
  };
  EXPECT_EQ(this->loop.run_until_complete(Counter{}), 1);
}

TEST_P(CoroFunctionTest, APlainFunctionNeedsNoCall) {
  EXPECT_EQ(this->loop.run_until_complete(&forty_two), 42);
  EXPECT_EQ(this->loop.run_until_complete(forty_two), 42);
}

TEST_P(CoroFunctionTest, TheTaskHasItsNameAndStartsEagerlyWhenAsked) {
  this->run([&]() -> Coro<void> {
    Log log;
    Task<int> task = this->loop.create_task(
        [&log, captured = Captured(log, "capture")]() -> Coro<int> {
          log.push_back("first step");
          co_await yield_now();
          co_return 5;
        },
        "eager", Start::eagerly);
    EXPECT_EQ(log, (Log{"first step"}));
    EXPECT_EQ(task.name(), "eager");
    EXPECT_EQ(co_await task, 5);
    EXPECT_EQ(log, (Log{"first step", "capture destroyed"}));
  });
}

TEST_P(CoroFunctionTest, ItMayReturnAResultThatEndsByAnError) {
  const Result<int> result = this->loop.run_until_complete([text = std::string("why")]() -> Coro<Result<int>> {
    co_await yield_now();
    co_return fail(Errc::invalid_input, text);
  });
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "why");
}

TEST_P(CoroFunctionTest, AGroupKeepsTheFunctionsOfItsTasks) {
  Log log;
  this->run([&]() -> Coro<void> {
    co_await TaskGroup::run([&log](TaskGroup& group) {
      for (const char* name : {"one", "two"}) {
        group.create_task([&log, captured = Captured(log, name)]() -> Coro<void> {
          co_await let_others_run();
          log.push_back("ends with " + captured.name());
        });
      }
    });
    log.push_back("group ended");
  });
  EXPECT_EQ(sorted_if_shuffled(log),
            sorted_if_shuffled(Log{"ends with one", "one destroyed", "ends with two", "two destroyed", "group ended"}));
}

TEST_P(CoroFunctionTest, AGroupThatIsCancelledRefusesAndDropsIt) {
  Log log;
  this->run([&]() -> Coro<void> {
    auto group_of_one = this->loop.create_task([&log]() -> Coro<void> {
      co_await TaskGroup::run([&log](TaskGroup& group) -> Coro<void> {
        try {
          co_await sleep(1h);
        } catch (const CancelledError&) {
        }
        group.create_task([]() -> Coro<void> {
          throw std::runtime_error("broken");
          co_return;
        });
        try {
          co_await sleep(1h);
        } catch (const CancelledError&) {
        }
        EXPECT_THROW(group.create_task([captured = Captured(log, "refused")]() -> Coro<void> { co_return; }),
                     std::logic_error);
      });
    });
    co_await let_others_run();
    group_of_one.cancel();
    EXPECT_THROW(co_await group_of_one, ExceptionGroup);
  });
  EXPECT_EQ(log, (Log{"refused destroyed"}));
}

TEST(CoroFunction, RunKeepsItUntilItsCoroutineHasEnded) {
  Log log;
  VirtualBackend backend;
  EXPECT_EQ(run(backend,
                [&log, captured = Captured(log, "capture")]() -> Coro<int> {
                  co_await sleep(1h);
                  log.push_back("ends with " + captured.name());
                  co_return 6;
                }),
            6);
  EXPECT_EQ(log, (Log{"ends with capture", "capture destroyed"}));
  EXPECT_EQ(run(forty_two), 42);
  EXPECT_EQ(run([] { return forty_two(); }), 42);
}

TEST(CoroFunction, WhatARunnerLeavesUnfinishedKeepsIt) {
  Log log;
  VirtualBackend backend;
  {
    Runner runner(backend);
    EXPECT_THROW(runner.run([&runner, captured = Captured(log, "capture")]() -> Coro<void> {
      runner.loop().stop();
      co_await sleep(1h);
    }),
                 std::runtime_error);
    EXPECT_TRUE(log.empty()) << "it is a task still";
    EXPECT_EQ(runner.run(forty_two), 42);
  }
  EXPECT_EQ(log, (Log{"capture destroyed"}));
}

TEST(CoroFunction, AnotherThreadMayHandOneOver) {
  Log log;
  const std::thread::id here = std::this_thread::get_id();
  AsioBackend backend;
  EventLoop loop(backend);
  auto ended = loop.create_future<int>();
  std::thread other([&] {
    auto result = run_coroutine_threadsafe(
        [here, captured = Captured(log, "capture")]() -> Coro<int> {
          EXPECT_EQ(std::this_thread::get_id(), here);
          co_await yield_now();
          co_return static_cast<int>(captured.name().size());
        },
        loop);
    const int size = result.get();
    EXPECT_EQ(log, (Log{"capture destroyed"}));
    loop.call_soon_threadsafe([&ended, size] { ended.set_result(size); });
  });
  EXPECT_EQ(loop.run_until_complete(ended), 7);
  other.join();
}

TEST(CoroFunction, OneHandedOverToALoopThatEndsIsDestroyedWithIt) {
  Log log;
  VirtualBackend backend;
  std::optional<ThreadsafeFuture<void>> unmet;
  {
    EventLoop loop(backend);
    unmet = run_coroutine_threadsafe([captured = Captured(log, "capture")]() -> Coro<void> { co_return; }, loop);
  }
  EXPECT_EQ(log, (Log{"capture destroyed"}));
  EXPECT_THROW(unmet->get(), CancelledError);
}

}  // namespace
}  // namespace argiope
