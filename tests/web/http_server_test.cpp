#include "argiope/web/http_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/group.hpp"
#include "argiope/async/queue.hpp"
#include "argiope/async/stream.hpp"
#include "argiope/async/timeout.hpp"
#include "support/loop_fixture.hpp"

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr Duration kPlenty = 20s;

std::string get(std::string_view path, std::string_view fields = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}
std::string last(std::string_view path) { return get(path, "Connection: close\r\n"); }
std::string post(std::string_view path, std::string_view body, std::string_view fields = "") {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}
// What is behind the first head.
std::string body_of(std::string_view answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  return std::string(end == std::string_view::npos ? "no head" : answer.substr(end + 4));
}
std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

class HttpServerTest : public LoopTest<RealTime> {
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

  std::uint16_t port = 0;
  std::string peer = "none";
};

// --- answers

TEST_F(HttpServerTest, AnswersARequest) {
  const std::string answer = ask(last("/hello?x=1"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nDate: "));
  EXPECT_THAT(answer, EndsWith(" GMT\r\nConnection: close\r\nContent-Length: 6\r\n\r\n/hello"));
}

TEST_F(HttpServerTest, TellsTheHandlerEverythingOfTheRequest) {
  std::string seen;
  ask("PUT /a/b?q=%20 HTTP/1.1\r\nHost: shop.example:81\r\nX-Key: k\r\nConnection: close\r\nContent-Length: "
      "2\r\n\r\nhi",
      [&](ServerRequest& request) -> Coro<ServerResponse> {
        seen = std::string(to_string(request.method)) + ' ' + std::string(request.target) + ' ' +
               std::string(request.host) + ' ' + std::string(request.header("x-key")) + ' ' + request.body + ' ' +
               *request.query_value("q") + '|' + std::string(request.peer.substr(0, 10));
        co_return ServerResponse{};
      });
  EXPECT_EQ(seen, "PUT /a/b?q=%20 shop.example:81 k hi  |127.0.0.1:");
}

TEST_F(HttpServerTest, KeepsTheConnectionForTheNextRequest) {
  with_server([&](HttpServer& server) -> Coro<void> {
    Stream stream = co_await connect();
    for (const char* path : {"/one", "/two", "/three"}) {
      stream.write(get(path));
      EXPECT_EQ(body_of(co_await read_answer(stream)), path);
    }
    EXPECT_EQ(server.connections(), 1u);
    EXPECT_EQ(server.requests(), 3u);
  });
}

TEST_F(HttpServerTest, KeepsAnOldClientsConnectionOnlyWhenAsked) {
  EXPECT_THAT(ask("GET /x HTTP/1.0\r\n\r\n"), HasSubstr("Connection: close\r\n"));
  with_server([&](HttpServer&) -> Coro<void> {
    Stream stream = co_await connect();
    for (int i = 0; i < 2; ++i) {
      stream.write("GET /x HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
      EXPECT_THAT(co_await read_answer(stream), HasSubstr("Connection: keep-alive\r\n"));
    }
  });
}

TEST_F(HttpServerTest, SendsNoBodyWhereThereIsNone) {
  EXPECT_THAT(ask("HEAD /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
              EndsWith("Content-Length: 6\r\n\r\n"));
  const std::string empty = ask(last("/empty"));
  EXPECT_THAT(empty, StartsWith("HTTP/1.1 204 No Content\r\n"));
  EXPECT_THAT(empty, Not(HasSubstr("Content-Length")));
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrderAndInOneWrite) {
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += post("/echo", "<" + std::to_string(i) + ">");
  const std::string answer = ask(requests + last("/end"));
  EXPECT_EQ(count(answer, "HTTP/1.1 200 OK"), 101u);
  std::size_t at = 0;
  for (int i = 0; i < 100; ++i) {
    const std::size_t next = answer.find("<" + std::to_string(i) + ">");
    ASSERT_NE(next, std::string::npos) << i;
    EXPECT_GT(next, at);
    at = next;
  }
  with_server([&](HttpServer&) -> Coro<void> {
    Stream stream = co_await connect();
    stream.write(get("/a") + get("/b") + get("/c"));
    const std::string first = co_await stream.read(1 << 20);
    EXPECT_EQ(count(first, "HTTP/1.1 200 OK"), 3u);
  });
}

TEST_F(HttpServerTest, DoesNotHoldAnAnswerBackForTheNextOne) {
  with_server([&](HttpServer&) -> Coro<void> {
    Stream stream = co_await connect();
    stream.write(get("/quick") + get("/wait"));
    EXPECT_EQ(body_of(co_await read_answer(stream)), "/quick");
    go_on.set();
    EXPECT_EQ(body_of(co_await read_answer(stream)), "/wait");
  });
}

TEST_F(HttpServerTest, TakesBodiesInChunksAndPieces) {
  with_server([&](HttpServer&) -> Coro<void> {
    Stream stream = co_await connect();
    for (const char* piece : {"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Enc", "oding: chunked\r\n\r\n5\r\nhe",
                              "llo\r\n1", "\r\n!\r\n0\r\n\r", "\n"}) {
      stream.write(piece);
      co_await sleep(2ms);
    }
    EXPECT_EQ(body_of(co_await read_answer(stream)), "hello!");
    const std::string large(3'000'000, 'y');
    stream.write(post("/echo", large));
    EXPECT_EQ(body_of(co_await read_answer(stream)), large);
  });
}

TEST_F(HttpServerTest, SendsLargeBodies) {
  const std::string answer = ask(last("/large"));
  EXPECT_THAT(answer.substr(0, 300), HasSubstr("Content-Length: 40000000\r\n"));
  EXPECT_EQ(body_of(answer).size(), 40'000'000u);
}

TEST_F(HttpServerTest, InvitesABodyThatWaitsForIt) {
  with_server([&](HttpServer&) -> Coro<void> {
    Stream stream = co_await connect();
    stream.write("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    EXPECT_EQ(co_await stream.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write("ok");
    EXPECT_EQ(body_of(co_await read_answer(stream)), "ok");
    // Who has sent it already is not told.
    stream.write(post("/echo", "at once", "Expect: 100-continue\r\n"));
    EXPECT_THAT(co_await read_answer(stream), StartsWith("HTTP/1.1 200"));
  });
}

TEST_F(HttpServerTest, RefusesABodyThatIsTooLongBeforeItIsSent) {
  options.max_body_bytes = 10;
  const std::string answer =
      ask("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 Payload Too Large\r\n"));
  EXPECT_THAT(answer, HasSubstr("\"detail\":\"the body has 11 bytes, and 10 are allowed\""));
}

TEST_F(HttpServerTest, LetsAClientReadWhyItsBodyIsRefused) {
  options.max_body_bytes = 1000;
  // More than the kernel's buffers hold is on its way when the answer comes.
  const std::string answer = ask(post("/echo", std::string(900'000, 'x')));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(answer, Not(HasSubstr("(reset)")));
}

TEST_F(HttpServerTest, SaysWhatIsWrongWithABadRequest) {
  const std::string answer = ask("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\n"));
  EXPECT_EQ(body_of(answer),
            R"({"type":"about:blank","title":"Bad Request","status":400,"detail":"bad request: there is no Host"})"
            "\n");
  EXPECT_THAT(begun, IsEmpty());
}

TEST_F(HttpServerTest, AnswersWhatCameBeforeABadRequest) {
  const std::string answer = ask(get("/good") + "BAD\r\n\r\n" + get("/never"));
  EXPECT_EQ(count(answer, "HTTP/1.1 "), 2u);
  EXPECT_THAT(answer, HasSubstr("/good"));
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 400"));
  EXPECT_THAT(begun, ElementsAre("/good"));
}

// --- handlers that go wrong

TEST_F(HttpServerTest, AnswersForAHandlerThatThrows) {
  with_server([&](HttpServer&) -> Coro<void> {
    Stream stream = co_await connect();
    stream.write(get("/throw"));
    const std::string answer = co_await read_answer(stream);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 500 Internal Server Error\r\n"));
    EXPECT_THAT(answer, Not(HasSubstr("no luck")));
    stream.write(get("/next"));
    EXPECT_EQ(body_of(co_await read_answer(stream)), "/next");
  });
  EXPECT_THAT(reports.lines(), ElementsAre("HTTP GET /throw: no luck"));
}

TEST_F(HttpServerTest, TakesAHandlerThatAwaitsWhatIsCancelledForOneThatFails) {
  EXPECT_THAT(ask(last("/awaits-cancelled")), StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(reports.lines(), ElementsAre("HTTP GET /awaits-cancelled: cancelled"));
}

TEST_F(HttpServerTest, SendsNoAnswerThatWouldBeTwo) {
  for (const char* path : {"/split", "/own-length", "/status"}) {
    const std::string answer = ask(last(path));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 500")) << path;
    EXPECT_THAT(answer, Not(HasSubstr("Injected: yes"))) << path;
  }
  EXPECT_EQ(reports.lines().size(), 3u);
}

TEST_F(HttpServerTest, ClosesWhenTheHandlerSaysSo) {
  EXPECT_THAT(ask(get("/bye")), EndsWith("Connection: close\r\nContent-Length: 3\r\n\r\nbye"));
}

TEST_F(HttpServerTest, AnswersForAHandlerThatTakesTooLong) {
  options.request_timeout = 20ms;
  with_server([&](HttpServer&) -> Coro<void> {
    Stream stream = co_await connect();
    stream.write(get("/wait"));
    EXPECT_THAT(co_await read_answer(stream), StartsWith("HTTP/1.1 503"));
    stream.write(get("/next"));
    EXPECT_EQ(body_of(co_await read_answer(stream)), "/next");
  });
  EXPECT_THAT(cancelled, ElementsAre("/wait"));
}

TEST_F(HttpServerTest, SendsTheAnswerOfAHandlerThatIsCancelledAndAnswersAllTheSame) {
  options.request_timeout = 20ms;
  EXPECT_EQ(body_of(ask(last("/stubborn"))), "/stubborn");
}

// --- streamed answers

HttpHandler streaming(std::function<Coro<void>(BodyWriter&)> stream) {
  return [stream = std::move(stream)](ServerRequest&) -> Coro<ServerResponse> {
    co_return ServerResponse::streamed(200, "text/event-stream", stream);
  };
}

TEST_F(HttpServerTest, StreamsABodyInChunks) {
  Queue<std::string> pieces;
  const auto stream = [&](BodyWriter& out) -> Coro<void> {
    for (std::string piece = co_await pieces.get(); piece != "end"; piece = co_await pieces.get()) {
      co_await out.write(piece);
    }
  };
  with_server(
      [&](HttpServer&) -> Coro<void> {
        Stream client = co_await connect();
        client.write(get("/events") + get("/next"));
        EXPECT_THAT(co_await client.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
        for (const char* piece : {"data: 1\n\n", "", "data: 2\n\n"}) {
          pieces.put_nowait(piece);
          if (*piece == 0) continue;
          EXPECT_EQ(co_await client.read_line(), "9\r\n");
          EXPECT_EQ(co_await client.read_exactly(11), std::string(piece) + "\r\n");
        }
        pieces.put_nowait("end");
        EXPECT_EQ(co_await client.read_exactly(5), "0\r\n\r\n");
        EXPECT_THAT(co_await client.read_line(), StartsWith("HTTP/1.1 200"));
        pieces.put_nowait("end");
      },
      streaming(stream));
}

TEST_F(HttpServerTest, StreamsToAnOldClientUpToTheEndOfTheConnection) {
  const std::string answer =
      ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", streaming([](BodyWriter& out) -> Coro<void> {
            co_await out.write("one ");
            co_await out.write("two");
          }));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("chunked")));
  EXPECT_EQ(body_of(answer), "one two");
}

TEST_F(HttpServerTest, StreamsNothingForHead) {
  bool called = false;
  const std::string answer =
      ask("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", streaming([&](BodyWriter&) -> Coro<void> {
            called = true;
            co_return;
          }));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
  EXPECT_FALSE(called);
}

TEST_F(HttpServerTest, CutsAStreamOffThatThrows) {
  const std::string answer = ask(get("/"), streaming([](BodyWriter& out) -> Coro<void> {
                                   co_await out.write("half");
                                   throw std::runtime_error("no more");
                                 }));
  EXPECT_THAT(answer, HasSubstr("4\r\nhalf\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("0\r\n\r\n")));
  EXPECT_THAT(reports.lines(), ElementsAre("HTTP GET /: no more"));
}

TEST_F(HttpServerTest, SlowsAStreamDownToItsClient) {
  std::size_t written = 0;
  bool is_over = false;
  const std::string piece(10'000, 'z');
  with_server(
      [&](HttpServer&) -> Coro<void> {
        Stream client = co_await connect();
        client.write(last("/"));
        std::size_t before = 1;
        while (before != written) {
          before = written;
          co_await sleep(20ms);
        }
        EXPECT_LT(written, 20'000'000u);  // what the kernel holds, and 64 KiB
        const std::string all = co_await read_rest(client);
        EXPECT_TRUE(is_over);
        EXPECT_GT(all.size(), 50'000'000u);
      },
      streaming([&](BodyWriter& out) -> Coro<void> {
        for (; written < 50'000'000; written += piece.size()) co_await out.write(piece);
        is_over = true;
      }));
}

TEST_F(HttpServerTest, BreaksOffWhoTakesNothing) {
  options.send_timeout = 100ms;
  bool was_cancelled = false;
  with_server(
      [&](HttpServer& server) -> Coro<void> {
        Stream client = co_await connect();
        client.write(get("/"));
        co_await until([&] { return was_cancelled; });
        co_await until([&] { return server.connections() == 0; });
      },
      streaming([&](BodyWriter& out) -> Coro<void> {
        const std::string piece(100'000, 'z');
        try {
          for (;;) co_await out.write(piece);
        } catch (const CancelledError&) {
          was_cancelled = true;
          throw;
        }
      }));
  EXPECT_THAT(reports.lines(), IsEmpty());
}

TEST_F(HttpServerTest, BreaksOffWhoReadsNoLargeBody) {
  options.send_timeout = 100ms;
  with_server([&](HttpServer& server) -> Coro<void> {
    Stream client = co_await connect();
    client.write(get("/large"));
    co_await until([&] { return !begun.empty(); });
    co_await until([&] { return server.connections() == 0; });
  });
}

TEST_F(HttpServerTest, ReadsNoMoreFromWhoReadsNoAnswers) {
  options.send_timeout = 10s;
  with_server([&](HttpServer& server) -> Coro<void> {
    StreamOptions patient;
    patient.write_limit = 1 << 30;
    Stream client = co_await open_connection("127.0.0.1", port, patient);
    const std::string request = post("/echo", std::string(10'000, 'x'));
    for (int i = 0; i < 5'000; ++i) client.write(request);
    std::uint64_t before = 1;
    while (before != server.requests()) {
      before = server.requests();
      co_await sleep(50ms);
    }
    EXPECT_LT(server.requests(), 4'000u);
  });
}

TEST_F(HttpServerTest, GathersAnswersWithinBounds) {
  const auto page = [](ServerRequest&) -> Coro<ServerResponse> {
    co_return ServerResponse::text(200, std::string(16'000, 'p'));
  };
  with_server(
      [&](HttpServer& server) -> Coro<void> {
        Stream client = co_await connect();
        std::string requests;
        for (int i = 0; i < 5'000; ++i) requests += get("/");
        client.write(requests + last("/"));
        std::uint64_t before = 1;
        while (before != server.requests()) {
          before = server.requests();
          co_await sleep(50ms);
        }
        EXPECT_LT(server.requests(), 2'000u);
        EXPECT_GT((co_await read_rest(client)).size(), 5'001u * 16'000);
      },
      page);
  EXPECT_THAT(reports.lines(), IsEmpty());
}

// --- clients that leave

TEST_F(HttpServerTest, CancelsTheHandlerOfAClientThatLeaves) {
  with_server([&](HttpServer& server) -> Coro<void> {
    Stream client = co_await connect();
    client.write(get("/wait"));
    co_await has_begun.wait();
    client.abort();
    co_await until([&] { return server.connections() == 0; });
  });
  EXPECT_THAT(cancelled, ElementsAre("/wait"));
  EXPECT_THAT(ended, IsEmpty());
  EXPECT_THAT(reports.lines(), IsEmpty());
}

TEST_F(HttpServerTest, CancelsTheHandlerOfAClientThatLeavesWithRequestsOnTheirWay) {
  with_server([&](HttpServer& server) -> Coro<void> {
    Stream client = co_await connect();
    client.write(get("/wait") + get("/never"));
    co_await has_begun.wait();
    client.write(get("/never"));
    co_await sleep(5ms);
    client.abort();
    co_await until([&] { return server.connections() == 0; });
  });
  EXPECT_THAT(begun, ElementsAre("/wait"));
  EXPECT_THAT(cancelled, ElementsAre("/wait"));
}

TEST_F(HttpServerTest, LetsTheHandlerEndWhenTold) {
  options.cancel_when_client_leaves = false;
  with_server([&](HttpServer& server) -> Coro<void> {
    Stream client = co_await connect();
    client.write(get("/wait"));
    client.write_eof();
    co_await has_begun.wait();
    co_await sleep(10ms);
    go_on.set();
    EXPECT_EQ(body_of(co_await read_rest(client)), "/wait");
    co_await until([&] { return server.connections() == 0; });
  });
  EXPECT_THAT(ended, ElementsAre("/wait"));
}

TEST_F(HttpServerTest, AnswersAClientThatHasClosedItsSideWhenTheHandlerDoesNotWait) {
  with_server([&](HttpServer&) -> Coro<void> {
    Stream client = co_await connect();
    client.write(get("/quick"));
    client.write_eof();
    EXPECT_EQ(body_of(co_await read_rest(client)), "/quick");
  });
}

TEST_F(HttpServerTest, EndsAStreamWhoseClientLeaves) {
  bool is_over = false;
  with_server(
      [&](HttpServer& server) -> Coro<void> {
        Stream client = co_await connect();
        client.write(get("/events"));
        co_await client.read_until("\r\n\r\n");
        client.abort();
        co_await until([&] { return server.connections() == 0; });
        EXPECT_TRUE(is_over);
      },
      streaming([&](BodyWriter&) -> Coro<void> {
        struct AtEnd {
          bool& flag;
          ~AtEnd() { flag = true; }
        } const at_end{is_over};
        co_await sleep(1h);
      }));
  EXPECT_THAT(reports.lines(), IsEmpty());
}

TEST_F(HttpServerTest, OutlivesClientsThatLeaveAtEachByte) {
  const std::string request = post("/echo", "0123456789", "X: y\r\n");
  with_server([&](HttpServer& server) -> Coro<void> {
    for (std::size_t size = 0; size <= request.size(); ++size) {
      for (const bool orderly : {true, false}) {
        Stream client = co_await connect();
        client.write(request.substr(0, size));
        if (orderly) {
          client.write_eof();
        } else {
          const linger reset{1, 0};
          ::setsockopt(client.native_handle(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        }
        client.close();
      }
    }
    co_await until([&] { return server.connections() == 0; });
    EXPECT_THAT(co_await talk(last("/well")), EndsWith("/well"));
  });
  EXPECT_THAT(reports.lines(), IsEmpty());
}

// --- slow clients

TEST_F(HttpServerTest, RefusesAHeadThatDoesNotCome) {
  options.header_timeout = 30ms;
  with_server([&](HttpServer&) -> Coro<void> {
    Stream client = co_await connect();
    client.write("GET / HTTP/1.1\r\nHost:");
    const std::string answer = co_await read_rest(client);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 408 Request Timeout\r\n"));
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  });
}

TEST_F(HttpServerTest, RefusesAHeadThatComesByteByByte) {
  options.header_timeout = 60ms;
  with_server([&](HttpServer&) -> Coro<void> {
    Stream client = co_await connect();
    std::string answer;
    auto reading = EventLoop::current().create_task(read_rest(client));
    while (!reading.done()) {
      if (!client.is_closing()) client.write("x");
      co_await sleep(5ms);
    }
    EXPECT_THAT(reading.result(), StartsWith("HTTP/1.1 408"));
  });
}

TEST_F(HttpServerTest, RefusesABodyThatDoesNotCome) {
  options.body_timeout = 30ms;
  with_server([&](HttpServer&) -> Coro<void> {
    Stream client = co_await connect();
    client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    EXPECT_THAT(co_await read_rest(client), StartsWith("HTTP/1.1 408"));
  });
  EXPECT_THAT(begun, IsEmpty());
}

TEST_F(HttpServerTest, TakesABodyThatComesSteadily) {
  options.body_timeout = 100ms;
  options.min_body_rate = 1;
  with_server([&](HttpServer&) -> Coro<void> {
    Stream client = co_await connect();
    client.write("POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 10\r\n\r\n");
    for (int i = 0; i < 10; ++i) {
      client.write("x");
      co_await sleep(20ms);
    }
    EXPECT_EQ(body_of(co_await read_rest(client)), "xxxxxxxxxx");
  });
}

TEST_F(HttpServerTest, ClosesAConnectionThatRests) {
  options.keep_alive_timeout = 30ms;
  with_server([&](HttpServer&) -> Coro<void> {
    Stream never = co_await connect();
    EXPECT_EQ(co_await read_rest(never), "");
    Stream client = co_await connect();
    client.write(get("/once"));
    EXPECT_EQ(body_of(co_await read_rest(client)), "/once");
  });
}

TEST_F(HttpServerTest, MeasuresEachRequestFromItsOwnStart) {
  options.header_timeout = 80ms;
  options.keep_alive_timeout = 80ms;
  with_server([&](HttpServer&) -> Coro<void> {
    Stream client = co_await connect();
    for (int i = 0; i < 8; ++i) {
      client.write(get("/again"));
      EXPECT_EQ(body_of(co_await read_answer(client)), "/again");
      co_await sleep(20ms);
    }
  });
}

// --- many clients

TEST_F(HttpServerTest, ServesManyClientsAtOnce) {
  with_server([&](HttpServer& server) -> Coro<void> {
    std::vector<Task<std::string>> clients;
    for (int i = 0; i < 400; ++i) clients.push_back(loop.create_task(talk(last("/wait"))));
    co_await until([&] { return begun.size() == 400; });
    EXPECT_EQ(server.connections(), 400u);
    go_on.set();
    for (auto& client : clients) EXPECT_EQ(body_of(co_await client), "/wait");
  });
}

TEST_F(HttpServerTest, LetsFurtherClientsWait) {
  options.max_connections = 2;
  with_server([&](HttpServer& server) -> Coro<void> {
    Stream one = co_await connect();
    Stream two = co_await connect();
    one.write(get("/one"));
    two.write(get("/two"));
    co_await read_answer(one);
    co_await read_answer(two);
    Stream three = co_await connect();
    three.write(get("/three"));
    co_await sleep(20ms);
    EXPECT_EQ(server.connections(), 2u);
    EXPECT_EQ(begun.size(), 2u);
    one.close();
    EXPECT_EQ(body_of(co_await read_answer(three)), "/three");
  });
}

TEST_F(HttpServerTest, DoesNotLetOneClientsFloodHoldUpTheOthers) {
  with_server([&](HttpServer&) -> Coro<void> {
    StreamOptions patient;
    patient.write_limit = 1 << 30;
    Stream flooder = co_await open_connection("127.0.0.1", port, patient);
    std::string flood;
    for (int i = 0; i < 200'000; ++i) flood += get("/f");
    flooder.write(flood);
    auto draining = loop.create_task(read_rest(flooder));
    for (int i = 0; i < 10; ++i) EXPECT_THAT(co_await talk(last("/other")), EndsWith("/other"));
    EXPECT_LT(begun.size(), 200'000u);
    flooder.abort();
    co_await draining;
  });
}

TEST_F(HttpServerTest, ListensAtAPath) {
  const std::string path = "/tmp/argiope-http-test-" + std::to_string(::getpid());
  with_server([&](HttpServer& server) -> Coro<void> {
    server.listen_unix(path);
    Stream client = co_await open_unix_connection(path);
    client.write(last("/unix"));
    EXPECT_THAT(co_await read_rest(client), EndsWith("/unix"));
  });
  EXPECT_EQ(peer, "");
}

// --- the end

TEST_F(HttpServerTest, AnswersWhatIsUnderWayBeforeItStops) {
  with_server([&](HttpServer& server) -> Coro<void> {
    Stream resting = co_await connect();
    resting.write(get("/before"));
    co_await read_answer(resting);
    Stream half = co_await connect();
    half.write("GET /half HTTP/1.1\r\nHost: a\r\n");
    Stream client = co_await connect();
    client.write(get("/wait"));
    co_await until([&] { return begun.size() == 2; });
    co_await sleep(10ms);
    auto stopping = loop.create_task(server.stop(10s));
    EXPECT_EQ(co_await read_rest(resting), "");
    EXPECT_TRUE(server.is_stopping());
    half.write("\r\n");
    const std::string refused = co_await read_rest(half);
    EXPECT_THAT(refused, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
    EXPECT_THAT(refused, HasSubstr("Connection: close\r\n"));
    bool connected = true;
    try {
      co_await connect();
    } catch (const std::system_error&) {
      connected = false;
    }
    EXPECT_FALSE(connected);
    go_on.set();
    const std::string answer = co_await read_rest(client);
    EXPECT_EQ(body_of(answer), "/wait");
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
    EXPECT_TRUE(co_await stopping);
    EXPECT_TRUE(co_await server.stop(0s));  // again
  });
}

TEST_F(HttpServerTest, CancelsWhatIsUnderWayWhenItsTimeToStopIsUp) {
  with_server([&](HttpServer& server) -> Coro<void> {
    Stream client = co_await connect();
    client.write(get("/wait"));
    co_await has_begun.wait();
    EXPECT_FALSE(co_await server.stop(20ms));
    EXPECT_THAT(co_await read_rest(client), StartsWith("HTTP/1.1 503"));
  });
  EXPECT_THAT(cancelled, ElementsAre("/wait"));
}

TEST_F(HttpServerTest, StopsInTimeWhateverIsUnderWay) {
  bool obeys = false;
  const auto stubborn = [&](ServerRequest&) -> Coro<ServerResponse> {
    while (!obeys) {
      try {
        co_await sleep(100ms);
      } catch (const CancelledError&) {
      }
    }
    co_return ServerResponse{};
  };
  HttpServer server(stubborn);
  run([&]() -> Coro<void> {
    port = server.listen("127.0.0.1", 0);
    Stream client = co_await connect();
    client.write(get("/"));
    Stream half = co_await connect();
    half.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12");
    co_await sleep(20ms);
    const TimePoint asked = loop.time();
    EXPECT_FALSE(co_await server.stop(50ms));
    EXPECT_LT(loop.time() - asked, 5s);
    EXPECT_EQ(co_await read_rest(client), "");
    obeys = true;
    co_await until([&] { return server.connections() == 0; });
  });
}

TEST_F(HttpServerTest, TellsAStreamThatTheServerStops) {
  with_server(
      [&](HttpServer& server) -> Coro<void> {
        Stream client = co_await connect();
        client.write(get("/"));
        co_await client.read_until("\r\n\r\n");
        EXPECT_TRUE(co_await server.stop(10s));
        EXPECT_THAT(co_await read_rest(client), EndsWith("0\r\n\r\n"));
      },
      streaming([&](BodyWriter& out) -> Coro<void> {
        while (!out.server_stops()) co_await sleep(2ms);
      }));
}

TEST_F(HttpServerTest, MayBeDestroyedWhileHandlersAreUnderWay) {
  run([&]() -> Coro<void> {
    auto server = std::make_unique<HttpServer>(handler());
    port = server->listen("127.0.0.1", 0);
    Stream client = co_await connect();
    client.write(get("/wait"));
    Stream resting = co_await connect();
    co_await has_begun.wait();
    auto serving = loop.create_task(server->serve_forever());
    co_await yield_now();
    server.reset();
    co_await serving;
    EXPECT_THAT(co_await read_rest(client), StartsWith("HTTP/1.1 503"));
    EXPECT_EQ(co_await read_rest(resting), "");
  });
  EXPECT_THAT(cancelled, ElementsAre("/wait"));
}

TEST_F(HttpServerTest, EndsWithItsLoop) {
  HttpServerOptions defaults;
  bool is_over = false;
  {
    AsioBackend backend;
    EventLoop other(backend);
    HttpServer server(
        [&](ServerRequest&) -> Coro<ServerResponse> {
          struct AtEnd {
            bool& flag;
            ~AtEnd() { flag = true; }
          } const at_end{is_over};
          has_begun.set();
          co_await sleep(1h);
          co_return ServerResponse{};
        },
        defaults);
    other.run_until_complete(keeping([&]() -> Coro<void> {
      Stream client = co_await open_connection("127.0.0.1", server.listen("127.0.0.1", 0));
      client.write(get("/"));
      co_await sleep(20ms);
    }));
  }
  EXPECT_TRUE(is_over);
}

TEST_F(HttpServerTest, CanBeStoppedByItsOwnHandler) {
  HttpServer* self = nullptr;
  bool in_time = true;
  const auto stop = [&](ServerRequest&) -> Coro<ServerResponse> {
    in_time = co_await self->stop(20ms);
    co_return ServerResponse::text(200, "stopped");
  };
  HttpServer server(stop);
  self = &server;
  run([&]() -> Coro<void> {
    port = server.listen("127.0.0.1", 0);
    // It waits for itself, and is cancelled for that.
    EXPECT_THAT(co_await talk(last("/")), StartsWith("HTTP/1.1 503"));
    co_await server.stop(1s);
  });
}

// The connection's task is cancelled at every step of an exchange, from outside.
TEST_F(HttpServerTest, MayBeCancelledAtEachStep) {
  for (std::size_t cancel_at = 0; cancel_at < 40; ++cancel_at) {
    AsioBackend backend;
    EventLoop other(backend);
    shuffle_if_asked(other);
    std::size_t steps = 0;
    bool strikes = false;
    {
      HttpServer server([](ServerRequest& request) -> Coro<ServerResponse> {
        co_await sleep(1ms);
        co_return ServerResponse::text(200, std::string(request.path));
      });
      other.run_until_complete(keeping([&]() -> Coro<void> {
        Stream client = co_await open_connection("127.0.0.1", server.listen("127.0.0.1", 0));
        client.write(get("/a") + get("/b"));
        AnyTask me = current_task();
        other.set_step_hook([&] {
          if (++steps != cancel_at) return;
          strikes = true;
          for (AnyTask& task : other.all_tasks()) {
            if (!(task == me)) task.cancel();
          }
        });
        std::string got;
        try {
          while (count(got, "\r\n\r\n/") < 2 && co_await client.read_onto(got, 1000)) {
          }
        } catch (const std::system_error&) {
        }
        other.set_step_hook({});
        const bool in_time = co_await server.stop(1s);
        EXPECT_TRUE(in_time) << cancel_at;
        EXPECT_EQ(server.connections(), 0u);
      }));
    }
    EXPECT_EQ(other.task_count(), 0u);
    if (!strikes) break;
  }
}

TEST_F(HttpServerTest, RefusesOptionsThatMakeNoSense) {
  EXPECT_THROW(HttpServer{HttpHandler{}}, std::invalid_argument);
  options.max_connections = 0;
  EXPECT_THROW(HttpServer(handler(), options), std::invalid_argument);
  options.max_connections = 1;
  options.min_body_rate = 0;
  EXPECT_THROW(HttpServer(handler(), options), std::invalid_argument);
}

}  // namespace
}  // namespace argiope
