#include <signal.h>
#include <unistd.h>

#include <stdexcept>
#include <system_error>
#include <thread>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class SignalsTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(AllWorlds, SignalsTest, kAllWorlds, world_name);

void (*disposition_of(int signal_number))(int) {
  struct sigaction action {};
  ::sigaction(signal_number, nullptr, &action);
  return action.sa_handler;
}

TEST_P(SignalsTest, ASignalRunsItsHandlerOnTheLoop) {
  Event received;
  this->loop.add_signal_handler(SIGUSR1, [&] {
    EXPECT_EQ(&EventLoop::current(), &this->loop);
    received.set();
  });
  this->run([&]() -> Coro<void> {
    ::raise(SIGUSR1);
    EXPECT_FALSE(received.is_set()) << "not in the signal's own context";
    co_await yield_now();
    while (!received.is_set()) co_await yield_now();
  });
}

TEST_P(SignalsTest, ASignalThatCameWhileNobodyRanIsHandledInTheNextTurn) {
  int count = 0;
  this->loop.add_signal_handler(SIGUSR1, [&] { ++count; });
  ::raise(SIGUSR1);
  ::raise(SIGUSR1);
  EXPECT_LT(this->loop.next_deadline(), kNever);
  this->settle();
  EXPECT_EQ(count, 1) << "several before it runs are one";
}

TEST_P(SignalsTest, SignalsAreToldApart) {
  std::vector<int> seen;
  this->loop.add_signal_handler(SIGUSR1, [&] { seen.push_back(SIGUSR1); });
  this->loop.add_signal_handler(SIGUSR2, [&] { seen.push_back(SIGUSR2); });
  ::raise(SIGUSR2);
  this->settle();
  ::raise(SIGUSR1);
  this->settle();
  EXPECT_EQ(seen, (std::vector{SIGUSR2, SIGUSR1}));
}

TEST_P(SignalsTest, ALaterHandlerReplacesAnEarlierOne) {
  std::vector<int> seen;
  this->loop.add_signal_handler(SIGUSR1, [&] { seen.push_back(1); });
  this->loop.add_signal_handler(SIGUSR1, [&] { seen.push_back(2); });
  ::raise(SIGUSR1);
  this->settle();
  EXPECT_EQ(seen, (std::vector{2}));
}

TEST_P(SignalsTest, RemovingAHandlerRestoresTheDefault) {
  this->loop.add_signal_handler(SIGUSR1, [] {});
  EXPECT_NE(disposition_of(SIGUSR1), SIG_DFL);
  this->loop.remove_signal_handler(SIGUSR1);
  EXPECT_EQ(disposition_of(SIGUSR1), SIG_DFL);
  this->loop.remove_signal_handler(SIGUSR1);
}

TEST_P(SignalsTest, ALoopThatEndsRestoresTheDefault) {
  {
    EventLoop doomed(this->world.backend);
    doomed.add_signal_handler(SIGUSR1, [] {});
  }
  EXPECT_EQ(disposition_of(SIGUSR1), SIG_DFL);
}

TEST_P(SignalsTest, OneLoopAtATimeHandlesASignal) {
  EventLoop other(this->world.backend);
  this->loop.add_signal_handler(SIGUSR1, [] {});
  EXPECT_THROW(other.add_signal_handler(SIGUSR1, [] {}), std::logic_error);
  this->loop.remove_signal_handler(SIGUSR1);
  other.add_signal_handler(SIGUSR1, [] {});
}

TEST_P(SignalsTest, WhatCannotBeHandledIsRefusedAndLeavesNothingBehind) {
  EXPECT_THROW(this->loop.add_signal_handler(SIGKILL, [] {}), std::system_error);
  EXPECT_THROW(this->loop.add_signal_handler(0, [] {}), std::invalid_argument);
  EXPECT_THROW(this->loop.add_signal_handler(10'000, [] {}), std::invalid_argument);
  EventLoop other(this->world.backend);
  EXPECT_THROW(other.add_signal_handler(SIGKILL, [] {}), std::system_error) << "not: another loop has it";
}

TEST(Signals, ASignalWakesALoopThatWaits) {
  const SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  loop.add_signal_handler(SIGUSR1, [&] { loop.stop(); });
  std::thread sender([] { ::kill(::getpid(), SIGUSR1); });
  loop.run_forever();
  sender.join();
}

}  // namespace
}  // namespace argiope
