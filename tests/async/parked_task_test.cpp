// What a task that waits takes of memory, and what holds although it is little: names, messages and exceptions have no
// room of their own in it.
#include <malloc.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class ParkedTaskTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, ParkedTaskTest, kAllWorlds, world_name);
using ParkedTaskMemoryTest = LoopTest<VirtualTime>;
using CoroutineExceptionTest = LoopTest<VirtualTime>;

Coro<void> park(Event& event) { co_await event.wait(); }
Coro<int> yield_and_fail(std::string what) {
  co_await yield_now();
  throw std::runtime_error(what);
}
Coro<int> fail_deep_down(int depth, std::string what) {
  if (depth == 0) co_return co_await yield_and_fail(what);
  co_return co_await fail_deep_down(depth - 1, what);
}

#ifndef ARGIOPE_NO_FRAME_POOL
std::size_t allocated_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// As many as the ready ring has room for: it grows by doubling, and what it does not use is not resident.
TEST_F(ParkedTaskMemoryTest, ATaskThatWaitsForAnEventTakesAtMost192Bytes) {
  run([&]() -> Coro<void> {
    constexpr std::size_t kTasks = (1 << 17) - 10;
    Event event;
    std::vector<Task<void>> tasks;
    tasks.reserve(kTasks);
    const std::size_t before = allocated_bytes();
    for (std::size_t i = 0; i < kTasks; ++i) tasks.push_back(loop.create_task(park(event)));
    co_await yield_now();
    EXPECT_LE((allocated_bytes() - before) / kTasks + sizeof(Task<void>), 192u);
    event.set();
    for (Task<void>& task : tasks) co_await task;
  });
}
#endif

TEST_P(ParkedTaskTest, KeepsItsNameWhenItIsCancelledWithAMessage) {
  this->run([&]() -> Coro<void> {
    Event event;
    Task<void> named = this->loop.create_task(park(event), "porter");
    Task<void> nameless = this->loop.create_task(park(event));
    co_await let_others_run();
    for (Task<void>* task : {&named, &nameless}) task->cancel("closing time");
    EXPECT_EQ(named.name(), "porter");
    EXPECT_EQ(nameless.name(), "task");
    for (Task<void>* task : {&named, &nameless}) {
      try {
        co_await *task;
        ADD_FAILURE() << "not cancelled";
      } catch (const CancelledError& error) {
        EXPECT_STREQ(error.what(), "closing time");
      }
    }
    EXPECT_EQ(named.name(), "porter");
  });
}

TEST_P(ParkedTaskTest, TheLastOfSeveralMessagesIsTheOneThrown) {
  this->run([&]() -> Coro<void> {
    for (const std::string last : {"second", ""}) {
      Task<void> task = this->loop.create_task(let_others_run());
      task.cancel("first");
      task.cancel(last);
      EXPECT_EQ(task.cancelling(), 2);
      try {
        co_await task;
        ADD_FAILURE() << "not cancelled";
      } catch (const CancelledError& error) {
        EXPECT_EQ(std::string(error.what()), last.empty() ? "cancelled" : last);
      }
    }
  });
}

TEST_P(ParkedTaskTest, ItsResultIsItsCoroutinesToSet) {
  this->run([&]() -> Coro<void> {
    Event event;
    Task<int> task = this->loop.create_task(keeping([&]() -> Coro<int> {
      co_await event.wait();
      co_return 7;
    }));
    Future<int> same = task;
    co_await let_others_run();
    EXPECT_THROW(same.set_result(1), std::logic_error);
    EXPECT_THROW(same.set_exception(std::runtime_error("no")), std::logic_error);
    EXPECT_FALSE(same.done());
    event.set();
    EXPECT_EQ(co_await same, 7);
    EXPECT_THROW(same.set_result(1), InvalidStateError);
  });
}

TEST_P(ParkedTaskTest, AFutureTellsItsWaitersAndCallbacksInTheOrderTheyCame) {
  if (shuffled()) GTEST_SKIP() << "about the order";
  std::vector<int> told;
  this->run([&]() -> Coro<void> {
    auto future = this->loop.template create_future<int>();
    const auto wait = [&](int number) -> Coro<void> { told.push_back(number + co_await future); };
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 3; ++i) {
      tasks.push_back(this->loop.create_task(wait(10 * i)));
      co_await let_others_run();
      future.add_done_callback([&told, i] { told.push_back(10 * i + 5); });
    }
    future.set_result(1);
    for (Task<void>& task : tasks) co_await task;
  });
  EXPECT_EQ(told, (std::vector{1, 5, 11, 15, 21, 25}));
}

