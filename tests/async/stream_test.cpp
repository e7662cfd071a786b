// Streams and servers: asyncio's rules of reading, writing and ending, over socket pairs, TCP and Unix sockets.
#include "argiope/async/stream.hpp"

#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/async/threads.hpp"
#include "async/socket_address.hpp"
#include "async/unix_path.hpp"
#include "support/descriptors.hpp"
#include "support/loop_fixture.hpp"
#include "support/needs_descriptors.hpp"
#include "support/stream_wire.hpp"

namespace argiope {
namespace {

using detail::UniqueFd;

template <class Error>
Coro<std::string> message_of(Coro<std::string> failing) {
  try {
    co_await std::move(failing);
  } catch (const Error& error) {
    co_return error.what();
  }
  co_return "no error";
}

Coro<void> dropping(Coro<std::string> coro) { co_await std::move(coro); }

class StreamTest : public InSomeWorld {
 public:
  // Takes all there is at `peer` until the stream has sent everything; gives how much that was.
  static Coro<std::size_t> take_all(Stream& stream, const UniqueFd& peer) {
    std::size_t taken = 0;
    while (stream.write_buffer_size() > 0) {
      taken += take_bytes(peer).size();
      co_await yield_now();
    }
    for (std::string bytes; !(bytes = take_bytes(peer)).empty();) taken += bytes.size();
    co_return taken;
  }
  // Cancels `coro` while it waits, and expects CancelledError.
  Coro<void> cancel_waiting(Coro<void> coro) {
    Task<void> task = this->loop.create_task(std::move(coro));
    co_await sleep(1ms);
    EXPECT_FALSE(task.done());
    task.cancel();
    while (!task.done()) co_await yield_now();
    EXPECT_TRUE(task.cancelled());
  }
};
INSTANTIATE_TEST_SUITE_P(RealWorlds, StreamTest, kRealWorlds, world_name);

// --- reading -----------------------------------------------------------------------------------------------------

TEST_P(StreamTest, ReadGivesWhatHasComeUpToTheNumberAskedFor) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    put_bytes(peer, "hello");
    EXPECT_EQ(co_await stream.read(4), "hell");
    EXPECT_EQ(co_await stream.read(100), "o");
    EXPECT_EQ(co_await stream.read(0), "");
    auto waiting = this->loop.create_task(stream.read(100));
    co_await sleep(1ms);
    EXPECT_FALSE(waiting.done());
    put_bytes(peer, "late");
    EXPECT_EQ(co_await waiting, "late");
    peer.reset();
    EXPECT_FALSE(stream.at_eof());
    EXPECT_EQ(co_await stream.read(100), "");
    EXPECT_TRUE(stream.at_eof());
    EXPECT_EQ(co_await stream.read(100), "");
  });
}

TEST_P(StreamTest, ReadExactlyWaitsForThemAll) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    auto waiting = this->loop.create_task(stream.read_exactly(6));
    for (const char* piece : {"ab", "cd", "efgh"}) {
      co_await sleep(1ms);
      EXPECT_FALSE(waiting.done());
      put_bytes(peer, piece);
    }
    EXPECT_EQ(co_await waiting, "abcdef");
    EXPECT_EQ(co_await stream.read_exactly(0), "");
    EXPECT_EQ(co_await stream.read_exactly(2), "gh");
  });
}

TEST_P(StreamTest, ReadExactlySaysWhatThereWasWhenTheStreamEnds) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    put_bytes(peer, "abc");
    peer.reset();
    try {
      co_await stream.read_exactly(5);
      ADD_FAILURE();
    } catch (const IncompleteReadError& error) {
      EXPECT_EQ(error.partial(), "abc");
      EXPECT_EQ(error.expected(), 5u);
      EXPECT_NE(std::string(error.what()).find("3 of 5"), std::string::npos) << error.what();
    }
    EXPECT_TRUE(stream.at_eof());
  });
}

TEST_P(StreamTest, ReadUntilStopsAfterTheSeparatorWhereverItIsCut) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    const std::string text = "one\r\n\r\rtwo\r\n\r\n\r\n\r\n";
    auto reading = this->spawn([&]() -> Coro<std::vector<std::string>> {
      std::vector<std::string> parts;
      for (int i = 0; i < 2; ++i) parts.push_back(co_await stream.read_until("\r\n\r\n"));
      co_return parts;
    });
    for (const char byte : text) {
      put_bytes(peer, {&byte, 1});
      co_await yield_now();
      co_await yield_now();
    }
    EXPECT_EQ(co_await reading, (std::vector<std::string>{"one\r\n\r\rtwo\r\n\r\n", "\r\n\r\n"}));
  });
}

TEST_P(StreamTest, ReadUntilSaysWhatThereWasWhenTheStreamEnds) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    put_bytes(peer, "no separator");
    peer.reset();
    try {
      co_await stream.read_until("\n");
      ADD_FAILURE();
    } catch (const IncompleteReadError& error) {
      EXPECT_EQ(error.partial(), "no separator");
      EXPECT_EQ(error.expected(), std::nullopt);
    }
  });
}

TEST_P(StreamTest, WhatComesBeforeASeparatorIsLimitedAndStays) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    put_bytes(peer, "12345\n");
    EXPECT_EQ(co_await stream.read_until("\n", 5), "12345\n") << "the separator does not count";
    put_bytes(peer, "123456\n");
    try {
      co_await stream.read_until("\n", 5);
      ADD_FAILURE();
    } catch (const LimitOverrunError& error) {
      EXPECT_EQ(error.consumed(), 6u);
    }
    EXPECT_EQ(co_await stream.read_until("\n", 6), "123456\n");
    put_bytes(peer, "123456\r");
    try {
      co_await stream.read_until("\r\n", 5);
      ADD_FAILURE() << "no separator could come in time";
    } catch (const LimitOverrunError& error) {
      EXPECT_EQ(error.consumed(), 6u) << "the last byte may begin a separator";
    }
    EXPECT_EQ(co_await stream.read_exactly(6), "123456");
    put_bytes(peer, "\n");
    EXPECT_EQ(co_await stream.read_until("\r\n", 5), "\r\n");
  });
}

