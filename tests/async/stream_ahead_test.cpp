// Stream::read_onto and Stream::when_ended: reading into the caller's buffer, and hearing of the end while not reading.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/async/stream.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

class StreamAhead : public InSomeWorld {
 public:
  // Two ends of a connection; on a running loop.
  static std::pair<Stream, Stream> connected(const StreamOptions& options = {}) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("socketpair");
    return {Stream(ends[0], options), Stream(ends[1], options)};
  }
  Coro<void> until(const bool& flag) {
    while (!flag) co_await sleep(1ms);
  }
};
INSTANTIATE_TEST_SUITE_P(RealWorlds, StreamAhead, kRealWorlds, world_name);

TEST_P(StreamAhead, ReadsOntoABuffer) {
  this->run([&]() -> Coro<void> {
    auto [near, far] = this->connected();
    std::string buffer = "kept ";
    for (const char* text : {"one", "two", "three"}) {
      auto reading = EventLoop::current().create_task(near.read_onto(buffer, 100));
      co_await yield_now();
      far.write(text);
      EXPECT_TRUE(co_await reading);
    }
    EXPECT_EQ(buffer, "kept onetwothree");
    far.write("abcdef");
    EXPECT_TRUE(co_await near.read_onto(buffer, 2));
    EXPECT_TRUE(co_await near.read_onto(buffer, 3));
    EXPECT_EQ(buffer, "kept onetwothreeabcde");
    EXPECT_FALSE(co_await near.read_onto(buffer, 0));
    far.close();
    EXPECT_EQ(co_await near.read(10), "f");
    EXPECT_FALSE(co_await near.read_onto(buffer, 10));
    EXPECT_FALSE(co_await near.read_onto(buffer, 10));
    EXPECT_TRUE(near.at_eof());
  });
}

TEST_P(StreamAhead, ReadsOntoWhatOtherReadsHaveLeft) {
  this->run([&]() -> Coro<void> {
    auto [near, far] = this->connected();
    far.write("line\nrest");
    EXPECT_EQ(co_await near.read_line(), "line\n");
    std::string buffer;
    EXPECT_TRUE(co_await near.read_onto(buffer, 100));
    EXPECT_EQ(buffer, "rest");
  });
}

TEST_P(StreamAhead, LosesNothingWhenACancelledReadOntoWaited) {
  this->run([&]() -> Coro<void> {
    auto [near, far] = this->connected();
    std::string buffer;
    far.write("first");
    co_await near.read_onto(buffer, 100);
    for (int i = 0; i < 3; ++i) {
      EXPECT_THROW(co_await wait_for(near.read_onto(buffer, 100), 1ms), TimeoutError);
    }
    far.write("second");
    EXPECT_TRUE(co_await near.read_onto(buffer, 100));
    EXPECT_EQ(buffer, "firstsecond");
  });
}

TEST_P(StreamAhead, EndsAReadOntoWithTheStream) {
  this->run([&]() -> Coro<void> {
    auto [near, far] = this->connected();
    std::string buffer;
    far.write("x");
    co_await near.read_onto(buffer, 100);
    auto reading = EventLoop::current().create_task(near.read_onto(buffer, 100));
    co_await let_others_run();
    near.close();
    EXPECT_FALSE(co_await reading);
  });
}

TEST_P(StreamAhead, TellsOfTheEndWhileNobodyReads) {
  this->run([&]() -> Coro<void> {
    auto [near, far] = this->connected();
    bool ended = false;
    near.when_ended([&] { ended = true; });
    far.write("before the end");
    co_await sleep(2ms);
    EXPECT_FALSE(ended);
    far.write_eof();
    co_await this->until(ended);
    std::string buffer;
    EXPECT_TRUE(co_await near.read_onto(buffer, 100));
    EXPECT_EQ(buffer, "before the end");
    EXPECT_FALSE(co_await near.read_onto(buffer, 100));
  });
}

TEST_P(StreamAhead, TellsOfAnEndThatCameBefore) {
  this->run([&]() -> Coro<void> {
    auto [near, far] = this->connected();
    far.close();
    EXPECT_EQ(co_await near.read(1), "");
    bool ended = false;
    near.when_ended([&] { ended = true; });
    co_await this->until(ended);
  });
}

TEST_P(StreamAhead, TellsNothingOnceTakenBack) {
  this->run([&]() -> Coro<void> {
    auto [near, far] = this->connected();
    bool ended = false;
    near.when_ended([&] { ended = true; });
    co_await let_others_run();
    near.when_ended({});
    far.write("x");
    far.close();
    co_await sleep(5ms);
    EXPECT_FALSE(ended);
    near.when_ended([&] { ended = true; });
    EXPECT_EQ(co_await near.read(1), "x");  // a read takes it back, too
    co_await sleep(5ms);
    EXPECT_FALSE(ended);
  });
}

TEST_P(StreamAhead, MayBeDestroyedByWhoIsTold) {
  this->run([&]() -> Coro<void> {
    auto [near, far] = this->connected();
    bool ended = false;
    Stream* const place = &near;
    near.when_ended([&, place] {
      *place = Stream();
      ended = true;
    });
    far.close();
    co_await this->until(ended);
  });
}

TEST_P(StreamAhead, KeepsNoMoreThanItShouldWhileNobodyReads) {
  this->run([&]() -> Coro<void> {
    StreamOptions patient;
    patient.write_limit = 1 << 30;
    auto [near, far] = this->connected(patient);
    bool ended = false;
    near.when_ended([&] { ended = true; });
    const std::string much(20'000'000, 'x');
    far.write(much);
    far.write_eof();
    co_await sleep(20ms);
    EXPECT_FALSE(ended);
    EXPECT_GT(far.write_buffer_size(), 15'000'000u);
    std::string all;
    while (co_await near.read_onto(all, 1 << 20)) {
    }
    EXPECT_EQ(all.size(), much.size());
  });
}

TEST_P(StreamAhead, RefusesToWatchWhileATaskReads) {
  this->run([&]() -> Coro<void> {
    auto [near, far] = this->connected();
    std::string buffer;
    auto reading = EventLoop::current().create_task(near.read_onto(buffer, 10));
    co_await let_others_run();
    EXPECT_THROW(near.when_ended([] {}), std::logic_error);
    far.write("x");
    EXPECT_TRUE(co_await reading);
  });
}

}  // namespace
}  // namespace argiope
