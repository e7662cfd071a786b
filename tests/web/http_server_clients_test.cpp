// What an HTTP server does with clients that leave, that are slow, that are many; and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "argiope/async/group.hpp"
#include "support/http_server_fixture.hpp"

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using HttpServerClients = HttpServerTest;

// --- clients that leave

TEST_F(HttpServerClients, CancelsTheHandlerOfAClientThatLeaves) {
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

TEST_F(HttpServerClients, CancelsTheHandlerOfAClientThatLeavesWithRequestsOnTheirWay) {
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

TEST_F(HttpServerClients, LetsTheHandlerEndWhenTold) {
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

TEST_F(HttpServerClients, AnswersAClientThatHasClosedItsSideWhenTheHandlerDoesNotWait) {
  with_server([&](HttpServer&) -> Coro<void> {
    Stream client = co_await connect();
    client.write(get("/quick"));
    client.write_eof();
    EXPECT_EQ(body_of(co_await read_rest(client)), "/quick");
  });
}

TEST_F(HttpServerClients, EndsAStreamWhoseClientLeaves) {
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

TEST_F(HttpServerClients, OutlivesClientsThatLeaveAtEachByte) {
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

TEST_F(HttpServerClients, RefusesAHeadThatDoesNotCome) {
  options.header_timeout = 30ms;
  with_server([&](HttpServer&) -> Coro<void> {
    Stream client = co_await connect();
    client.write("GET / HTTP/1.1\r\nHost:");
    const std::string answer = co_await read_rest(client);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 408 Request Timeout\r\n"));
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  });
}

TEST_F(HttpServerClients, RefusesAHeadThatComesByteByByte) {
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

TEST_F(HttpServerClients, RefusesABodyThatDoesNotCome) {
  options.body_timeout = 30ms;
  with_server([&](HttpServer&) -> Coro<void> {
    Stream client = co_await connect();
    client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    EXPECT_THAT(co_await read_rest(client), StartsWith("HTTP/1.1 408"));
  });
  EXPECT_THAT(begun, IsEmpty());
}

TEST_F(HttpServerClients, TakesABodyThatComesSteadily) {
  options.body_timeout = 100ms;
  options.min_body_rate = 1;
  with_server([&](HttpServer&) -> Coro<void> {
    Stream client = co_await connect();
    // It comes with its head, and gives the rest a second a byte: no stop of the machine is as long.
    const std::string front(1'000, 'x');
    client.write("POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1010\r\n\r\n" + front);
    for (int i = 0; i < 10; ++i) {
      co_await sleep(20ms);
      client.write("y");
    }
    EXPECT_EQ(body_of(co_await read_rest(client)), front + "yyyyyyyyyy");
  });
}

TEST_F(HttpServerClients, ClosesAConnectionThatRests) {
  options.keep_alive_timeout = 1min;
  with_server([&](HttpServer& server) -> Coro<void> {
    Stream never = co_await connect();
    co_await until([&] { return server.connections() == 1; });
    world.clock.ahead += 1min;
    EXPECT_EQ(co_await read_rest(never), "");
    Stream client = co_await connect();
    client.write(get("/once"));
    EXPECT_EQ(body_of(co_await read_answer(client)), "/once");
    world.clock.ahead += 1min;
    EXPECT_EQ(co_await read_rest(client), "");
  });
}

TEST_F(HttpServerClients, MeasuresEachRequestFromItsOwnStart) {
  options.header_timeout = 20s;
  options.keep_alive_timeout = 20s;
  with_server([&](HttpServer&) -> Coro<void> {
    Stream client = co_await connect();
    for (int i = 0; i < 12; ++i) {
      client.write(get("/again"));
      EXPECT_EQ(body_of(co_await read_answer(client)), "/again");
      world.clock.ahead += 2s;
      co_await yield_now();
    }
  });
}

// --- many clients

TEST_F(HttpServerClients, ServesManyClientsAtOnce) {
  with_server([&](HttpServer& server) -> Coro<void> {
    std::vector<Task<std::string>> clients;
    for (int i = 0; i < 400; ++i) clients.push_back(loop.create_task(talk(last("/wait"))));
    co_await until([&] { return begun.size() == 400; });
    EXPECT_EQ(server.connections(), 400u);
    go_on.set();
    for (auto& client : clients) EXPECT_EQ(body_of(co_await client), "/wait");
  });
}

TEST_F(HttpServerClients, LetsFurtherClientsWait) {
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

TEST_F(HttpServerClients, WhoHasBeenIdleLongestGivesWayWhenNearlyAllConnectionsAreOpen) {
  options.max_connections = 64;
  with_server([&](HttpServer& server) -> Coro<void> {
    Stream slow = co_await connect();
    slow.write("GET / HT");
    Stream polls = co_await connect();
    polls.write(get("/wait"));
    std::vector<Stream> idle;
    for (int i = 0; i < 61; ++i) {
      idle.push_back(co_await connect());
      idle.back().write(get("/"));
      co_await read_answer(idle.back());
    }
    co_await until([&] { return server.connections() == 63; });
    EXPECT_THAT(co_await talk(last("/more")), EndsWith("/more"));
    EXPECT_EQ(co_await read_rest(slow), "");
    EXPECT_THAT(co_await talk(last("/another")), EndsWith("/another"));
    go_on.set();
    EXPECT_EQ(body_of(co_await read_answer(polls)), "/wait");
    idle.back().write(last("/still"));
    EXPECT_THAT(co_await read_rest(idle.back()), EndsWith("/still"));
  });
}

TEST_F(HttpServerClients, BodiesHaveABoundTogether) {
  options.max_bodies_bytes = 150'000;  // room for one, whose memory grows by doubling
  with_server([&](HttpServer&) -> Coro<void> {
    const std::string whole = post("/echo", std::string(80'000, 'x'), "Connection: close\r\n");
    Stream first = co_await connect();
    first.write(std::string_view(whole).substr(0, 70'000));
    Stream second = co_await connect();
    co_await until_read();
    second.write(std::string_view(whole).substr(0, 70'000));
    const std::string refused = co_await read_answer(second);
    EXPECT_TRUE(refused.starts_with("HTTP/1.1 503 ")) << refused;
    EXPECT_THAT(refused, HasSubstr("Retry-After: 1"));
    first.write(std::string_view(whole).substr(70'000));
    EXPECT_EQ(body_of(co_await read_rest(first)).size(), 80'000u);
    EXPECT_EQ(body_of(co_await talk(whole)).size(), 80'000u) << "what has ended counts no more";
  });
}

TEST_F(HttpServerClients, ARequestMayBeAnsweredBeforeItsBodyIsTaken) {
  options.answer_early = [](const ServerRequest& request) -> std::optional<ServerResponse> {
    if (request.path != "/secret") return std::nullopt;
    return ServerResponse::problem(401, "a token is needed");
  };
  with_server([&](HttpServer&) -> Coro<void> {
    const auto refused = [&](std::string path) -> Coro<std::string> {
      Stream stream = co_await connect();
      stream.write("POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
      stream.write_eof();
      co_return co_await read_rest(stream);
    };
    EXPECT_TRUE((co_await refused("/secret")).starts_with("HTTP/1.1 401 "));
    EXPECT_EQ(co_await refused("/other"), "");
    EXPECT_TRUE(begun.empty());
  });
}

TEST_F(HttpServerClients, DoesNotLetOneClientsFloodHoldUpTheOthers) {
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

TEST_F(HttpServerClients, ListensAtAPath) {
  const std::string path = "/tmp/argiope-http-test-" + std::to_string(::getpid());
  with_server([&](HttpServer& server) -> Coro<void> {
    server.listen_unix(path);
    Stream client = co_await open_unix_connection(path);
    client.write(last("/unix"));
    EXPECT_THAT(co_await read_rest(client), EndsWith("/unix"));
  });
  EXPECT_EQ(peer, "");
}

// As a supervisor keeps a socket open while programs come and go.
TEST_F(HttpServerClients, TakesOverASocketThatListensAndLosesNoClient) {
  const int kept = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(kept, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_THROW(run([&]() -> Coro<void> {
                 HttpServer server(handler());
                 server.listen_at(::dup(kept));
                 co_return;
               }),
               std::invalid_argument);
  ASSERT_EQ(::listen(kept, 10), 0);
  ASSERT_EQ(::getsockname(kept, reinterpret_cast<sockaddr*>(&address), &size), 0);
  port = ntohs(address.sin_port);
  run([&]() -> Coro<void> {
    for (int i = 0; i < 3; ++i) {
      Stream early = co_await connect();  // while no program listens
      early.write(last("/early"));
      HttpServer server(handler());
      server.listen_at(::dup(kept));
      EXPECT_EQ(body_of(co_await read_rest(early)), "/early");
      EXPECT_EQ(body_of(co_await talk(last("/now"))), "/now");
      EXPECT_TRUE(co_await server.stop(kPlenty));
    }
  });
  ::close(kept);
}

// --- the end

TEST_F(HttpServerClients, AnswersWhatIsUnderWayBeforeItStops) {
  with_server([&](HttpServer& server) -> Coro<void> {
    Stream resting = co_await connect();
    resting.write(get("/before"));
    co_await read_answer(resting);
    Stream half = co_await connect();
    half.write("GET /half HTTP/1.1\r\nHost: a\r\n");
    Stream client = co_await connect();
    client.write(get("/wait"));
    co_await until([&] { return begun.size() == 2; });
    co_await until_read();
    auto stopping = loop.create_task(server.stop(kPlenty));
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
    EXPECT_THROW(server.listen("127.0.0.1", 0), std::logic_error);
  });
}

TEST_F(HttpServerClients, CancelsWhatIsUnderWayWhenItsTimeToStopIsUp) {
  with_server([&](HttpServer& server) -> Coro<void> {
    Stream client = co_await connect();
    client.write(get("/wait"));
    co_await has_begun.wait();
    EXPECT_FALSE(co_await server.stop(20ms));
    EXPECT_THAT(co_await read_rest(client), StartsWith("HTTP/1.1 503"));
  });
  EXPECT_THAT(cancelled, ElementsAre("/wait"));
}

TEST_F(HttpServerClients, StopsInTimeWhateverIsUnderWay) {
  bool has_come = false, obeys = false;
  const auto stubborn = [&](ServerRequest&) -> Coro<ServerResponse> {
    has_come = true;
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
    co_await until([&] { return has_come; });
    const TimePoint asked = loop.time();
    EXPECT_FALSE(co_await server.stop(50ms));
    EXPECT_LT(loop.time() - asked, kPlenty);
    EXPECT_EQ(co_await read_rest(client), "");
    obeys = true;
    co_await until([&] { return server.connections() == 0; });
  });
}

TEST_F(HttpServerClients, TellsAStreamThatTheServerStops) {
  with_server(
      [&](HttpServer& server) -> Coro<void> {
        Stream client = co_await connect();
        client.write(get("/"));
        co_await client.read_until("\r\n\r\n");
        EXPECT_TRUE(co_await server.stop(kPlenty));
        EXPECT_THAT(co_await read_rest(client), EndsWith("0\r\n\r\n"));
      },
      streaming([&](BodyWriter& out) -> Coro<void> {
        while (!out.server_stops()) co_await sleep(2ms);
      }));
}

TEST_F(HttpServerClients, MayBeDestroyedWhileHandlersAreUnderWay) {
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

TEST_F(HttpServerClients, EndsWithItsLoop) {
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
      co_await has_begun.wait();
    }));
  }
  EXPECT_TRUE(is_over);
}

TEST_F(HttpServerClients, CanBeStoppedByItsOwnHandler) {
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
    co_await server.stop(kPlenty);
  });
}

// The connection's task is cancelled at every step of an exchange, from outside.
TEST_F(HttpServerClients, MayBeCancelledAtEachStep) {
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
        const bool in_time = co_await server.stop(kPlenty);
        EXPECT_TRUE(in_time) << cancel_at;
        EXPECT_EQ(server.connections(), 0u);
      }));
    }
    EXPECT_EQ(other.task_count(), 0u);
    if (!strikes) break;
  }
}

TEST_F(HttpServerClients, RefusesOptionsThatMakeNoSense) {
  EXPECT_THROW(HttpServer{HttpHandler{}}, std::invalid_argument);
  options.max_connections = 0;
  EXPECT_THROW(HttpServer(handler(), options), std::invalid_argument);
  options.max_connections = 1;
  options.min_body_rate = 0;
  EXPECT_THROW(HttpServer(handler(), options), std::invalid_argument);
}

}  // namespace
}  // namespace argiope
