// An HTTP server on loopback, a handler that tests can make wait, throw and lie, and clients that send what bytes they
// like.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/web/http_server.hpp"
#include "support/advancing_time.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {

// So long takes only what hangs, however slow the machine is.
inline constexpr Duration kPlenty = 5min;

inline std::string get(std::string_view path, std::string_view fields = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}
inline std::string last(std::string_view path) { return get(path, "Connection: close\r\n"); }
inline std::string post(std::string_view path, std::string_view body, std::string_view fields = "") {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}
// What is behind the first head.
inline std::string body_of(std::string_view answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  return std::string(end == std::string_view::npos ? "no head" : answer.substr(end + 4));
}
inline std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

class HttpServerTest : public LoopTest<AdvancingTime> {
 public:
  HttpServerOptions options;
  // What the handler does with a path, beyond saying it.
  std::vector<std::string> begun, ended, cancelled;
  Event go_on;
  Event has_begun;
  Reports reports{loop};

  ~HttpServerTest() override {
    loop.cancel_all_tasks();
    settle();
    EXPECT_EQ(loop.task_count(), 0u);
  }

  // A handler for all tests: "/echo" gives the request back, "/wait" waits for go_on, others say their path.
  Coro<ServerResponse> answer(ServerRequest& request) {
    const std::string path(request.path);
    peer = request.peer;
    begun.push_back(path);
    has_begun.set();
    if (path == "/throw") throw std::runtime_error("no luck");
    if (path == "/empty") co_return ServerResponse{.status = 204};
    if (path == "/large") co_return ServerResponse::text(200, std::string(40'000'000, 'x'));
    if (path == "/split") co_return ServerResponse{.headers = {{"X", "a\r\nInjected: yes"}}};
    if (path == "/own-length") co_return ServerResponse{.headers = {{"Content-Length", "7"}}};
    if (path == "/status") co_return ServerResponse{.status = 42};
    if (path == "/bye") co_return ServerResponse{.headers = {{"connection", "Close"}}, .body = "bye"};
    if (path == "/echo") co_return ServerResponse::text(200, std::move(request.body));
    if (path == "/wait" || path == "/stubborn") {
      bool was_cancelled = false;
      try {
        co_await go_on.wait();
      } catch (const CancelledError&) {
        was_cancelled = true;
      }
      if (was_cancelled) {
        cancelled.push_back(path);
        if (path == "/stubborn") co_await sleep(50ms);
        if (path == "/wait") throw CancelledError();
      }
    }
    if (path == "/awaits-cancelled") {
      auto other = EventLoop::current().create_task(sleep_for(1h));
      other.cancel();
      co_await other;
    }
    ended.push_back(path);
    co_return ServerResponse::text(200, path);
  }
  HttpHandler handler() {
    return [this](ServerRequest& request) { return answer(request); };
  }

  // Runs `body` with a server of `options` that listens on loopback, and stops it.
  template <class Body>
  void with_server(Body body, HttpHandler of = {}) {
    HttpServer server(of ? std::move(of) : handler(), options);
    run([&]() -> Coro<void> {
      port = server.listen("127.0.0.1", 0);
      co_await wait_for(body(server), kPlenty);
      co_await server.stop(Duration::zero());
    });
    EXPECT_EQ(server.connections(), 0u);
  }
  Coro<Stream> connect() { return open_connection("127.0.0.1", port); }
  // All that comes until the server closes.
  Coro<std::string> talk(std::string bytes) {
    Stream stream = co_await connect();
    stream.write(bytes);
    co_return co_await read_rest(stream);
  }
  static Coro<std::string> read_rest(Stream& stream) {
    std::string all;
    try {
      while (co_await stream.read_onto(all, 1 << 20)) {
      }
    } catch (const std::system_error&) {
      all += "(reset)";
    }
    co_return all;
  }
  // One head and its body of `size` bytes.
  static Coro<std::string> read_answer(Stream& stream) {
    std::string head = co_await stream.read_until("\r\n\r\n");
    const std::size_t at = head.find("Content-Length: ");
    if (at == std::string::npos) co_return head;
    co_return head + co_await stream.read_exactly(std::stoul(head.substr(at + 16)));
  }
  // One exchange for tests that need no more.
  std::string ask(const std::string& bytes, HttpHandler of = {}) {
    std::string answer;
    with_server([&](HttpServer&) -> Coro<void> { answer = co_await talk(bytes); }, std::move(of));
    return answer;
  }
  Coro<void> until(std::function<bool()> holds) {
    while (!holds()) co_await sleep(1ms);
  }
  // Until the server has read what other clients have sent before: whole exchanges with another go by.
  Coro<void> until_read() {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(body_of(co_await talk(last("/behind"))), "/behind");
  }

  std::uint16_t port = 0;
  std::string peer = "none";
};

// Answers every request with what `stream` writes.
inline HttpHandler streaming(std::function<Coro<void>(BodyWriter&)> stream) {
  return [stream = std::move(stream)](ServerRequest&) -> Coro<ServerResponse> {
    co_return ServerResponse::streamed(200, "text/event-stream", stream);
  };
}

}  // namespace argiope
