// What an HTTP server answers: to one request and to many on a connection, in one piece and in a stream, and for
// handlers that go wrong. Its clients, well and ill behaved, are in http_server_clients_test.cpp.
#include "argiope/web/http_server.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "argiope/async/queue.hpp"
#include "support/http_server_fixture.hpp"

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

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

// What the field "X-Id" of an answer says.
std::string id_in(const std::string& answer) {
  const std::size_t at = answer.find("X-Id: ");
  return at == std::string::npos ? "none" : answer.substr(at + 6, answer.find('\r', at) - at - 6);
}

TEST_F(HttpServerTest, ShowsEachAnswerBeforeItIsSentAndMakesItsOwnAsItIsTold) {
  options.max_body_bytes = 10;
  options.max_header_bytes = 300;
  options.before_sending = [](const ServerRequest& request, ServerResponse& response) {
    const std::string_view given = request.header("X-Id");
    response.headers.emplace_back("X-Id", given.empty() ? "unnamed" : given);
  };
  options.refusal = [](const ServerRequest& request, int status, std::string_view detail) {
    return ServerResponse::text(status, fmt::format("{} of \"{}\"", detail, request.path));
  };
  EXPECT_EQ(id_in(ask("GET /a HTTP/1.1\r\nHost: a\r\nX-Id: 7\r\nConnection: close\r\n\r\n")), "7");
  // The head of this one was read: what it says is known.
  const std::string large = ask("POST /b HTTP/1.1\r\nHost: a\r\nX-Id: 8\r\nContent-Length: 11\r\n\r\n");
  EXPECT_EQ(id_in(large), "8");
  EXPECT_THAT(body_of(large), EndsWith("of \"/b\""));
  const std::string chunks = ask(
      "POST /c HTTP/1.1\r\nHost: a\r\nX-Id: 9\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nabcdefgh\r\n8\r\nabcdefgh\r\n");
  EXPECT_EQ(id_in(chunks), "9");
  EXPECT_THAT(body_of(chunks), EndsWith("of \"/c\""));
  // Of these nothing is known: nor is it taken from the request before.
  for (const std::string& bad :
       {std::string("GET /d HTTP/1.1\r\nX-Id: 10\r\n\r\n"), "GET /" + std::string(400, 'x') + " HTTP/1.1\r\n\r\n",
        "GET /d HTTP/1.1\r\nHost: a\r\nX-Id: 11\r\nX-Long: " + std::string(400, 'x') + "\r\n\r\n"}) {
    const std::string answers = ask("GET /before HTTP/1.1\r\nHost: a\r\nX-Id: 1\r\n\r\n" + bad);
    EXPECT_EQ(count(answers, "X-Id: unnamed"), 1u) << answers;
    EXPECT_THAT(answers, EndsWith("of \"\"")) << answers;
  }
  EXPECT_EQ(id_in(ask(last("/throws"),
                      [](ServerRequest&) -> Coro<ServerResponse> {
                        throw std::runtime_error("no");
                        co_return ServerResponse{};
                      })),
            "unnamed");
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
  options.request_timeout = 1min;
  with_server([&](HttpServer&) -> Coro<void> {
    Stream stream = co_await connect();
    stream.write(get("/wait"));
    co_await has_begun.wait();
    world.clock.ahead += 1min;
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

}  // namespace
}  // namespace argiope