TEST_P(StreamTest, ReadLineGivesTheLastLineWithoutItsEndAndThenNothing) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    put_bytes(peer, "first\nsecond");
    peer.reset();
    EXPECT_EQ(co_await stream.read_line(), "first\n");
    EXPECT_EQ(co_await stream.read_line(), "second");
    EXPECT_EQ(co_await stream.read_line(), "");
  });
}

TEST_P(StreamTest, ALineOverTheLimitIsDroppedSoThatOneMayReadOn) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire({.limit = 4});
    put_bytes(peer, "too long\nok\n");
    EXPECT_NE(co_await message_of<LimitOverrunError>(stream.read_line()), "no error");
    EXPECT_EQ(co_await stream.read_line(), "ok\n");
    put_bytes(peer, "without end");
    EXPECT_NE(co_await message_of<LimitOverrunError>(stream.read_line()), "no error");
    put_bytes(peer, "\nok\n");
    EXPECT_EQ(co_await stream.read_line(), "\n");
    EXPECT_EQ(co_await stream.read_line(), "ok\n");
  });
}

TEST_P(StreamTest, ReadAllReadsToTheEndWithinALimit) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    put_bytes(peer, "one");
    auto all = this->loop.create_task(stream.read_all(6));
    co_await sleep(1ms);
    EXPECT_FALSE(all.done());
    put_bytes(peer, "two");
    peer.reset();
    EXPECT_EQ(co_await all, "onetwo");
    auto [longer, its_peer] = make_wire();
    put_bytes(its_peer, "1234567");
    EXPECT_NE(co_await message_of<LimitOverrunError>(longer.read_all(6)), "no error");
    EXPECT_EQ(co_await longer.read(10), "1234567") << "it is still there";
  });
}

TEST_P(StreamTest, EveryReadCanBeCancelledAndLosesNoByte) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    co_await this->cancel_waiting(dropping(stream.read(10)));
    put_bytes(peer, "abc");
    co_await this->cancel_waiting(dropping(stream.read_exactly(10)));
    co_await this->cancel_waiting(dropping(stream.read_until("\n")));
    co_await this->cancel_waiting(dropping(stream.read_line()));
    co_await this->cancel_waiting(dropping(stream.read_all(100)));
    put_bytes(peer, "def\n");
    EXPECT_EQ(co_await stream.read_line(), "abcdef\n");
  });
}

TEST_P(StreamTest, OneTaskAtATimeReads) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    auto first = this->loop.create_task(stream.read(10));
    co_await let_others_run();
    EXPECT_NE(co_await message_of<std::logic_error>(stream.read(10)), "no error");
    EXPECT_NE(co_await message_of<std::logic_error>(stream.read_line()), "no error");
    put_bytes(peer, "mine");
    EXPECT_EQ(co_await first, "mine");
  });
}

TEST_P(StreamTest, AnEmptySeparatorIsRefused) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    EXPECT_NE(co_await message_of<std::invalid_argument>(stream.read_until("")), "no error");
  });
}

TEST_P(StreamTest, AResetIsAnErrorOfEveryReadAfterWhatHadCome) {
  this->run([&]() -> Coro<void> {
    Stream accepted;
    Event ready;
    Server server = start_server(
        [&](Stream& stream) -> Coro<void> {
          accepted = std::move(stream);
          ready.set();
          co_return;
        },
        "127.0.0.1", 0);
    Stream client = co_await open_connection("127.0.0.1", server.port());
    co_await ready.wait();
    client.write("last words\nand more");
    EXPECT_EQ(co_await accepted.read_line(), "last words\n");
    const linger at_once{1, 0};
    ::setsockopt(client.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    client.abort();
    EXPECT_EQ(co_await accepted.read(100), "and more");
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(co_await code_of(dropping(accepted.read(100))), std::errc::connection_reset);
    }
  });
}

TEST_P(StreamTest, BytesThatAreAlwaysThereCannotStarveOthers) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    put_bytes(peer, std::string(100'000, '\n'));
    for (const auto& read : std::vector<std::function<Coro<std::string>()>>{[&] { return stream.read(1); },
                                                                            [&] { return stream.read_exactly(1); },
                                                                            [&] { return stream.read_line(); }}) {
      bool other_ran = false;
      this->loop.call_soon([&] { other_ran = true; });
      int reads = 0;
      while (!other_ran && reads < 10'000) {
        EXPECT_EQ(co_await read(), "\n");
        ++reads;
      }
      EXPECT_LT(reads, 1000);
    }
  });
}

// --- writing -----------------------------------------------------------------------------------------------------

TEST_P(StreamTest, WriteSendsAtOnceWhatTheKernelTakes) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    stream.write("hello");
    EXPECT_EQ(take_bytes(peer), "hello");
    EXPECT_EQ(stream.write_buffer_size(), 0u);
    stream.write("");
    co_await stream.drain();
  });
}

TEST_P(StreamTest, DrainWaitsFromTheHighWaterMarkDownToTheLow) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire({.high_water = 100'000, .low_water = 50'000});
    fill_up(UniqueFd(::dup(stream.native_handle())));
    stream.write(std::string(100'000, 'x'));
    co_await stream.drain();  // not over the mark
    stream.write("x");
    std::size_t unsent_when_drained = 0;
    auto draining = this->spawn([&]() -> Coro<void> {
      co_await stream.drain();
      unsent_when_drained = stream.write_buffer_size();
    });
    co_await sleep(1ms);
    EXPECT_FALSE(draining.done());
    while (!draining.done()) {
      take_bytes(peer);
      co_await yield_now();
    }
    EXPECT_LE(unsent_when_drained, 50'000u);
  });
}

