// A beanstalkd server on loopback over an engine in memory, in a time that stands still until a test moves it, and
// clients that send what bytes they like.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "argiope/async/stream.hpp"
#include "argiope/engine/engine.hpp"
#include "argiope/store/store.hpp"
#include "serve/beanstalkd/beanstalkd.hpp"
#include "support/loop_fixture.hpp"
#include "support/open_engine.hpp"

namespace argiope {

struct StoppedTime {
  ManualClock clock;
  AsioBackend backend{clock};
  template <class T>
  T run(EventLoop& loop, Coro<T> coro) {
    return loop.run_until_complete(std::move(coro));
  }
};

// One client, which knows the bytes it should get.
class BeanstalkdClient {
 public:
  explicit BeanstalkdClient(Stream stream) : stream_(std::move(stream)) {}

  void send(std::string_view bytes) { stream_.write(bytes); }
  // The next bytes are these.
  Coro<void> expect(std::string expected) {
    std::string got;
    while (got.size() < expected.size()) {
      if (!co_await stream_.read_onto(got, expected.size() - got.size())) break;
      if (!expected.starts_with(got)) break;
    }
    EXPECT_EQ(got, expected);
  }
  // Says it, and is answered so.
  Coro<void> ask(std::string bytes, std::string expected) {
    send(bytes);
    co_await expect(std::move(expected));
  }
  // The text of an answer with "OK <bytes>".
  Coro<std::string> text(std::string bytes) {
    send(bytes);
    const std::string head = co_await stream_.read_until("\r\n");
    EXPECT_TRUE(head.starts_with("OK ")) << head;
    if (!head.starts_with("OK ")) co_return head;
    const std::string text = co_await stream_.read_exactly(std::stoul(head.substr(3)) + 2);
    EXPECT_TRUE(text.ends_with("\r\n"));
    co_return text.substr(0, text.size() - 2);
  }
  // Of one member of such a text; "none" where it has none.
  Coro<std::string> member(std::string bytes, std::string name) {
    const std::string all = "\n" + co_await text(std::move(bytes));
    const std::size_t at = all.find("\n" + name + ": ");
    if (at == std::string::npos) co_return "none";
    const std::size_t from = at + name.size() + 3;
    co_return all.substr(from, all.find('\n', from) - from);
  }
  Coro<void> expect_end() {
    std::string got;
    try {
      EXPECT_FALSE(co_await stream_.read_onto(got, 1000)) << got;
    } catch (const std::system_error&) {
    }
  }
  void end_of_commands() { stream_.write_eof(); }
  void leave() { stream_.abort(); }
  Stream& stream() noexcept { return stream_; }

 private:
  Stream stream_;
};

class BeanstalkdTest : public LoopTest<StoppedTime> {
 public:
  BeanstalkdOptions options;
  std::unique_ptr<Store> store = value_or_throw(open_store("memory:"));
  std::unique_ptr<Engine> engine;
  std::uint16_t port = 0;

  // Runs `body` with a server, and stops it.
  template <class Body>
  void with_server(Body body) {
    run([&]() -> Coro<void> {
      engine = co_await open_engine(*store);
      Beanstalkd server(*engine, options);
      port = server.listen("127.0.0.1", 0);
      co_await body(server);
      EXPECT_TRUE(co_await server.stop(kPlenty));
      EXPECT_EQ(server.connections(), 0u);
      EXPECT_TRUE(co_await engine->close());
    });
    engine.reset();
  }
  // The same for tests that need one client and no more.
  template <class Body>
  void with_client(Body body) {
    with_server([&](Beanstalkd&) -> Coro<void> {
      BeanstalkdClient client = co_await connect();
      co_await body(client);
    });
  }
  Coro<BeanstalkdClient> connect() { co_return BeanstalkdClient(co_await open_connection("127.0.0.1", port)); }
  // `current-waiting`, as another client sees it.
  Coro<std::string> waiting_now() {
    BeanstalkdClient other = co_await connect();
    co_return co_await other.member("stats\r\n", "current-waiting");
  }
  void pass(Duration time) { world.clock.advance(time); }

  static constexpr Duration kPlenty = std::chrono::hours{1};
};

}  // namespace argiope
