// The loop itself: callbacks, timers, other threads, signals, foreign drivers, and time that is simulated.
#include "argiope/async/event_loop.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/buffer.hpp>
#include <thread>

#include "argiope/async/asio_op.hpp"
#include "argiope/async/executor.hpp"
#include "argiope/async/sleep.hpp"
#include "argiope/async/sync.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

using namespace std::chrono_literals;

class EventLoopTest : public OnEachLoop {};
INSTANTIATE_TEST_SUITE_P(Loops, EventLoopTest, testing::Values("asio", "virtual"));

TEST_P(EventLoopTest, CallsSoonInTheOrderAsked) {
  std::string order;
  loop_->call_soon([&] { order += 'a'; });
  loop_->call_soon([&] {
    order += 'b';
    loop_->call_soon([&] { order += 'd'; });
  });
  loop_->call_soon([&] { order += 'c'; });
  loop_->call_later(5ms, [&] { loop_->stop(); });
  loop_->run_forever();
  EXPECT_EQ(order, "abcd");
}

TEST_P(EventLoopTest, FiresTimersByTimeAndThenByTheOrderArmed) {
  std::string order;
  const TimePoint when = loop_->time() + 2ms;
  loop_->call_at(when + 1ms, [&] { order += 'c'; });
  loop_->call_at(when, [&] { order += 'a'; });
  loop_->call_at(when, [&] { order += 'b'; });
  loop_->call_later(10ms, [&] { loop_->stop(); });
  loop_->run_forever();
  EXPECT_EQ(order, "abc");
}

TEST_P(EventLoopTest, CallsNothingThatWasCancelled) {
  Handle soon = loop_->call_soon([] { ADD_FAILURE(); });
  Handle later = loop_->call_later(1ms, [] { ADD_FAILURE(); });
  soon.cancel();
  later.cancel();
  later.cancel();
  EXPECT_TRUE(later.cancelled());
  loop_->call_later(5ms, [&] { loop_->stop(); });
  loop_->run_forever();
}

TEST_P(EventLoopTest, HandsExceptionsOfCallbacksToTheHandler) {
  int reports = 0;
  loop_->set_exception_handler([&](std::string_view, const std::exception_ptr&) { ++reports; });
  loop_->call_soon([] { throw std::runtime_error("x"); });
  loop_->call_later(1ms, [&] { loop_->stop(); });
  loop_->run_forever();
  EXPECT_EQ(reports, 1);
}

TEST_P(EventLoopTest, TakesCallsFromManyThreadsAndKeepsEachOnesOrder) {
  constexpr int kThreads = 4, kCalls = 2000;
  std::vector<int> last(kThreads, -1);
  int seen = 0;
  for (int i = 0; i < kThreads; ++i) loop_->begin_outside_work();
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        loop_->call_soon_threadsafe([&, t, i] {
          EXPECT_EQ(last[static_cast<std::size_t>(t)], i - 1);
          last[static_cast<std::size_t>(t)] = i;
          if (i == kCalls - 1) loop_->end_outside_work();
          if (++seen == kThreads * kCalls) loop_->stop();
        });
      }
    });
  }
  loop_->run_forever();
  EXPECT_EQ(seen, kThreads * kCalls);
}

TEST_P(EventLoopTest, RunsFunctionsOnOtherThreads) {
  ThreadPoolExecutor pool(2);
  auto body = [&]() -> Coro<int> {
    const auto home = std::this_thread::get_id();
    auto future = run_in_executor(pool, [home] {
      EXPECT_NE(std::this_thread::get_id(), home);
      return 42;
    });
    const int value = co_await future;
    EXPECT_EQ(std::this_thread::get_id(), home);
    co_return value;
  };
  EXPECT_EQ(loop_->run_until_complete(body()), 42);
}

TEST_P(EventLoopTest, BringsBackExceptionsOfOtherThreads) {
  ThreadPoolExecutor pool(1);
  auto body = [&]() -> Coro<void> {
    co_await run_in_executor(pool, [] { throw std::out_of_range("there"); });
  };
  EXPECT_THROW(loop_->run_until_complete(body()), std::out_of_range);
  pool.shutdown();
  pool.shutdown();
  EXPECT_THROW(pool.submit([] {}), std::logic_error);
}

TEST_P(EventLoopTest, CannotRunInsideItself) {
  auto nothing = []() -> Coro<void> { co_return; };
  auto body = [&]() -> Coro<void> {
    EXPECT_THROW(loop_->run_until_complete(nothing()), std::logic_error);
    co_return;
  };
  loop_->run_until_complete(body());
}