TEST_P(StreamTest, EverythingArrivesInOrder) {
  this->run([&]() -> Coro<void> {
    auto [ours, theirs] = make_socket_pair();
    Stream sender(ours.release());
    Stream receiver(theirs.release());
    constexpr int kLines = 50'000;
    auto sending = this->spawn([&]() -> Coro<void> {
      for (int i = 0; i < kLines; ++i) {
        sender.write(std::to_string(i) + "\n");
        co_await sender.drain();
      }
      sender.write_eof();
    });
    int received = 0;
    for (std::string line; !(line = co_await receiver.read_line()).empty(); ++received) {
      if (line != std::to_string(received) + "\n") {
        ADD_FAILURE() << line << " instead of " << received;
        break;
      }
    }
    EXPECT_EQ(received, kLines);
    co_await sending;
  });
}

TEST_P(StreamTest, WhoNeverDrainsIsRefusedAtTheWriteLimit) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire({.write_limit = 1'000'000});
    EXPECT_THROW(stream.write(std::string(1'000'001, 'x')), std::length_error);
    fill_up(UniqueFd(::dup(stream.native_handle())));
    stream.write(std::string(1'000'000, 'x'));
    EXPECT_THROW(stream.write("x"), std::length_error);
    EXPECT_EQ(stream.write_buffer_size(), 1'000'000u) << "nothing of it was taken";
    co_return;
  });
}

TEST_P(StreamTest, WriteEofIsSeenAfterWhatWasWritten) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    fill_up(UniqueFd(::dup(stream.native_handle())));
    stream.write("last");
    stream.write_eof();
    stream.write_eof();
    EXPECT_THROW(stream.write("more"), std::logic_error);
    std::string received;
    while (!received.ends_with("last")) {
      received += take_bytes(peer);
      co_await yield_now();
    }
    EXPECT_TRUE(is_at_end(peer));
    put_bytes(peer, "an answer");
    EXPECT_EQ(co_await stream.read(100), "an answer") << "the other direction goes on";
  });
}

TEST_P(StreamTest, APeerThatHasGoneIsToldByDrainAndTheProcessGetsNoSignal) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    peer.reset();
    stream.write("into the void");
    EXPECT_EQ(co_await code_of(stream.drain()), std::errc::broken_pipe);
    stream.write("and again");
    EXPECT_EQ(stream.write_buffer_size(), 0u);
    EXPECT_EQ(co_await code_of(stream.drain()), std::errc::broken_pipe);
    stream.close();
    EXPECT_EQ(co_await code_of(stream.wait_closed()), std::errc::broken_pipe);
    auto [read_end, write_end] = make_pipe();
    Stream pipe(write_end.release());
    read_end.reset();
    pipe.write("into the void");
    EXPECT_EQ(co_await code_of(pipe.drain()), std::errc::broken_pipe);
  });
}

TEST_P(StreamTest, APeerThatGoesWhileWeWaitEndsTheDrain) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire({.high_water = 0, .low_water = 0});
    put_bytes(peer, "last words");
    fill_up(UniqueFd(::dup(stream.native_handle())));
    stream.write("never read");
    auto draining = this->loop.create_task(code_of(stream.drain()));
    co_await sleep(1ms);
    EXPECT_FALSE(draining.done());
    peer.reset();
    EXPECT_EQ(co_await draining, std::errc::broken_pipe);
    EXPECT_EQ(co_await stream.read(100), "last words") << "what it said can still be read";
  });
}

TEST_P(StreamTest, DrainCanBeCancelledAndWhatWasWrittenIsSent) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire({.high_water = 0, .low_water = 0});
    fill_up(UniqueFd(::dup(stream.native_handle())));
    stream.write("later");
    co_await this->cancel_waiting(stream.drain());
    EXPECT_EQ(stream.write_buffer_size(), 5u);
    co_await this->take_all(stream, peer);
    co_await stream.drain();
  });
}

TEST_P(StreamTest, SeveralTasksMayDrain) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire({.high_water = 0, .low_water = 0});
    fill_up(UniqueFd(::dup(stream.native_handle())));
    stream.write("x");
    auto first = this->loop.create_task(stream.drain());
    auto second = this->loop.create_task(stream.drain());
    co_await sleep(1ms);
    EXPECT_FALSE(first.done() || second.done());
    co_await this->take_all(stream, peer);
    co_await first;
    co_await second;
  });
}

TEST_P(StreamTest, WaterMarksOutOfOrderAreRefusedAndTheDescriptorClosed) {
  this->run([&]() -> Coro<void> {
    auto [ours, theirs] = make_socket_pair();
    EXPECT_THROW(Stream(ours.release(), {.high_water = 1, .low_water = 2}), std::invalid_argument);
    EXPECT_TRUE(is_at_end(theirs));
    co_return;
  });
}

// --- the end -----------------------------------------------------------------------------------------------------

TEST_P(StreamTest, CloseSendsWhatIsUnsentBeforeItCloses) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    const std::string sent(1'000'000, 'x');
    stream.write(sent);
    EXPECT_FALSE(stream.is_closing());
    stream.close();
    stream.close();
    EXPECT_TRUE(stream.is_closing());
    EXPECT_THROW(stream.write("more"), std::logic_error);
    auto closing = this->loop.create_task(stream.wait_closed());
    co_await sleep(1ms);
    EXPECT_FALSE(closing.done());
    EXPECT_EQ(co_await this->take_all(stream, peer), sent.size());
    co_await closing;
    EXPECT_EQ(stream.native_handle(), -1);
    EXPECT_TRUE(is_at_end(peer));
  });
}

