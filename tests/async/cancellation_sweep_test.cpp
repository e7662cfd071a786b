// The sweep is a test's tool, and tools are tested too: it strikes everywhere, and finds what it is for.
#include "support/cancellation_sweep.hpp"

#include <gtest/gtest-spi.h>

#include <set>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

struct ThreeAwaits {
  inline static std::set<int> struck{};
  Coro<void> run() {
    int place = 0;
    try {
      co_await yield_now();
      ++place;
      co_await sleep(1ms);
      ++place;
      co_await EventLoop::current().create_task(sleep_for(1ms));
      ++place;
    } catch (const CancelledError&) {
      struck.insert(place);
      throw;
    }
    struck.insert(place);
  }
  void check() const {}
};

TEST(CancellationSweepItself, StrikesAtEveryAwaitAndLetsOneRunEnd) {
  ThreeAwaits::struck.clear();
  EXPECT_GE(sweep_cancellation<ThreeAwaits>(), 5u);
  EXPECT_EQ(ThreeAwaits::struck, (std::set{0, 1, 2, 3}));
}

struct LosesAPermit {
  Semaphore semaphore{1};
  Coro<void> run() {
    co_await semaphore.acquire();
    co_await yield_now();  // and nobody gives the permit back when this throws
    semaphore.release();
  }
  void check() const { EXPECT_FALSE(semaphore.locked()) << "permit lost"; }
};

TEST(CancellationSweepItself, FindsALostPermit) {
  EXPECT_NONFATAL_FAILURE(sweep_cancellation<LosesAPermit>(), "permit lost");
}

struct LosesAWakeUp {
  Event go;
  Coro<void> wait() { co_await go.wait(); }
  Coro<void> run() {
    static_cast<void>(EventLoop::current().create_task(wait()));
    co_await yield_now();
    go.set();
  }
  void check() const {}
};

TEST(CancellationSweepItself, FindsATaskThatNobodyWillWake) {
  EXPECT_NONFATAL_FAILURE(sweep_cancellation<LosesAWakeUp>(), "tasks left that nobody will wake");
}

}  // namespace
}  // namespace argiope