TEST_P(EventLoopTest, CanBeDrivenTurnByTurn) {
  bool ended = false;
  auto body = [&]() -> Coro<void> {
    co_await sleep(2ms);
    ended = true;
  };
  loop_->call_soon([&] { loop_->create_task(body()); });
  EXPECT_LE(loop_->next_deadline(), loop_->time());
  for (int turns = 0; turns < 1000 && !ended; ++turns) loop_->run_once(loop_->time() + 1ms);
  EXPECT_TRUE(ended);
  EXPECT_EQ(loop_->next_deadline(), kNever);
}

TEST_P(EventLoopTest, IsNamedByItsOwnTasksOnly) {
  EXPECT_THROW(EventLoop::current(), std::logic_error);
  auto body = [&]() -> Coro<bool> { co_return &EventLoop::current() == loop_.get(); };
  EXPECT_TRUE(loop_->run_until_complete(body()));
}

TEST(VirtualLoop, LetsAMonthPassInNoTime) {
  VirtualBackend backend;
  EventLoop loop(backend);
  int hours = 0;
  auto body = [&]() -> Coro<void> {
    for (; hours < 24 * 30; ++hours) co_await sleep(1h);
  };
  loop.run_until_complete(body());
  EXPECT_EQ(hours, 720);
  EXPECT_EQ(loop.time(), TimePoint{720h});
}

TEST(VirtualLoop, SaysWhenNothingCouldEverHappen) {
  VirtualBackend backend;
  EventLoop loop(backend);
  Event event;
  auto body = [&]() -> Coro<void> { co_await event.wait(); };
  EXPECT_THROW(loop.run_until_complete(body()), DeadlockError);
}

TEST(VirtualLoop, HoldsTimeStillWhileAnotherThreadWorks) {
  VirtualBackend backend;
  EventLoop loop(backend);
  ThreadPoolExecutor pool(1);
  auto body = [&]() -> Coro<TimePoint> {
    auto future = run_in_executor(pool, [] { return 1; });
    auto nap = []() -> Coro<void> { co_await sleep(1s); };
    Task<void> napping = EventLoop::current().create_task(nap());
    co_await future;
    const TimePoint after = EventLoop::current().time();
    co_await napping;
    co_return after;
  };
  EXPECT_EQ(loop.run_until_complete(body()), TimePoint{});
}

TEST(AsioLoop, HandlesSignals) {
  SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  int signals = 0;
  loop.add_signal_handler(SIGUSR1, [&] {
    if (++signals == 2) loop.stop();
    else ::raise(SIGUSR1);
  });
  loop.call_soon([] { ::raise(SIGUSR1); });
  loop.run_forever();
  EXPECT_EQ(signals, 2);
  EventLoop other(backend);
  EXPECT_THROW(other.add_signal_handler(SIGUSR1, [] {}), std::logic_error);
  loop.remove_signal_handler(SIGUSR1);
  other.add_signal_handler(SIGUSR1, [] {});
}

class SocketPair {
 public:
  explicit SocketPair(AsioBackend& backend) : reader(backend.context()) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::runtime_error("socketpair");
    reader.assign(ends[0]);
    writer = ends[1];
  }
  ~SocketPair() { ::close(writer); }
  boost::asio::posix::stream_descriptor reader;
  int writer;
};

TEST(AsioOp, GivesWhatTheHandlerGets) {
  SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  SocketPair pair(backend);
  auto body = [&]() -> Coro<std::string> {
    EventLoop::current().call_later(1ms, [&] { ASSERT_EQ(::write(pair.writer, "hello", 5), 5); });
    char buffer[16];
    const auto [ec, count] = co_await asio_op<std::size_t>(
        [&](auto handler) { pair.reader.async_read_some(boost::asio::buffer(buffer), std::move(handler)); },
        [&] { pair.reader.cancel(); });
    EXPECT_FALSE(ec);
    co_return std::string(buffer, count);
  };
  EXPECT_EQ(loop.run_until_complete(body()), "hello");
}

TEST(AsioOp, EndsTheOperationWhenItsTaskIsCancelled) {
  SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  SocketPair pair(backend);
  auto read = [&]() -> Coro<void> {
    char buffer[16];
    co_await asio_op<std::size_t>(
        [&](auto handler) { pair.reader.async_read_some(boost::asio::buffer(buffer), std::move(handler)); },
        [&] { pair.reader.cancel(); });
  };
  auto body = [&]() -> Coro<void> {
    Task<void> task = EventLoop::current().create_task(read());
    co_await sleep(1ms);
    task.cancel();
    EXPECT_THROW(co_await task, CancelledError);
  };
  loop.run_until_complete(body());
}

}  // namespace
}  // namespace argiope