TEST_P(StreamTest, AbortAndDestructionDropWhatIsUnsent) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    fill_up(UniqueFd(::dup(stream.native_handle())));
    stream.write("never sent");
    stream.abort();
    EXPECT_EQ(co_await code_of(stream.wait_closed()), std::errc::connection_aborted);
    EXPECT_EQ(co_await code_of(stream.drain()), std::errc::connection_aborted);
    int fd = -1;
    {
      auto [other, its_peer] = make_wire();
      fd = other.native_handle();
      fill_up(UniqueFd(::dup(fd)));
      other.write("never sent");
    }
    EXPECT_FALSE(is_open(fd));
  });
}

TEST_P(StreamTest, ClosingEndsAReadThatWaits) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    put_bytes(peer, "some");
    auto reading = this->loop.create_task(message_of<IncompleteReadError>(stream.read_exactly(10)));
    co_await sleep(1ms);
    stream.close();
    EXPECT_NE((co_await reading).find("4 of 10"), std::string::npos);
    EXPECT_TRUE(stream.at_eof());
    EXPECT_EQ(co_await stream.read(10), "");
  });
}

TEST_P(StreamTest, AStreamMayBeDestroyedOrReplacedWhileATaskWaitsAtIt) {
  this->run([&]() -> Coro<void> {
    auto first = make_wire();
    auto second = make_wire({.high_water = 0, .low_water = 0});
    fill_up(UniqueFd(::dup(second.stream.native_handle())));
    second.stream.write("x");
    auto reading = this->loop.create_task(first.stream.read(10));
    auto draining = this->loop.create_task(code_of(second.stream.drain()));
    auto closing = this->loop.create_task(code_of(second.stream.wait_closed()));
    co_await sleep(1ms);
    first.stream = Stream();
    second.stream = make_wire().stream;
    EXPECT_EQ(co_await reading, "");
    EXPECT_EQ(co_await draining, std::errc::connection_aborted);
    EXPECT_EQ(co_await closing, std::errc::connection_aborted);
  });
}

TEST_P(StreamTest, WaitClosedCanBeCancelledAndTheClosingGoesOn) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    fill_up(UniqueFd(::dup(stream.native_handle())));
    stream.write("x");
    stream.close();
    co_await this->cancel_waiting(stream.wait_closed());
    co_await this->take_all(stream, peer);
    co_await stream.wait_closed();
  });
}

TEST_P(StreamTest, AnEmptyStreamSaysSo) {
  this->run([&]() -> Coro<void> {
    Stream empty;
    EXPECT_FALSE(empty);
    EXPECT_THROW(empty.write("x"), std::logic_error);
    EXPECT_THROW(static_cast<void>(empty.read(1)), std::logic_error);
    auto [stream, peer] = make_wire();
    Stream taken = std::move(stream);
    EXPECT_TRUE(taken);
    EXPECT_THROW(stream.close(), std::logic_error);
    co_return;
  });
}

TEST_P(StreamTest, APipeHasTwoOneWayStreams) {
  this->run([&]() -> Coro<void> {
    auto [read_end, write_end] = make_pipe();
    Stream from(read_end.release());
    Stream to(write_end.release());
    auto reading = this->loop.create_task(from.read_all(2'000'000));
    to.write(std::string(1'000'000, 'x'));
    to.write_eof();
    EXPECT_EQ((co_await reading).size(), 1'000'000u);
    EXPECT_EQ(to.native_handle(), -1) << "the end of a pipe is its close";
    EXPECT_EQ(from.peer_name(), "");
  });
}

TEST_P(StreamTest, ALoopMayBeDestroyedWithStreamsInUse) {
  std::array<int, 2> fds{-1, -1};
  {
    EventLoop doomed(this->world.backend);
    static_cast<void>(doomed.create_task(keeping([&]() -> Coro<void> {
      auto [first, peer] = make_socket_pair();
      auto [second, its_peer] = make_socket_pair();
      Stream read_from(first.release());
      Stream write_to(second.release());
      fds = {read_from.native_handle(), write_to.native_handle()};
      write_to.write(std::string(1'000'000, 'x'));
      auto reader = EventLoop::current().create_task(read_from.read(1));
      co_await write_to.drain();
    })));
    for (int i = 0; i < 3; ++i) doomed.run_once(TimePoint::min());
    EXPECT_TRUE(is_open(fds[0]) && is_open(fds[1]));
  }
  EXPECT_FALSE(is_open(fds[0]) || is_open(fds[1]));
  this->world.backend.poll();
}

TEST_F(OnVirtualLoop, AStreamNeedsABackendWithIo) {
  auto [ours, theirs] = make_socket_pair();
  const int fd = ours.get();
  loop_.run_until_complete(keeping([&]() -> Coro<void> {
    EXPECT_THROW(Stream(ours.release()), std::logic_error);
    EXPECT_FALSE(is_open(fd));
    EXPECT_THROW(start_server([](Stream&) -> Coro<void> { co_return; }, "127.0.0.1", 0), std::logic_error);
    co_return;
  }));
}

TEST(StreamWithoutLoop, SaysSo) {
  auto [ours, theirs] = make_socket_pair();
  EXPECT_THROW(Stream(ours.release()), std::logic_error);
}

// --- connecting and serving --------------------------------------------------------------------------------------

Coro<void> echo(Stream& client) {
  for (std::string bytes; !(bytes = co_await client.read(4096)).empty();) {
    client.write(bytes);
    co_await client.drain();
  }
}

