#include <gtest/gtest.h>
#include <signal.h>

#include <stdexcept>

#include "argiope/async/event_loop.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

using UntilSignal = LoopTest<RealTime>;

bool has_default_effect(int signal_number) {
  struct sigaction action {};
  ::sigaction(signal_number, nullptr, &action);
  return action.sa_handler == SIG_DFL;
}

TEST_F(UntilSignal, WaitsForIt) {
  run([&]() -> Coro<void> {
    auto waiting = loop.create_task(until_signal(SIGUSR2));
    co_await let_others_run();
    EXPECT_FALSE(waiting.done());
    ::raise(SIGUSR2);
    co_await waiting;
    EXPECT_TRUE(has_default_effect(SIGUSR2));
  });
}

TEST_F(UntilSignal, WaitsAgainForTheNext) {
  run([&]() -> Coro<void> {
    for (int i = 0; i < 3; ++i) {
      auto waiting = loop.create_task(until_signal(SIGUSR2));
      co_await let_others_run();
      ::raise(SIGUSR2);
      ::raise(SIGUSR2);
      co_await waiting;
      co_await let_others_run();
    }
  });
}

TEST_F(UntilSignal, LeavesNoHandlerWhenCancelled) {
  run([&]() -> Coro<void> {
    EXPECT_THROW(co_await wait_for(until_signal(SIGUSR2), 1ms), TimeoutError);
    EXPECT_TRUE(has_default_effect(SIGUSR2));
    // Cancelled when the signal had been noted already.
    auto waiting = loop.create_task(until_signal(SIGUSR2));
    co_await let_others_run();
    ::raise(SIGUSR2);
    waiting.cancel();
    co_await sleep(2ms);
    EXPECT_TRUE(waiting.done());
  });
}

TEST_F(UntilSignal, RefusesWhatIsNoSignal) {
  run([&]() -> Coro<void> { EXPECT_THROW(co_await until_signal(0), std::invalid_argument); });
}

}  // namespace
}  // namespace argiope
