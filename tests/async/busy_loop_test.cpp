// A loop that always has something ready looks outside by time, not by the number of steps: what comes from I/O, timers
// and other threads is not held up by tasks that compute. Counted in steps, so that a slow machine changes nothing.
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>

#include "argiope/async/stream.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

// Two tasks that compute for 2 ms a step. One of them makes something happen, and counts the steps that both make
// until `heard`.
struct BusyPair {
  static constexpr int kWarmUp = 40, kMost = 400;
  int steps = 0;
  int happened_at = 0;
  bool heard = false;

  Coro<void> compute(std::function<void()> happen) {
    while (!heard && steps < kMost) {
      if (steps >= kWarmUp && happen) {
        happened_at = steps;
        std::exchange(happen, nullptr)();
      }
      const auto until = std::chrono::steady_clock::now() + 2ms;
      while (std::chrono::steady_clock::now() < until) {
      }
      ++steps;
      co_await yield_now();
    }
  }
  // Steps from the happening to the hearing: `happen` makes something happen, of which hear() is to be called.
  template <class Fixture>
  int run(Fixture& fixture, std::function<void()> happen) {
    fixture.run([&]() -> Coro<void> {
      auto first = fixture.loop.create_task(compute(happen)), second = fixture.loop.create_task(compute(nullptr));
      co_await first;
      co_await second;
    });
    EXPECT_TRUE(heard);
    return heard_at - happened_at;
  }
  void hear() {
    heard = true;
    heard_at = steps;
  }
  int heard_at = 0;
};

class BusyLoopTest : public InSomeWorld {};
INSTANTIATE_TEST_SUITE_P(RealWorlds, BusyLoopTest, kRealWorlds, world_name);

// The step in which it happens, and the other task's: asyncio lets both run twice, and so does chance.
int soon() { return shuffled() ? 4 : 2; }

TEST_P(BusyLoopTest, AnEventOfIoIsHeardBeforeWhatIsReadyRunsTwice) {
  const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  BusyPair busy;
  auto reader = this->spawn([&]() -> Coro<void> {
    co_await readable(fd);
    busy.hear();
  });
  const std::uint64_t one = 1;
  EXPECT_LE(busy.run(*this, [&] { EXPECT_EQ(::write(fd, &one, sizeof one), 8); }), soon());
  this->run([&]() -> Coro<void> { co_await reader; });
  ::close(fd);
}

TEST_P(BusyLoopTest, ATimerIsHeardBeforeWhatIsReadyRunsTwice) {
  BusyPair busy;
  EXPECT_LE(busy.run(*this, [&] { this->loop.call_later(1us, [&] { busy.hear(); }); }), soon());
}

TEST_P(BusyLoopTest, AnotherThreadIsHeardBeforeWhatIsReadyRunsTwice) {
  BusyPair busy;
  EXPECT_LE(busy.run(*this,
                     [&] {
                       std::thread other([&] { this->loop.call_soon_threadsafe([&] { busy.hear(); }); });
                       other.join();
                     }),
            soon());
}

TEST_P(BusyLoopTest, StepsThatGrowLongAreNoticedWithinATurn) {
  // Short steps first, for as long as it takes to be trusted; then long ones.
  this->run([]() -> Coro<void> {
    for (int i = 0; i < 10'000; ++i) co_await yield_now();
  });
  const int fd = ::eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
  int steps = 0;
  bool heard = false;
  this->run([&]() -> Coro<void> {
    for (int i = 0; i < 10'000; ++i) co_await yield_now();
    auto reader = this->spawn([&]() -> Coro<void> {
      co_await readable(fd);
      heard = true;
    });
    co_await yield_now();
    while (!heard && steps < 400) {
      const auto until = std::chrono::steady_clock::now() + 1ms;
      while (std::chrono::steady_clock::now() < until) {
      }
      ++steps;
      co_await yield_now();
    }
    co_await reader;
  });
  EXPECT_LE(steps, 34) << "a turn, and the step that was under way";
  ::close(fd);
}

TEST_P(BusyLoopTest, ManyWhoAreReadyAndManyEventsAllRun) {
  // Whatever is put before what, everybody gets a turn.
  constexpr int kTasks = 50, kRounds = 40;
  int timers = 0;
  std::vector<int> rounds(kTasks);
  this->run([&]() -> Coro<void> {
    const auto work = [&](std::size_t i) -> Coro<void> {
      for (; rounds[i] < kRounds; ++rounds[i]) {
        this->loop.call_later(1us, [&] { ++timers; });
        const auto until = std::chrono::steady_clock::now() + 10us;
        while (std::chrono::steady_clock::now() < until) {
        }
        co_await yield_now();
        const auto [least, most] = std::ranges::minmax(rounds);
        EXPECT_LE(most - least, shuffled() ? kRounds : 1) << "in turn";
      }
    };
    std::vector<Task<void>> tasks;
    for (std::size_t i = 0; i < kTasks; ++i) tasks.push_back(this->loop.create_task(work(i)));
    for (auto& task : tasks) co_await task;
    co_await sleep(1ms);
  });
  EXPECT_EQ(timers, kTasks * kRounds);
}

// --- simulated time

TEST(BusyLoop, SimulatedTimeLooksAfterAFixedNumberOfSteps) {
  // The same steps in the same order, however long they take for real.
  const auto order_with = [](std::chrono::microseconds step) {
    VirtualBackend backend;
    EventLoop loop(backend);
    std::vector<int> order;
    const auto work = [&](int number) -> Coro<void> {
      for (int i = 0; i < 60; ++i) {
        const auto until = std::chrono::steady_clock::now() + step;
        while (std::chrono::steady_clock::now() < until) {
        }
        backend.manual_clock().advance(1ms);
        order.push_back(number);
        co_await yield_now();
      }
    };
    const auto main = [&]() -> Coro<void> {
      for (int i = 1; i <= 100; ++i) loop.call_later(i * 1ms, [&order, i] { order.push_back(100 + i); });
      auto first = loop.create_task(work(1)), second = loop.create_task(work(2));
      co_await first;
      co_await second;
    };
    loop.run_until_complete(main());
    return order;
  };
  EXPECT_EQ(order_with(0us), order_with(200us));
}

}  // namespace
}  // namespace argiope