TEST_P(StreamTest, AServerTalksToManyClientsAtOnce) {
  this->run([&]() -> Coro<void> {
    Server server = start_server(&echo, "127.0.0.1", 0);
    EXPECT_TRUE(server.is_serving());
    EXPECT_NE(server.port(), 0);
    EXPECT_EQ(server.name(), "127.0.0.1:" + std::to_string(server.port()));
    std::vector<Coro<void>> clients;
    for (int i = 0; i < 50; ++i) {
      clients.push_back([](std::uint16_t port, int number) -> Coro<void> {
        Stream stream = co_await open_connection("127.0.0.1", port);
        for (int round = 0; round < 10; ++round) {
          const std::string sent = "client " + std::to_string(number) + "\n";
          stream.write(sent);
          EXPECT_EQ(co_await stream.read_line(), sent);
        }
        stream.write_eof();
        EXPECT_EQ(co_await stream.read(1), "") << "the server closes when its handler has ended";
      }(server.port(), i));
    }
    co_await gather(std::move(clients));
    server.close();
    co_await server.wait_closed();
    EXPECT_EQ(server.connections(), 0u);
  });
}

TEST_P(StreamTest, BothEndsKnowEachOthersName) {
  this->run([&]() -> Coro<void> {
    std::string seen_by_server;
    Server server = start_server(
        [&](Stream& client) -> Coro<void> {
          seen_by_server = client.peer_name();
          co_return;
        },
        "localhost", 0);
    Stream client = co_await open_connection("localhost", server.port());
    EXPECT_EQ(client.peer_name(), server.name());
    const std::string own_name = client.local_name();
    EXPECT_EQ(co_await client.read(1), "");
    EXPECT_EQ(seen_by_server, own_name);
    int no_delay = 0;
    socklen_t size = sizeof no_delay;
    ::getsockopt(client.native_handle(), IPPROTO_TCP, 1 /* TCP_NODELAY */, &no_delay, &size);
    EXPECT_NE(no_delay, 0);
  });
}

TEST_P(StreamTest, WhatAHandlerWroteIsSentBeforeItsStreamIsClosed) {
  this->run([&]() -> Coro<void> {
    Server server = start_server(
        [](Stream& client) -> Coro<void> {
          client.write(std::string(5'000'000, 'x'));
          co_return;
        },
        "127.0.0.1", 0);
    Stream client = co_await open_connection("127.0.0.1", server.port());
    EXPECT_EQ((co_await client.read_all(10'000'000)).size(), 5'000'000u);
  });
}

TEST_P(StreamTest, AHandlersFailureIsReportedAndItsClientSeesTheEnd) {
  Reports reports(this->loop);
  this->run([&]() -> Coro<void> {
    Server server = start_server(
        [](Stream& client) -> Coro<void> {
          client.write("so far");
          throw std::runtime_error("no further");
          co_return;
        },
        "127.0.0.1", 0);
    Stream client = co_await open_connection("127.0.0.1", server.port());
    EXPECT_EQ(co_await client.read_all(100), "so far");
    server.close();
    co_await server.wait_closed();
  });
  ASSERT_EQ(reports.lines().size(), 1u);
  EXPECT_NE(reports.lines()[0].find("no further"), std::string::npos);
  EXPECT_NE(reports.lines()[0].find("client 127.0.0.1:"), std::string::npos) << reports.lines()[0];
}

TEST_P(StreamTest, AConnectionNobodyTakesIsAnErrorThatNamesIt) {
  this->run([&]() -> Coro<void> {
    Server server = start_server(&echo, "127.0.0.1", 0);
    const std::uint16_t port = server.port();
    server.close();
    try {
      co_await open_connection("127.0.0.1", port);
      ADD_FAILURE();
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::connection_refused);
      EXPECT_NE(std::string(error.what()).find("127.0.0.1:" + std::to_string(port)), std::string::npos);
    }
  });
}

// Holds 127.0.0.1:`port`, where then nobody answers; empty where another program has it.
UniqueFd hold_port(std::uint16_t port) {
  UniqueFd held(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(held.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) held.reset();
  return held;
}

TEST_P(StreamTest, TheNextAddressIsTriedWhenOneDoesNotAnswer) {
  this->run([&]() -> Coro<void> {
    std::optional<Server> server;
    UniqueFd first_address;
    try {
      while (!first_address) {
        server = start_server(&echo, "::1", 0);
        first_address = hold_port(server->port());
      }
    } catch (const std::system_error&) {
      server.reset();
    }
    if (!server) co_return;  // this machine has no IPv6
    EXPECT_EQ(server->name(), "[::1]:" + std::to_string(server->port()));
    Stream client = co_await open_connection("localhost", server->port());
    EXPECT_EQ(client.peer_name(), server->name());
  });
}

// No client gets this port, and no program listens there.
TEST_P(StreamTest, AllAddressesThatWereTriedAreNamed) {
  this->run([&]() -> Coro<void> {
    try {
      co_await open_connection("localhost", 1);
      ADD_FAILURE();
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::connection_refused);
      for (const char* tried : {"127.0.0.1:", "[::1]:"}) {
        EXPECT_NE(std::string(error.what()).find(tried), std::string::npos) << error.what();
      }
    }
  });
}

TEST_P(StreamTest, ConnectingCanBeCancelledAndLeavesNoDescriptor) {
  this->run([&]() -> Coro<void> {
    Server server = start_server(&echo, "127.0.0.1", 0);
    const int lowest_free = ::dup(0);
    ::close(lowest_free);
    // At every turn there is before it is connected.
    int turns = 0;
    for (bool in_time = true; in_time; ++turns) {
      Task<Stream> connecting = this->loop.create_task(open_connection("127.0.0.1", server.port()));
      for (int i = 0; i < turns; ++i) co_await yield_now();
      in_time = connecting.cancel();
      while (!connecting.done()) co_await yield_now();
      EXPECT_EQ(connecting.cancelled(), in_time);
    }
    EXPECT_GT(turns, 2);
    server.close();
    co_await server.wait_closed();
    const int lowest_now = ::dup(0);
    ::close(lowest_now);
    EXPECT_LE(lowest_now, lowest_free);
  });
}

