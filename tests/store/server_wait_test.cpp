// How long a store waits for its server. Every limit that must not be reached is far away, every other one a moment.
#include "store/jobs/internal/server_wait.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace argiope {
namespace {

using namespace std::chrono_literals;

class ServerWaitTest : public testing::Test {
 protected:
  ServerWaitTest() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()), 0); }
  ~ServerWaitTest() override {
    for (const int end : ends_) ::close(end);
  }
  void say_something() const { EXPECT_EQ(::send(ends_[1], "x", 1, MSG_NOSIGNAL), 1); }
  bool hears(const ServerWait& wait) const { return wait.await(ends_[0], POLLIN); }

  std::array<int, 2> ends_{};
};

TEST_F(ServerWaitTest, ASilentServerIsWaitedForUntilTheLimit) {
  ServerWait wait("", 1ms);
  wait.begin();
  EXPECT_FALSE(hears(wait));
  EXPECT_FALSE(wait.pause("silent", 1h)) << "the time is over";
}

TEST_F(ServerWaitTest, WhatIsThereIsHeardAlsoWhenTheTimeIsOver) {
  ServerWait wait("", 1ms);
  say_something();
  wait.begin();
  EXPECT_FALSE(wait.await(-1, 0));
  EXPECT_TRUE(hears(wait));
}

TEST_F(ServerWaitTest, AllWaitsOfATroubleHaveOneLimitTogether) {
  ServerWait wait("", 50ms);
  int pauses = 0;
  wait.begin();
  while (wait.pause("refused", 1ms)) {
    wait.begin();
    ++pauses;
  }
  EXPECT_GT(pauses, 0);
  EXPECT_LE(pauses, 50);
  wait.begin();
  EXPECT_GT(wait.left(), 0ms) << "the next call has all of the time again";
}

TEST_F(ServerWaitTest, TheCauseOfATroubleIsThatOfTheLastTryThatHadItsTime) {
  ServerWait wait("", 1ms);
  wait.begin();
  EXPECT_FALSE(hears(wait));
  EXPECT_FALSE(wait.pause("silent", 1h));
  EXPECT_EQ(wait.cause(), "silent") << "there was no other";
  ServerWait longer("", 1h);
  longer.begin();
  EXPECT_TRUE(longer.pause("refused", 1ms));
  EXPECT_TRUE(longer.pause("read-only", 1ms));
  longer.hurry(1ms);
  EXPECT_FALSE(hears(longer));
  EXPECT_FALSE(longer.pause("no connection in time", 1h));
  EXPECT_EQ(longer.cause(), "read-only");
}

TEST_F(ServerWaitTest, AnAnswerEndsTheTrouble) {
  ServerWait wait("", 1h);
  wait.begin();
  EXPECT_TRUE(wait.pause("refused", 1ms));
  const Duration left = wait.left();
  wait.begin();
  EXPECT_LE(wait.left(), left);
  wait.answered();
  wait.begin();
  EXPECT_GT(wait.left(), left);
}

TEST_F(ServerWaitTest, AnEarlierEndIsOneOfThisWaitAlone) {
  ServerWait wait("", 1h);
  Alarm sooner;
  sooner.set(1ms);
  wait.begin();
  EXPECT_FALSE(wait.await(ends_[0], POLLIN, &sooner));
  EXPECT_FALSE(wait.is_over());
}

TEST_F(ServerWaitTest, HurryingShortensTheWaitUnderWayAndThoseToCome) {
  ServerWait wait("", 1h);
  wait.begin();
  std::thread hurrying([&] { wait.hurry(1ms); });
  EXPECT_FALSE(hears(wait));
  hurrying.join();
  wait.begin();
  EXPECT_LE(wait.left(), 1ms) << "a server that answers in time is not in trouble";
  EXPECT_FALSE(hears(wait));
  EXPECT_FALSE(wait.pause("silent", 1h));
  wait.begin();
  EXPECT_TRUE(wait.is_over()) << "one was waited for in vain, and the others are not";
  say_something();
  EXPECT_TRUE(hears(wait));
}

TEST_F(ServerWaitTest, GivingUpEndsAllWaits) {
  ServerWait wait("", 1h);
  wait.hurry(0s);
  wait.begin();
  EXPECT_FALSE(hears(wait));
  EXPECT_FALSE(wait.pause("gone", 1h));
}

}  // namespace
}  // namespace argiope
