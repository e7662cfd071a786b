#include "argiope/async/asio_backend.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/sync.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

namespace asio = boost::asio;
using Socket = asio::local::stream_protocol::socket;

class AsioBackendTest : public LoopTest<RealTime> {
 public:
  std::pair<Socket, Socket> socket_pair() {
    std::array<int, 2> fds{};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()) != 0) throw std::runtime_error("socketpair");
    constexpr asio::local::stream_protocol kProtocol;
    return {Socket(world.backend.context(), kProtocol, fds[0]), Socket(world.backend.context(), kProtocol, fds[1])};
  }
};

Coro<std::string> read_some(Socket& socket) {
  std::array<char, 64> buffer;
  const auto [ec, count] = co_await asio_op<std::size_t>(
      [&](auto handler) { socket.async_read_some(asio::buffer(buffer), std::move(handler)); },
      [&] { socket.cancel(); });
  if (ec) co_return "error: " + ec.message();
  co_return std::string(buffer.data(), count);
}

Coro<boost::system::error_code> wait_until_readable(Socket& socket) {
  co_return co_await asio_op<>([&](auto handler) { socket.async_wait(Socket::wait_read, std::move(handler)); },
                               [&] { socket.cancel(); });
}

void write_now(Socket& socket, std::string_view text) { asio::write(socket, asio::buffer(text.data(), text.size())); }

TEST_F(AsioBackendTest, AnOperationGivesWhatItsHandlerGets) {
  auto [ours, theirs] = socket_pair();
  run([&]() -> Coro<void> {
    auto reader = spawn([&]() -> Coro<std::string> { co_return co_await read_some(ours); });
    co_await let_others_run();
    EXPECT_FALSE(reader.done());
    write_now(theirs, "hello");
    EXPECT_EQ(co_await reader, "hello");
    write_now(theirs, "again");
    const boost::system::error_code ec = co_await wait_until_readable(ours);
    EXPECT_FALSE(ec);
    EXPECT_EQ(co_await read_some(ours), "again");
  });
}

TEST_F(AsioBackendTest, AnErrorIsAValue) {
  auto [ours, theirs] = socket_pair();
  theirs.close();
  EXPECT_EQ(run(read_some(ours)), "error: " + asio::error::make_error_code(asio::error::eof).message());
}

TEST_F(AsioBackendTest, ComposedOperationsWorkToo) {
  auto [ours, theirs] = socket_pair();
  std::string sent(1 << 20, 'x');
  run([&]() -> Coro<void> {
    const auto send = [&]() -> Coro<void> {
      const auto [ec, count] = co_await asio_op<std::size_t>(
          [&](auto handler) { asio::async_write(theirs, asio::buffer(sent), std::move(handler)); },
          [&] { theirs.cancel(); });
      EXPECT_FALSE(ec);
      EXPECT_EQ(count, sent.size());
    };
    const auto receive = [&]() -> Coro<void> {
      std::string received(sent.size(), '\0');
      const auto [ec, count] = co_await asio_op<std::size_t>(
          [&](auto handler) { asio::async_read(ours, asio::buffer(received), std::move(handler)); },
          [&] { ours.cancel(); });
      EXPECT_FALSE(ec);
      EXPECT_EQ(count, sent.size());
      EXPECT_EQ(received, sent);
    };
    co_await gather(send(), receive());
  });
}

TEST_F(AsioBackendTest, CancellingATaskAbortsItsOperation) {
  auto [ours, theirs] = socket_pair();
  run([&]() -> Coro<void> {
    auto task = spawn([&]() -> Coro<void> { co_await read_some(ours); });
    co_await let_others_run();
    task.cancel("no more");
    std::string caught;
    try {
      co_await task;
    } catch (const CancelledError& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught, "no more");
    write_now(theirs, "still there");
    EXPECT_EQ(co_await read_some(ours), "still there") << "the socket can be used again";
  });
}

TEST_F(AsioBackendTest, ACancelledTaskWaitsForItsHandlerAsItsBufferIsInUseUntilThen) {
  auto [ours, theirs] = socket_pair();
  run([&]() -> Coro<void> {
    auto task = spawn([&]() -> Coro<void> { co_await read_some(ours); });
    co_await let_others_run();
    task.cancel();
    task.cancel();
    EXPECT_FALSE(task.done());
    while (!task.done()) co_await yield_now();
    EXPECT_TRUE(task.cancelled());
    EXPECT_EQ(task.cancelling(), 2);
  });
}