TEST_P(StreamTest, RefusesAnEmptyHost) {
  this->run([&]() -> Coro<void> {
    EXPECT_NE(co_await message_of<std::invalid_argument>([]() -> Coro<std::string> {
                co_await open_connection("", 1);
                co_return "";
              }()),
              "no error");
  });
}

// A name that no resolver asks the network for.
const std::string kNoHost = std::string(70, 'x') + ".invalid";

TEST_P(StreamTest, AResolverLooksUpNamesOnItsThread) {
  ThreadPoolExecutor resolver(1);
  this->run([&]() -> Coro<void> {
    Server server = start_server(&echo, "127.0.0.1", 0);
    // Only "localhost" is known without asking; the system's table of hosts does not mind the case.
    Stream client = co_await open_connection("LocalHost", server.port(), {.resolver = &resolver});
    EXPECT_EQ(client.peer_name(), server.name());
    std::string what;
    try {
      co_await open_connection(kNoHost, 1, {.resolver = &resolver});
    } catch (const std::runtime_error& error) {
      what = error.what();
    }
    EXPECT_NE(what.find(kNoHost), std::string::npos) << what;
  });
}

TEST_P(StreamTest, WithoutAResolverTheLoopsDefaultExecutorLooksNamesUp) {
  this->run([&]() -> Coro<void> {
    Server server = start_server(&echo, "127.0.0.1", 0);
    Stream client = co_await open_connection("LocalHost", server.port());
    EXPECT_EQ(client.peer_name(), server.name());
  });
}

TEST_P(StreamTest, ALookUpCanBeCancelledAndEndsUnheard) {
  ThreadPoolExecutor resolver(1);
  std::binary_semaphore go_on(0);
  resolver.submit([&] { go_on.acquire(); });
  this->run([&]() -> Coro<void> {
    Task<Stream> connecting = this->loop.create_task(open_connection(kNoHost, 1, {.resolver = &resolver}));
    co_await sleep(1ms);
    EXPECT_FALSE(connecting.done());
    connecting.cancel();
    while (!connecting.done()) co_await yield_now();
    EXPECT_TRUE(connecting.cancelled());
    go_on.release();
  });
  resolver.shutdown();
}

TEST_P(StreamTest, AServerNeedsAnAddressOfItsOwnAndAHandler) {
  this->run([&]() -> Coro<void> {
    EXPECT_THROW(start_server(&echo, "", 0), std::invalid_argument);
    EXPECT_THROW(start_server(&echo, "host.invalid", 0), std::invalid_argument);
    EXPECT_THROW(start_server(&echo, std::string("127.0.0.1\0.example", 18), 0), std::invalid_argument);
    EXPECT_THROW(start_server(nullptr, "127.0.0.1", 0), std::invalid_argument);
    EXPECT_THROW(start_server(&echo, "127.0.0.1", 0, {.max_connections = 0}), std::invalid_argument);
    Server first = start_server(&echo, "127.0.0.1", 0);
    try {
      start_server(&echo, "127.0.0.1", first.port());
      ADD_FAILURE();
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::address_in_use);
    }
    co_return;
  });
}

TEST_P(StreamTest, FurtherClientsWaitWhenAServerIsFull) {
  this->run([&]() -> Coro<void> {
    std::size_t most = 0;
    Server* serving = nullptr;
    Server server = start_server(
        [&](Stream& client) -> Coro<void> {
          most = std::max(most, serving->connections());
          co_await client.read(1);
          client.write("served");
        },
        "127.0.0.1", 0, {.max_connections = 2});
    serving = &server;
    std::vector<Stream> clients;
    for (int i = 0; i < 5; ++i) clients.push_back(co_await open_connection("127.0.0.1", server.port()));
    while (server.connections() < 2) co_await yield_now();
    for (Stream& client : clients) {
      client.write("x");
      EXPECT_EQ(co_await client.read_all(100), "served");
    }
    EXPECT_EQ(most, 2u);
  });
}

TEST_P(StreamTest, ClosingAServerLeavesItsClientsAndWaitClosedWaitsForThem) {
  this->run([&]() -> Coro<void> {
    Server server = start_server(&echo, "127.0.0.1", 0);
    Stream client = co_await open_connection("127.0.0.1", server.port());
    client.write("a");
    EXPECT_EQ(co_await client.read(1), "a");
    server.close();
    server.close();
    EXPECT_FALSE(server.is_serving());
    auto closing = this->loop.create_task(server.wait_closed());
    client.write("b");
    EXPECT_EQ(co_await client.read(1), "b");
    EXPECT_FALSE(closing.done());
    co_await this->cancel_waiting(server.wait_closed());
    client.close();
    co_await closing;
  });
}

TEST_P(StreamTest, ClientsCanBeClosedOrAborted) {
  this->run([&]() -> Coro<void> {
    for (const bool abort : {false, true}) {
      Server server = start_server(&echo, "127.0.0.1", 0);
      Stream client = co_await open_connection("127.0.0.1", server.port());
      client.write("a");
      EXPECT_EQ(co_await client.read(1), "a");
      if (abort) {
        server.abort_clients();
      } else {
        server.close_clients();
      }
      EXPECT_EQ(co_await client.read(1), "");
      server.close();
      co_await server.wait_closed();
    }
  });
}

TEST_P(StreamTest, ADestroyedServerTakesNoMoreClientsButServesThoseItHas) {
  this->run([&]() -> Coro<void> {
    std::uint16_t port = 0;
    Stream client;
    {
      const Server server = start_server(&echo, "127.0.0.1", 0);
      port = server.port();
      client = co_await open_connection("127.0.0.1", port);
      client.write("a");
      EXPECT_EQ(co_await client.read(1), "a");
    }
    client.write("b");
    EXPECT_EQ(co_await client.read(1), "b");
    EXPECT_EQ(co_await code_of([](std::uint16_t to) -> Coro<void> { co_await open_connection("127.0.0.1", to); }(port)),
              std::errc::connection_refused);
    client.write_eof();
    EXPECT_EQ(co_await client.read(1), "");
  });
}

