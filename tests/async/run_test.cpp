// run() and Runner as a program's main() uses them: without a backend, and ended by Ctrl-C.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <stdexcept>
#include <type_traits>

#include "argiope/async.hpp"
#include "argiope/async/asio_backend.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

Coro<int> sleep_and_give(int value) {
  co_await sleep(1ms);
  co_return value;
}

TEST(Run, NeedsNoBackend) {
  const SystemClock clock;
  const TimePoint before = clock.now();
  EXPECT_EQ(run(sleep_and_give(7)), 7);
  EXPECT_GE(clock.now() - before, 1ms) << "time is real";
  EXPECT_EQ(run(sleep_and_give(8)), 8) << "and again";
}

TEST(Run, HasRealInputAndOutput) {
  const auto main = []() -> Coro<std::string> {
    Server server = start_server(
        [](Stream& client) -> Coro<void> {
          client.write("hello\n");
          co_await client.drain();
        },
        "127.0.0.1", 0);
    Stream connection = co_await open_connection("127.0.0.1", server.port());
    co_return co_await connection.read_line();
  };
  EXPECT_EQ(run(main()), "hello\n");
}

TEST(Run, ThrowsWhatMainThrowsWhenWhatIsLeftHasEnded) {
  bool ended = false;
  const auto left = [&]() -> Coro<void> {
    try {
      co_await sleep(1h);
    } catch (const CancelledError&) {
      ended = true;
      throw;
    }
  };
  const auto main = [&]() -> Coro<void> {
    EventLoop::current().create_task(left());
    co_await sleep(1ms);
    throw std::length_error("main");
  };
  EXPECT_THROW(run(main()), std::length_error);
  EXPECT_TRUE(ended);
}

TEST(Run, GivesWhatCanOnlyBeMoved) {
  const auto main = []() -> Coro<std::unique_ptr<int>> { co_return std::make_unique<int>(5); };
  EXPECT_EQ(*run(main()), 5);
}

TEST(Run, RefusesAnEmptyCoroutine) { EXPECT_THROW(run(Coro<int>{}), std::invalid_argument); }

TEST(RunnerWithoutABackend, RunsSeveralOnTheSameLoop) {
  Runner runner;
  EventLoop* const loop = &runner.loop();
  const auto which = []() -> Coro<EventLoop*> { co_return &EventLoop::current(); };
  EXPECT_EQ(runner.run(which()), loop);
  EXPECT_EQ(runner.run(sleep_and_give(1)), 1);
  runner.close();
  EXPECT_THROW(runner.run(sleep_and_give(1)), std::logic_error);
}

// The backend's clock is its own, or must outlive it.
static_assert(std::is_default_constructible_v<AsioBackend>);
static_assert(std::is_constructible_v<AsioBackend, const SystemClock&>);
static_assert(std::is_constructible_v<AsioBackend, ManualClock&>);
static_assert(!std::is_constructible_v<AsioBackend, SystemClock>);
static_assert(!std::is_constructible_v<AsioBackend, const SystemClock>);

TEST(AsioBackendWithoutAClock, GoesByTheMachines) {
  AsioBackend backend;
  const SystemClock clock;
  const TimePoint before = clock.now();
  const TimePoint now = backend.clock().now();
  EXPECT_GE(now, before);
  EXPECT_LE(now, clock.now());
}

// --- Ctrl-C

// What the process has to say of a task that was left when main was interrupted.
Coro<void> tell_the_end() {
  try {
    co_await sleep(1h);
  } catch (const CancelledError&) {
    std::fputs("left task ended\n", stderr);
    throw;
  }
}

Coro<void> interrupted_main() {
  EventLoop::current().create_task(tell_the_end());
  EventLoop::current().call_soon([] { ::raise(SIGINT); });
  co_await sleep(1h);
}

TEST(InterruptedRun, ThrowsWhatAProgramMayCatch) {
  EXPECT_THROW(run(interrupted_main()), KeyboardInterrupt);
  EXPECT_EQ(run(sleep_and_give(3)), 3);
}

// As a main() that catches nothing, which the test's framework would.
void run_uncaught(void (*program)()) noexcept { program(); }

TEST(InterruptedRun, EndsTheProcessWith130AfterItsTasksWhereNobodyCatches) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto main = [] {
    std::printf("written before");
    run(interrupted_main());
  };
  EXPECT_EXIT(run_uncaught(main), testing::ExitedWithCode(130), "left task ended");
}

TEST(InterruptedRun, EndsTheProcessWith130FromARunnerToo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto main = [] {
    VirtualBackend backend;
    Runner runner(backend);
    runner.run(interrupted_main());
  };
  EXPECT_EXIT(run_uncaught(main), testing::ExitedWithCode(130), "");
}

TEST(InterruptedRun, LeavesOtherExceptionsToTheProgramsOwnHandler) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto main = [] {
    std::set_terminate([] {
      std::fputs("the program's own\n", stderr);
      std::_Exit(9);
    });
    try {
      run(interrupted_main());
    } catch (const KeyboardInterrupt&) {
    }
    throw std::runtime_error("another");
  };
  EXPECT_EXIT(run_uncaught(main), testing::ExitedWithCode(9), "the program's own");
}

}  // namespace
}  // namespace argiope