TEST_F(AsioBackendTest, APendingCancellationIsThrownBeforeAnythingStarts) {
  auto [ours, theirs] = socket_pair();
  write_now(theirs, "not to be read");
  Task<void> task;
  run([&]() -> Coro<void> {
    task = spawn([&]() -> Coro<void> {
      task.cancel();
      co_await read_some(ours);
    });
    while (!task.done()) co_await yield_now();
    EXPECT_TRUE(task.cancelled());
    EXPECT_EQ(co_await read_some(ours), "not to be read");
  });
}

TEST_F(AsioBackendTest, ATimeoutEndsAnOperation) {
  auto [ours, theirs] = socket_pair();
  run([&]() -> Coro<void> {
    bool timed_out = false;
    try {
      co_await wait_for(read_some(ours), 1ms);
    } catch (const TimeoutError&) {
      timed_out = true;
    }
    EXPECT_TRUE(timed_out);
  });
}

TEST_F(AsioBackendTest, AnOperationThatCannotStartFailsTheAwaitAndLeavesTheTaskWhole) {
  auto [ours, theirs] = socket_pair();
  run([&]() -> Coro<void> {
    auto task = spawn([&]() -> Coro<void> {
      bool thrown = false;
      try {
        co_await asio_op<>([](auto) { throw std::runtime_error("cannot start"); }, [] {});
      } catch (const std::runtime_error&) {
        thrown = true;
      }
      EXPECT_TRUE(thrown);
      co_await sleep(1h);
    });
    co_await let_others_run();
    task.cancel();
    co_await let_others_run();
    EXPECT_TRUE(task.cancelled());
  });
}

TEST_F(AsioBackendTest, ALoopMayBeDestroyedWithOperationsUnderWay) {
  const auto witness = std::make_shared<int>();
  auto [kept, theirs] = socket_pair();
  {
    EventLoop doomed(world.backend);
    // One on a socket that goes with the frame, one on a socket that stays.
    auto pair = socket_pair();
    static_cast<void>(doomed.create_task(
        keeping([socket = std::move(pair.first), witness]() mutable -> Coro<void> { co_await read_some(socket); })));
    static_cast<void>(doomed.create_task(keeping([&, witness]() -> Coro<void> { co_await read_some(kept); })));
    for (int i = 0; i < 3; ++i) doomed.run_once(TimePoint::min());
  }
  EXPECT_EQ(witness.use_count(), 1);
  // The handlers that are left find nobody: when they run, or when the context is destroyed.
  kept.close();
  world.backend.poll();
}

TEST_F(AsioBackendTest, TheBackendMayGoWithOperationsLeftBehind) {
  auto backend = std::make_unique<AsioBackend>(world.clock);
  std::array<int, 2> fds{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()), 0);
  auto ours = std::make_unique<Socket>(backend->context(), asio::local::stream_protocol{}, fds[0]);
  {
    EventLoop doomed(*backend);
    static_cast<void>(doomed.create_task(keeping([&]() -> Coro<void> { co_await read_some(*ours); })));
    doomed.run_once(TimePoint::min());
  }
  ours.reset();
  backend.reset();
  ::close(fds[1]);
}

TEST_F(AsioBackendTest, BusyTasksCannotStarveIo) {
  auto [ours, theirs] = socket_pair();
  write_now(theirs, "x");
  Event always(true);
  run([&]() -> Coro<void> {
    auto reader = spawn([&]() -> Coro<void> { co_await wait_until_readable(ours); });
    while (!reader.done()) co_await always.wait();
  });
}

TEST_F(AsioBackendTest, TimersThatAreAlwaysDueCannotStarveIo) {
  auto [ours, theirs] = socket_pair();
  write_now(theirs, "x");
  run([&]() -> Coro<void> {
    auto reader = spawn([&]() -> Coro<void> { co_await wait_until_readable(ours); });
    Handle handle;
    const std::function<void()> rearm = [&] { handle = loop.call_later(0ms, rearm); };
    rearm();
    co_await reader;
    handle.cancel();
  });
}

TEST_F(AsioBackendTest, HandlersOfTheContextRunWithTheLoop) {
  bool ran = false;
  asio::post(world.backend.context(), [&] { ran = true; });
  run([&]() -> Coro<void> {
    while (!ran) co_await sleep(1ms);
  });
}

TEST_F(AsioBackendTest, AWakeUpBeforeTheWaitIsNotLost) {
  world.backend.wake();
  world.backend.wake();
  world.backend.wait(kNever, false);
}

TEST_F(AsioBackendTest, AWaitUntilATimeThatHasPassedReturnsAtOnce) {
  world.backend.wait(TimePoint::min(), false);
  world.backend.wait(world.clock.now(), true);
}

}  // namespace
}  // namespace argiope