TEST_P(StreamTest, ServeForeverEndsWhenTheServerIsClosedOrItsTaskCancelled) {
  this->run([&]() -> Coro<void> {
    Server first = start_server(&echo, "127.0.0.1", 0);
    auto serving = this->loop.create_task(first.serve_forever());
    co_await let_others_run();
    first.close();
    co_await serving;
    Server second = start_server(&echo, "127.0.0.1", 0);
    Stream client = co_await open_connection("127.0.0.1", second.port());
    client.write("a");
    EXPECT_EQ(co_await client.read(1), "a");
    auto cancelled = this->loop.create_task(second.serve_forever());
    co_await let_others_run();
    cancelled.cancel();
    co_await sleep(1ms);
    EXPECT_FALSE(second.is_serving());
    EXPECT_FALSE(cancelled.done()) << "one is still being served";
    client.close();
    while (!cancelled.done()) co_await yield_now();
    EXPECT_TRUE(cancelled.cancelled());
  });
}

TEST_P(StreamTest, AHandlersTaskMayBeCancelled) {
  this->run([&]() -> Coro<void> {
    detail::TaskCore* handler = nullptr;
    Event running;
    Server server = start_server(
        [&](Stream& client) -> Coro<void> {
          handler = detail::this_thread.task;
          running.set();
          co_await client.read(1);
        },
        "127.0.0.1", 0);
    Stream client = co_await open_connection("127.0.0.1", server.port());
    co_await running.wait();
    handler->cancel({});
    EXPECT_EQ(co_await client.read(1), "");
    EXPECT_EQ(server.connections(), 0u);
  });
}

// Lowers the number of descriptors a process may have, and uses up what is left.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{256, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int fd; (fd = ::dup(STDERR_FILENO)) >= 0;) all_.emplace_back(fd);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  std::vector<UniqueFd> all_;
};

UniqueFd begin_to_connect(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

TEST(StreamWithoutDescriptors, AServerReportsItAndAcceptsASecondLater) {
  ARGIOPE_NEEDS_DESCRIPTORS;
  ManualClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  Reports reports(loop);
  loop.run_until_complete(keeping([&]() -> Coro<void> {
    Server server = start_server(&echo, "127.0.0.1", 0);
    const UniqueFd client = begin_to_connect(server.port());
    {
      const NoDescriptors none;
      while (reports.lines().empty()) co_await yield_now();
    }
    for (int i = 0; i < 1000; ++i) co_await yield_now();
    EXPECT_EQ(server.connections(), 0u) << "it rests";
    EXPECT_EQ(reports.lines().size(), 1u);
    EXPECT_NE(reports.lines()[0].find("accept"), std::string::npos) << reports.lines()[0];
    clock.advance(1s);
    while (server.connections() == 0) co_await yield_now();
    put_bytes(client, "hello");
    while (!has_input(client)) co_await yield_now();
    EXPECT_EQ(take_bytes(client), "hello");
  }));
}

TEST(StreamWithoutDescriptors, AServerClosedByTheExceptionHandlerStaysClosed) {
  ARGIOPE_NEEDS_DESCRIPTORS;
  const SystemClock clock;
  AsioBackend backend(clock);
  EventLoop loop(backend);
  Server server;
  loop.set_exception_handler([&](std::string_view, const std::exception_ptr&) { server.close(); });
  loop.run_until_complete(keeping([&]() -> Coro<void> {
    server = start_server(&echo, "127.0.0.1", 0);
    const UniqueFd client = begin_to_connect(server.port());
    const NoDescriptors none;
    while (server.is_serving()) co_await yield_now();
    co_await server.wait_closed();
  }));
}

TEST_P(StreamTest, TheWrongEndOfAPipeIsAnError) {
  this->run([&]() -> Coro<void> {
    auto [read_end, write_end] = make_pipe();
    Stream from(read_end.release());
    Stream to(write_end.release());
    EXPECT_EQ(co_await code_of(dropping(to.read(1))), std::errc::bad_file_descriptor);
    from.write("x");
    EXPECT_EQ(co_await code_of(from.drain()), std::errc::bad_file_descriptor);
  });
}

// --- cancelled anywhere ------------------------------------------------------------------------------------------

int lowest_free_descriptor() {
  const UniqueFd fd(::dup(STDERR_FILENO));
  return fd.get();
}

// A server, a client and everything they can wait for.
Coro<void> whole_conversation() {
  Server server = start_server(&echo, "127.0.0.1", 0, {.stream = {.high_water = 0, .low_water = 0}});
  auto serving = EventLoop::current().create_task(server.serve_forever());
  Stream client = co_await open_connection("localhost", server.port(), {.high_water = 0, .low_water = 0});
  client.write("line\n12345678, end");
  co_await client.drain();
  EXPECT_EQ(co_await client.read_line(), "line\n");
  EXPECT_EQ(co_await client.read_exactly(8), "12345678");
  EXPECT_EQ(co_await client.read_until(", "), ", ");
  // More than the kernel holds, so that both sides wait to write too.
  const std::string much(20'000'000, 'x');
  auto sending = EventLoop::current().create_task([](Stream& stream, const std::string& bytes) -> Coro<void> {
    for (std::size_t sent = 0; sent < bytes.size(); sent += 1'000'000) {
      stream.write(std::string_view(bytes).substr(sent, 1'000'000));
      co_await stream.drain();
    }
    stream.write_eof();
  }(client, much));
  EXPECT_EQ((co_await client.read_all(much.size() + 3)).size(), much.size() + 3);
  co_await sending;
  client.close();
  co_await client.wait_closed();
  server.close();
  co_await serving;
  co_await server.wait_closed();
}

TEST(StreamSweep, AConversationCancelledAtAnyTurnEndsAndLeavesNoDescriptor) {
  const SystemClock clock;
  AsioBackend backend(clock);
  const int free_before = lowest_free_descriptor();
  int turns = 0;
  for (bool complete = false; !complete; ++turns) {
    EventLoop loop(backend);
    shuffle_if_asked(loop);
    Reports reports(loop);
    auto task = loop.create_task(whole_conversation());
    // Every turn at first, then with growing gaps: most of the later ones are alike.
    const int turns_now = turns < 64 ? turns : 64 << (turns - 64);
    for (int i = 0; i < turns_now && !task.done(); ++i) loop.run_once(TimePoint::min());
    complete = task.done();
    if (complete) {
      task.result();
    } else {
      loop.cancel_all_tasks();
    }
    while (loop.task_count() > 0) loop.run_once(loop.time() + 1s);
    EXPECT_EQ(task.cancelled(), !complete);
    EXPECT_TRUE(reports.lines().empty()) << reports.lines()[0];
    ASSERT_EQ(lowest_free_descriptor(), free_before) << "after " << turns_now << " turns";
  }
  EXPECT_GT(turns, 10);
}

// --- Unix sockets ------------------------------------------------------------------------------------------------

class Folder {
 public:
  Folder() {
    if (::mkdtemp(name_) == nullptr) throw std::runtime_error("mkdtemp");
  }
  ~Folder() { ::rmdir(name_); }
  std::string path(const char* name) const { return std::string(name_) + "/" + name; }

 private:
  char name_[32] = "/tmp/argiope_stream_XXXXXX";
};

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

TEST_P(StreamTest, AUnixSocketIsAFileThatGoesWithItsServer) {
  const Folder folder;
  const std::string path = folder.path("socket");
  this->run([&]() -> Coro<void> {
    Server server = start_unix_server(&echo, path);
    EXPECT_EQ(server.name(), "unix:" + path);
    EXPECT_EQ(server.port(), 0);
    Stream client = co_await open_unix_connection(path);
    EXPECT_EQ(client.peer_name(), "unix:" + path);
    EXPECT_EQ(client.local_name(), "");
    client.write("hello");
    EXPECT_EQ(co_await client.read_exactly(5), "hello");
    server.close();
    EXPECT_FALSE(exists(path));
    EXPECT_EQ(co_await code_of([](std::string to) -> Coro<void> { co_await open_unix_connection(to); }(path)),
              std::errc::no_such_file_or_directory);
  });
}

// As a process that was killed leaves it: bound, and nobody listens.
void leave_socket_at(const std::string& path) {
  const detail::SocketAddress address = detail::unix_address(path);
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(fd.get(), address.get(), address.size), 0);
}

