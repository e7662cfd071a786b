#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/threads.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class ThreadsafeTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, ThreadsafeTest, kAllWorlds, world_name);

// Without a sleep: simulated time stands still while another thread waits for it.
Coro<int> add(int a, int b) {
  co_await yield_now();
  co_return a + b;
}

// Runs `function` on another thread, from a task of this loop, and gives what it returns.
template <class Function>
auto from_a_thread(Function function) -> Coro<std::invoke_result_t<Function>> {
  co_return co_await to_thread(std::move(function));
}

TEST_P(ThreadsafeTest, GivesTheResultToTheOtherThread) {
  EventLoop& loop = this->loop;
  EXPECT_EQ(this->run(from_a_thread([&loop] { return run_coroutine_threadsafe(add(1, 2), loop).get(); })), 3);
}

TEST_P(ThreadsafeTest, GivesWhatCanOnlyBeMoved) {
  EventLoop& loop = this->loop;
  const auto make = []() -> Coro<std::unique_ptr<int>> { co_return std::make_unique<int>(5); };
  const auto value = this->run(from_a_thread([&] { return run_coroutine_threadsafe(make(), loop).get(); }));
  EXPECT_EQ(*value, 5);
}

TEST_P(ThreadsafeTest, PassesOnTheException) {
  EventLoop& loop = this->loop;
  const auto fail = []() -> Coro<void> {
    co_await yield_now();
    throw std::runtime_error("failed");
  };
  EXPECT_THROW(this->run(from_a_thread([&] { run_coroutine_threadsafe(fail(), loop).get(); })), std::runtime_error);
}

TEST_P(ThreadsafeTest, ATimeoutEndsTheWaitAndNotTheCoroutine) {
  EventLoop& loop = this->loop;
  this->run([&]() -> Coro<void> {
    auto gate = loop.create_future<void>();
    const auto wait_for_it = [&]() -> Coro<void> { co_await gate; };
    bool timed_out = false;
    bool cancelled = false;
    co_await to_thread([&] {
      auto future = run_coroutine_threadsafe(wait_for_it(), loop);
      try {
        future.get(0ms);
      } catch (const TimeoutError&) {
        timed_out = true;
      }
      EXPECT_FALSE(future.done());
      EXPECT_TRUE(future.cancel());
      try {
        future.get();
      } catch (const CancelledError&) {
        cancelled = true;
      }
      EXPECT_TRUE(future.done());
      EXPECT_FALSE(future.cancel());
    });
    EXPECT_TRUE(timed_out);
    EXPECT_TRUE(cancelled);
  });
  EXPECT_EQ(loop.task_count(), 0u);
}

TEST_P(ThreadsafeTest, CancelledWithAMessage) {
  EventLoop& loop = this->loop;
  const auto what = this->run(from_a_thread([&]() -> std::string {
    auto future = run_coroutine_threadsafe(sleep_for(1h), loop);
    future.cancel("enough");
    try {
      future.get();
    } catch (const CancelledError& error) {
      return error.what();
    }
    return "";
  }));
  EXPECT_EQ(what, "enough");
}

TEST_P(ThreadsafeTest, ACoroutineThatCancelsItselfIsCancelled) {
  EventLoop& loop = this->loop;
  const auto cancel_itself = []() -> Coro<void> {
    current_task().cancel();
    co_await yield_now();
  };
  EXPECT_THROW(this->run(from_a_thread([&] { run_coroutine_threadsafe(cancel_itself(), loop).get(); })),
               CancelledError);
}

TEST_P(ThreadsafeTest, GetOnTheLoopsOwnThreadIsAnErrorAndNoHang) {
  this->run([&]() -> Coro<void> {
    auto future = run_coroutine_threadsafe(add(1, 2), this->loop);
    EXPECT_THROW(future.get(), std::logic_error);
    while (!future.done()) co_await yield_now();
    EXPECT_EQ(future.get(), 3);
  });
}

TEST(Threadsafe, ALoopThatEndsFirstLetsNobodyWaitForEver) {
  std::optional<ThreadsafeFuture<void>> never_started;
  std::optional<ThreadsafeFuture<void>> started;
  {
    VirtualBackend backend;
    EventLoop loop(backend);
    started = run_coroutine_threadsafe(sleep_for(1h), loop);
    loop.run_once(TimePoint::min());
    never_started = run_coroutine_threadsafe(sleep_for(1h), loop);
  }
  EXPECT_THROW(started->get(), CancelledError);
  EXPECT_THROW(never_started->get(), CancelledError);
  EXPECT_FALSE(started->cancel());
}

TEST(Threadsafe, AnEmptyCoroutineIsRefused) {
  VirtualBackend backend;
  EventLoop loop(backend);
  EXPECT_THROW(run_coroutine_threadsafe(Coro<void>{}, loop), std::invalid_argument);
}

}  // namespace
}  // namespace argiope
