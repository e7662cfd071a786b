// Layers between streams and their sockets: what is read and written goes through them, and their ends are told.
#include "async/internal/stream_layer.hpp"

#include <string>
#include <system_error>

#include "argiope/async/stream.hpp"
#include "argiope/async/sync.hpp"
#include "support/descriptors.hpp"
#include "support/loop_fixture.hpp"
#include "support/stream_wire.hpp"

namespace argiope {
namespace {

// Greets with "hello.", and is ready when the peer has done the same; from then on letters are in the other case. '!'
// asks for an answer, '?' is no speech, and '.' ends a side.
class OtherCase final : public detail::StreamLayer {
 public:
  bool receive(std::string_view came, std::string& plain, std::string& to_peer) override {
    if (came.empty()) to_peer += "hello.";
    for (const char c : came) {
      if (!is_ready_) {
        greeting_ += c;
        is_ready_ = greeting_ == "hello.";
        if (!std::string_view("hello.").starts_with(greeting_)) fail();
      } else if (c == '.') {
        return true;
      } else if (c == '!') {
        to_peer += std::string(1000, '!');
      } else if (c == '?') {
        fail();
      } else {
        plain += static_cast<char>(c ^ 0x20);
      }
    }
    return false;
  }
  void send(std::string_view plain, std::string& to_peer) override {
    for (const char c : plain) to_peer += static_cast<char>(c ^ 0x20);
  }
  void end(std::string& to_peer) noexcept override { to_peer += '.'; }
  bool is_ready() const noexcept override { return is_ready_; }

 private:
  [[noreturn]] static void fail() { throw std::system_error(std::make_error_code(std::errc::protocol_error)); }

  std::string greeting_;
  bool is_ready_ = false;
};

Coro<void> reading(Stream& stream) { (void)co_await stream.read(100); }

class StreamLayerTest : public InSomeWorld {
 public:
  // That has greeted.
  static Coro<Wire> layered() {
    Wire made = make_wire();
    put_bytes(made.peer, "hello.");
    co_await made.stream.start_layer(std::make_unique<OtherCase>());
    EXPECT_EQ(take_bytes(made.peer), "hello.");
    co_return made;
  }
};
INSTANTIATE_TEST_SUITE_P(RealWorlds, StreamLayerTest, kRealWorlds, world_name);

TEST_P(StreamLayerTest, ALayerStartsWhenThePeerHasSaidWhatItNeeds) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    Task<void> starting = this->loop.create_task(stream.start_layer(std::make_unique<OtherCase>()));
    for (const char* piece : {"he", "llo"}) {
      put_bytes(peer, piece);
      co_await sleep(1ms);
      EXPECT_FALSE(starting.done());
    }
    put_bytes(peer, ".abc");
    co_await starting;
    EXPECT_EQ(take_bytes(peer), "hello.");
    EXPECT_EQ(co_await stream.read(100), "ABC");
  });
}

TEST_P(StreamLayerTest, WhatIsReadAndWrittenGoesThroughIt) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = co_await this->layered();
    stream.write("Good day");
    EXPECT_EQ(take_bytes(peer), std::string("gOOD\0DAY", 8));
    put_bytes(peer, "one");
    std::string all = "> ";
    EXPECT_TRUE(co_await stream.read_onto(all, 2));
    EXPECT_TRUE(co_await stream.read_onto(all, 100));
    EXPECT_EQ(all, "> ONE");
    put_bytes(peer, "twx");
    EXPECT_EQ(co_await stream.read_until("W"), "TW");
    EXPECT_EQ(co_await stream.read_exactly(1), "X");
  });
}

TEST_P(StreamLayerTest, BothEndsAreTold) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = co_await this->layered();
    put_bytes(peer, "last.");
    EXPECT_EQ(co_await stream.read(100), "LAST");
    EXPECT_EQ(co_await stream.read(100), "");
    EXPECT_TRUE(stream.at_eof());
    stream.write("bye");
    stream.close();
    co_await stream.wait_closed();
    EXPECT_EQ(take_bytes(peer), "BYE.");
  });
}

TEST_P(StreamLayerTest, TheEndIsToldOnce) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = co_await this->layered();
    stream.write_eof();
    stream.close();
    co_await stream.wait_closed();
    EXPECT_EQ(take_bytes(peer), ".");
  });
}

TEST_P(StreamLayerTest, WhoWaitsForTheEndIsToldOfTheLayersFailureToo) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = co_await this->layered();
    Event ended;
    stream.when_ended([&] { ended.set(); });
    put_bytes(peer, "abc");
    co_await sleep(1ms);
    EXPECT_FALSE(ended.is_set());
    put_bytes(peer, "?");
    co_await ended.wait();
    EXPECT_EQ(co_await stream.read(100), "ABC");
    EXPECT_EQ(co_await code_of(reading(stream)), std::errc::protocol_error);
  });
}

TEST_P(StreamLayerTest, WithoutItsLayerTheStreamGoesOnAsItWas) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    put_bytes(peer, "GET");
    EXPECT_EQ(co_await code_of(stream.start_layer(std::make_unique<OtherCase>())), std::errc::protocol_error);
    stream.write("no");
    EXPECT_EQ(take_bytes(peer), "hello.no");
    put_bytes(peer, "on");
    EXPECT_EQ(co_await stream.read(100), "on");
  });
}

TEST_P(StreamLayerTest, AStreamThatEndsOrIsClosedBeforeIsAborted) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = make_wire();
    peer.reset();
    EXPECT_EQ(co_await code_of(stream.start_layer(std::make_unique<OtherCase>())), std::errc::connection_aborted);
    auto [closed, silent] = make_wire();
    auto starting = this->loop.create_task(code_of(closed.start_layer(std::make_unique<OtherCase>())));
    co_await sleep(1ms);
    closed.close();
    EXPECT_EQ(co_await starting, std::errc::connection_aborted);
  });
}

TEST_P(StreamLayerTest, APeerThatAsksForAnswersAndTakesNoneFillsNoMemory) {
  this->run([&]() -> Coro<void> {
    auto [stream, peer] = co_await this->layered();
    auto reading_on = this->loop.create_task(code_of(reading(stream)));
    while (!reading_on.done()) {
      put_bytes(peer, std::string(100, '!'));
      co_await sleep(1ms);
    }
    EXPECT_EQ(co_await reading_on, std::errc::no_buffer_space);
    EXPECT_LT(stream.write_buffer_size(), 1'000'000u);
  });
}

}  // namespace
}  // namespace argiope