TEST_P(StreamTest, ASocketLeftBehindIsReplacedButNoOtherFile) {
  const Folder folder;
  const std::string path = folder.path("socket");
  this->run([&]() -> Coro<void> {
    leave_socket_at(path);
    Server server = start_unix_server(&echo, path);
    Stream client = co_await open_unix_connection(path);
    server.close();
    EXPECT_FALSE(exists(path));
    const UniqueFd file(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    EXPECT_THROW(start_unix_server(&echo, path), std::system_error);
    EXPECT_TRUE(exists(path));
    ::unlink(path.c_str());
    EXPECT_FALSE(exists(path + ".lock"));
  });
}

TEST_P(StreamTest, ASocketThatAnotherServerAnswersAtIsNotTakenAway) {
  const Folder folder;
  const std::string path = folder.path("socket");
  this->run([&]() -> Coro<void> {
    Server first = start_unix_server(&echo, path);
    for (int i = 0; i < 2; ++i) {
      try {
        start_unix_server(&echo, path);
        ADD_FAILURE() << "it was taken";
      } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::address_in_use);
      }
      ::unlink((path + ".lock").c_str());  // one that knows nothing of the lock answers, too
    }
    Stream client = co_await open_unix_connection(path);
    client.write("hello");
    EXPECT_EQ(co_await client.read_exactly(5), "hello");
    first.close();
    EXPECT_FALSE(exists(path));
  });
}

TEST_P(StreamTest, APathThatAnotherServerIsAboutToListenAtIsTaken) {
  const Folder folder;
  const std::string path = folder.path("socket");
  this->run([&]() -> Coro<void> {
    leave_socket_at(path);
    {
      detail::UnixPath first(path);
      EXPECT_THROW(start_unix_server(&echo, path), std::system_error);
    }
    Server server = start_unix_server(&echo, path);
    EXPECT_TRUE(exists(path + ".lock"));
    co_return;
  });
}

TEST_P(StreamTest, AnAbstractNameNeedsNoFile) {
  this->run([&]() -> Coro<void> {
    const std::string name = std::string(1, '\0') + "argiope-test-" + std::to_string(::getpid());
    Server server = start_unix_server(&echo, name);
    EXPECT_EQ(server.name(), "unix:@" + name.substr(1));
    Stream client = co_await open_unix_connection(name);
    client.write("hello");
    EXPECT_EQ(co_await client.read_exactly(5), "hello");
  });
}

TEST_P(StreamTest, APathTooLongForASocketIsRefused) {
  this->run([&]() -> Coro<void> {
    EXPECT_THROW(start_unix_server(&echo, "/" + std::string(107, 'x')), std::invalid_argument);
    EXPECT_THROW(start_unix_server(&echo, ""), std::invalid_argument);
    EXPECT_THROW(start_unix_server(&echo, std::string("/tmp/a\0b", 8)), std::invalid_argument);
    EXPECT_NE(co_await message_of<std::invalid_argument>([]() -> Coro<std::string> {
                co_await open_unix_connection("/" + std::string(107, 'x'));
                co_return "";
              }()),
              "no error");
  });
}

}  // namespace
}  // namespace argiope
