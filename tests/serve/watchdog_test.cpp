// When a loop counts as standing still.
#include "serve/watch/watchdog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <semaphore>
#include <sstream>
#include <thread>
#include <utility>

#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

// The loop's time is virtual, and the watchdog's clock is another, so that a test can let it go on while the loop
// stands.
class WatchdogTest : public OnVirtualLoop {
 protected:
  WatchdogTest() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(log_);
    auto logger = std::make_shared<spdlog::logger>("test", sink);
    logger->set_pattern("%v");
    spdlog::set_default_logger(logger);
  }
  ~WatchdogTest() override { spdlog::set_default_logger(before_); }

  // Time in which the loop runs as it should, and the watchdog looks.
  void live(Duration span) {
    for (Duration past{}; past < span; past += 250ms) {
      clock_.advance(250ms);
      loop_.run_until_complete(keeping([]() -> Coro<void> {
        co_await sleep(250ms);
        co_await let_others_run();
      }));
      watchdog_.check();
    }
  }
  void stand_still(Duration span) {
    for (Duration past{}; past < span; past += 250ms) {
      clock_.advance(250ms);
      watchdog_.check();
    }
  }

  std::ostringstream log_;
  std::shared_ptr<spdlog::logger> before_;
  ManualClock clock_;
  Watchdog watchdog_{loop_, clock_, {.loop = "the loop", .has_thread = false}};
};

TEST_F(WatchdogTest, ALoopThatRunsIsLeftAlone) {
  live(10s);
  stand_still(1s);
  live(1s);
  EXPECT_EQ(log_.str(), "");
  EXPECT_EQ(watchdog_.stalls(), 0u);
  EXPECT_EQ(watchdog_.take_longest_lag(), 1s);
  EXPECT_EQ(watchdog_.take_longest_lag(), 0s);
}

TEST_F(WatchdogTest, ALoopThatStandsStillIsNamedWhileItDoesAndWhenItGoesOn) {
  live(1s);
  stand_still(5s);
  EXPECT_TRUE(watchdog_.is_stalled());
  EXPECT_EQ(log_.str(),
            "the loop has stood still for 1.25s: something on it computes or blocks\n"
            "the loop has stood still for 2.5s: something on it computes or blocks\n");
  log_.str("");
  live(1s);
  EXPECT_EQ(log_.str(), "the loop goes on after it stood still for 5s\n");
  EXPECT_FALSE(watchdog_.is_stalled());
  EXPECT_EQ(watchdog_.stalls(), 1u);
  EXPECT_EQ(watchdog_.lag(), 0s);
}

TEST_F(WatchdogTest, AProcessThatWasStoppedIsNotTakenForALoopThatStands) {
  live(1s);
  clock_.advance(1h);
  watchdog_.check();
  live(1s);
  EXPECT_EQ(log_.str(), "");
  EXPECT_EQ(watchdog_.stalls(), 0u);
}

// A clock that says when it was looked at by another thread, and stands.
class WatchedClock final : public Clock {
 public:
  TimePoint now() const noexcept override {
    if (std::this_thread::get_id() != maker_ && !std::exchange(was_asked_, true)) asked_.release();
    return {};
  }
  WallTime wall_now() const noexcept override { return {}; }
  void until_asked() const { asked_.acquire(); }

 private:
  const std::thread::id maker_ = std::this_thread::get_id();
  mutable bool was_asked_ = false;  // the other thread's
  mutable std::binary_semaphore asked_{0};
};

TEST_F(WatchdogTest, AThreadLooksByItself) {
  const WatchedClock clock;
  const Watchdog watchdog(loop_, clock, {.interval = 1ms});
  clock.until_asked();
  EXPECT_EQ(watchdog.stalls(), 0u);
}

}  // namespace
}  // namespace argiope