// Frames of tasks that wait are destroyed, first, middle and last, while the future is pending and outlives them.
TEST(ParkedTask, AFutureOutlivesTheTasksThatWaitForIt) {
  std::optional<Future<int>> future;
  const auto witness = std::make_shared<int>();
  {
    VirtualBackend backend;
    EventLoop loop(backend);
    future = loop.create_future<int>();
    for (int i = 0; i < 3; ++i) {
      static_cast<void>(loop.create_task([](Future<int> awaited) -> Coro<void> { co_await awaited; }(*future)));
      future->add_done_callback([witness] {});
    }
    loop.run_once(TimePoint::min());
    EXPECT_EQ(loop.task_count(), 3u);
  }
  EXPECT_FALSE(future->done());
  EXPECT_EQ(witness.use_count(), 4);
  future.reset();
  EXPECT_EQ(witness.use_count(), 1);
}

TEST_P(ParkedTaskTest, AnEventMayBeAwaitedTwiceThroughOneAwaiter) {
  this->run([&]() -> Coro<void> {
    Event event;
    Task<void> task = this->loop.create_task(keeping([&]() -> Coro<void> {
      auto wait = event.wait();
      co_await wait;
      event.clear();
      co_await wait;
    }));
    co_await let_others_run();
    event.set();
    co_await let_others_run();
    EXPECT_FALSE(task.done());
    task.cancel();
    co_await let_others_run();
    EXPECT_TRUE(task.cancelled());
  });
}

// --- exceptions on their way from a coroutine to its caller

TEST_F(CoroutineExceptionTest, TravelsThroughEveryCallerToTheTask) {
  Task<int> task = loop.create_task(fail_deep_down(20, "deep"));
  settle();
  try {
    task.result();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "deep");
  }
}

TEST_F(CoroutineExceptionTest, AHandlerMayAwaitWhatThrowsItself) {
  run([]() -> Coro<void> {
    std::string noted;
    std::exception_ptr first;
    try {
      co_await yield_and_fail("first");
    } catch (const std::runtime_error&) {
      first = std::current_exception();
    }
    try {
      co_await fail_deep_down(3, "second");
    } catch (const std::runtime_error& error) {
      noted = error.what();
    }
    EXPECT_EQ(noted, "second");
    EXPECT_EQ(co_await keeping([]() -> Coro<int> { co_return 3; }), 3);
    try {
      std::rethrow_exception(first);
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "first");
    }
  });
}

TEST_F(CoroutineExceptionTest, ThoseOfSeveralTasksDoNotMeet) {
  run([&]() -> Coro<void> {
    std::vector<Task<std::string>> tasks;
    for (int i = 0; i < 50; ++i) {
      tasks.push_back(loop.create_task([](int number) -> Coro<std::string> {
        std::exception_ptr held;
        try {
          co_await fail_deep_down(number % 7, std::to_string(number));
        } catch (...) {
          held = std::current_exception();
        }
        co_await yield_now();
        try {
          std::rethrow_exception(held);
        } catch (const std::runtime_error& error) {
          co_return error.what();
        }
      }(i)));
    }
    for (int i = 0; i < 50; ++i) EXPECT_EQ(co_await tasks[static_cast<std::size_t>(i)], std::to_string(i));
  });
}

// Its destructors run another loop, whose tasks throw, while the coroutine's own exception is on its way.
TEST_F(CoroutineExceptionTest, ALoopThatRunsWhileAFrameUnwindsDoesNotDisturbIt) {
  struct RunsALoop {
    ~RunsALoop() {
      VirtualBackend backend;
      EventLoop inner(backend);
      EXPECT_THROW(inner.run_until_complete(fail_deep_down(2, "inner")), std::runtime_error);
    }
  };
  run([]() -> Coro<void> {
    const auto outer = [](std::unique_ptr<RunsALoop> parameter) -> Coro<int> {
      const RunsALoop local;
      EXPECT_NE(parameter, nullptr);
      throw std::logic_error("outer");
      co_return 0;
    };
    try {
      co_await outer(std::make_unique<RunsALoop>());
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::logic_error& error) {
      EXPECT_STREQ(error.what(), "outer");
    }
  });
}

TEST_F(CoroutineExceptionTest, AValueThatThrowsAsItIsReturnedIsTheCoroutinesFailure) {
  struct Thrower {
    explicit Thrower(int) { throw std::runtime_error("no value"); }
    Thrower(Thrower&&) noexcept {}
  };
  run([]() -> Coro<void> {
    try {
      co_await []() -> Coro<Thrower> { co_return 1; }();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "no value");
    }
  });
}

}  // namespace
}  // namespace argiope
