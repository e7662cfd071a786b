// HttpClient by HTTP/2, against a server that does as it is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "argiope/web/http_client.hpp"
#include "support/advancing_time.hpp"
#include "support/certificate.hpp"
#include "support/deflate.hpp"
#include "support/http2_server.hpp"
#include "support/http_client_fixture.hpp"
#include "support/tunnel_proxy.hpp"

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Connection = Http2Server::Connection;
using Asked = Http2Server::Asked;

class Http2ClientTest : public LoopTest<AdvancingTime> {
 public:
  FixedResolver resolver;
  AddressGuard guard{true};
  Certificate certificate;
  Http2Server server{world.backend, certificate.server};
  HttpClientOptions options;
  HttpRequest request;
  HttpResponse response;
  // Requests that `answer` has left unanswered.
  std::vector<std::pair<Connection*, std::int32_t>> held;

  Http2ClientTest() {
    options.extra_ca_file = certificate.path();
    request.url = url("/");
  }
  ~Http2ClientTest() override {
    loop.cancel_all_tasks();
    settle();
    EXPECT_EQ(loop.task_count(), 0u);
  }

  Url url(std::string_view path) const { return *Url::parse(server.origin() + std::string(path)); }
  void hold_all() {
    server.answer = [this](Connection& connection, const Asked& asked) {
      held.emplace_back(&connection, asked.stream);
    };
  }
  void release_held() {
    for (const auto& [connection, stream] : std::exchange(held, {})) connection->respond(stream, 200, {}, "late");
  }

  template <class Body>
  void with_client(Body body) {
    HttpClient client(options, world.backend, resolver, guard);
    run([&]() -> Coro<void> {
      auto serving = EventLoop::current().create_task(server.serve());
      co_await body(client);
      serving.cancel();
    });
    client.close_idle();
    EXPECT_EQ(client.idle_connections(), 0u);
    run([&]() -> Coro<void> { co_await server.all_closed(); });
  }
  Result<void> send() {
    Result<void> result;
    with_client([&](HttpClient& client) -> Coro<void> { result = co_await client.send(request, response); });
    return result;
  }
  Error error_of_send() {
    const Result<void> result = send();
    EXPECT_FALSE(result.has_value());
    return result ? Error{} : result.error();
  }

  // One of several requests at a time.
  struct Sent {
    HttpRequest request;
    HttpResponse response;
    std::optional<Task<Result<void>>> task;
    Result<void> result;
  };
  std::unique_ptr<Sent> begin(HttpClient& client, std::string_view path) {
    auto sent = std::make_unique<Sent>();
    sent->request = request;
    sent->request.url = url(path);
    sent->task = EventLoop::current().create_task(client.send(sent->request, sent->response));
    return sent;
  }
  static Coro<void> finish(Sent& sent) { sent.result = co_await std::move(*sent.task); }
  static Coro<bool> ends_cancelled(Sent& sent) {
    sent.task->cancel();
    try {
      co_await finish(sent);
    } catch (const CancelledError&) {
      co_return true;
    }
    co_return false;
  }
};

TEST_F(Http2ClientTest, SendsARequestAndReadsItsResponse) {
  options.user_agent = "spider/1";
  options.headers = {{"From", "me@example.org"}, {"Connection", "keep-alive"}};
  request.url = url("/a?b=c#d");
  request.headers = {{"If-None-Match", "\"x\""}, {"Authorization", "Basic eA=="}};
  request.keep_fields = true;
  server.answer = [](Connection& connection, const Asked& asked) {
    connection.respond(asked.stream, 404,
                       {{"content-type", "text/html"},
                        {"set-cookie", "a=1"},
                        {"set-cookie", "b=2"},
                        {"content-length", "4"},
                        {"www-authenticate", "Basic realm=\"x\""}},
                       "gone");
  };
  const auto sent = send();
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, "gone");
  EXPECT_EQ(response.headers.content_type, "text/html");
  EXPECT_EQ(response.headers.set_cookie, "a=1\nb=2");
  EXPECT_EQ(response.headers.authenticate, "Basic realm=\"x\"");
  EXPECT_EQ(response.headers.content_length, 4u);
  EXPECT_EQ(response.fields.size(), 5u);
  EXPECT_EQ(response.remote.to_string(), "127.0.0.1");
  EXPECT_TRUE(response.connected);
  EXPECT_GT(response.answered_at, response.sent_at);
  EXPECT_GT(response.wire_bytes, 4u + 9u);
  EXPECT_EQ(response.oddities, 0u);
  ASSERT_EQ(server.connections.size(), 1u);
  const Http2Fields expected = {{":method", "GET"},
                                {":scheme", "https"},
                                {":authority", "secure.test:" + std::to_string(server.port())},
                                {":path", "/a?b=c"},
                                {"user-agent", "spider/1"},
                                {"accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"},
                                {"accept-encoding", "gzip, br, zstd, deflate"},
                                {"from", "me@example.org"},
                                {"if-none-match", "\"x\""},
                                {"authorization", "Basic eA=="}};
  EXPECT_EQ(server.connections[0]->asked.at(0).fields, expected);
}

TEST_F(Http2ClientTest, SharesOneConnectionAmongRequestsThatBeginTogether) {
  hold_all();
  with_client([&](HttpClient& client) -> Coro<void> {
    std::vector<std::unique_ptr<Sent>> all;
    for (int i = 0; i < 50; ++i) all.push_back(begin(client, "/" + std::to_string(i)));
    co_await server.received(50);
    EXPECT_EQ(client.connections_opened(), 1u);
    release_held();
    for (auto& sent : all) {
      co_await finish(*sent);
      EXPECT_TRUE(sent->result);
      EXPECT_EQ(sent->response.body, "late");
    }
    EXPECT_EQ(client.idle_connections(), 1u);
  });
  EXPECT_EQ(server.connections.size(), 1u);
}

TEST_F(Http2ClientTest, OpensAnotherConnectionWhereTheServerLetsNoMoreStreamsBe) {
  server.most_streams = 2;
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));  // the server's limit is known then
    hold_all();
    std::vector<std::unique_ptr<Sent>> all;
    for (int i = 0; i < 5; ++i) all.push_back(begin(client, "/"));
    while (server.requests() < 6) {
      co_await server.next_change();
      // New connections have no limit before the server has said it: some are refused and asked again.
    }
    release_held();
    for (auto& sent : all) {
      co_await finish(*sent);
      EXPECT_TRUE(sent->result) << sent->result.error().message;
    }
  });
  EXPECT_GE(server.connections.size(), 2u);
}

TEST_F(Http2ClientTest, OpensAnotherConnectionBeyondItsOwnLimit) {
  options.http2_streams = 3;
  hold_all();
  with_client([&](HttpClient& client) -> Coro<void> {
    std::vector<std::unique_ptr<Sent>> all;
    for (int i = 0; i < 7; ++i) all.push_back(begin(client, "/"));
    co_await server.received(7);
    EXPECT_EQ(client.connections_opened(), 3u);
    release_held();
    for (auto& sent : all) co_await finish(*sent);
  });
  EXPECT_THAT(server.connections[0]->asked.size(), 3u);
}

TEST_F(Http2ClientTest, ATakenStreamThatEndsMakesRoomForWhoWaitsForAConnection) {
  options.http2_streams = 1;
  hold_all();
  with_client([&](HttpClient& client) -> Coro<void> {
    auto first = begin(client, "/first");
    co_await server.received(1);
    // Nothing answers there any more: the second connection is never made.
    resolver.addresses = {*IpAddress::parse("127.0.0.1")};
    server.protocol = "none";
    auto second = begin(client, "/second");
    for (int i = 0; i < 20; ++i) co_await yield_now();
    auto third = begin(client, "/third");
    release_held();
    co_await finish(*first);
    EXPECT_TRUE(first->result);
    co_await finish(*second);
    EXPECT_FALSE(second->result);  // its own connection failed
    server.answer = [](Connection& connection, const Asked& asked) { connection.respond(asked.stream, 204, {}); };
    co_await finish(*third);
    EXPECT_TRUE(!third->result || third->response.status == 204);
  });
}

TEST_F(Http2ClientTest, GoesOnByHttp11WithAServerThatChoosesThat) {
  server.protocol = "http/1.1";
  with_client([&](HttpClient& client) -> Coro<void> {
    std::vector<std::unique_ptr<Sent>> all;
    for (int i = 0; i < 4; ++i) all.push_back(begin(client, "/"));
    for (auto& sent : all) {
      co_await finish(*sent);
      EXPECT_TRUE(sent->result);
      EXPECT_EQ(sent->response.body, "old");
    }
    EXPECT_EQ(client.connections_opened(), 4u);
  });
}

TEST_F(Http2ClientTest, SpeaksOnlyTheVersionItIsTold) {
  options.versions = HttpVersions::http1;
  EXPECT_EQ(error_of_send().code, Errc::tls);  // the server has h2 alone
  options.versions = HttpVersions::http2;
  ASSERT_TRUE(send());
  EXPECT_EQ(response.body, "hello");
  server.protocol = "";
  const Error error = error_of_send();
  EXPECT_EQ(error.code, Errc::protocol);
  EXPECT_THAT(error.message, HasSubstr("the server speaks no HTTP/2"));
}

TEST_F(Http2ClientTest, SharesTheTroubleOfTheFirstConnection) {
  resolver.addresses = {};
  with_client([&](HttpClient& client) -> Coro<void> {
    auto one = begin(client, "/1");
    auto two = begin(client, "/2");
    co_await finish(*one);
    co_await finish(*two);
    EXPECT_EQ(one->result.error().code, Errc::dns);
    EXPECT_EQ(two->result.error().code, Errc::dns);
  });
}

TEST_F(Http2ClientTest, WhoWaitsGoesOnWhenTheOneThatOpensIsCancelled) {
  with_client([&](HttpClient& client) -> Coro<void> {
    auto one = begin(client, "/1");
    auto two = begin(client, "/2");
    co_await yield_now();
    EXPECT_TRUE(co_await ends_cancelled(*one));
    co_await finish(*two);
    EXPECT_TRUE(two->result);
    EXPECT_EQ(two->response.body, "hello");
  });
}

TEST_F(Http2ClientTest, SendsABodyAndReadsOneThatIsLargerThanTheWindows) {
  request.method = HttpMethod::post;
  request.body = std::string(3'000'000, 'x');
  server.answer = [](Connection& connection, const Asked& asked) {
    connection.respond(asked.stream, 200, {}, asked.body + asked.body);
  };
  const auto sent = send();
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_EQ(response.body.size(), 6'000'000u);
  EXPECT_EQ(server.connections[0]->asked.at(0).field("content-length"), "3000000");
}

TEST_F(Http2ClientTest, ALargePageHoldsUpNoOther) {
  server.answer = [](Connection& connection, const Asked& asked) {
    connection.respond(asked.stream, 200, {}, std::string(asked.field(":path") == "/large" ? 30'000'000 : 5, 'x'));
  };
  request.body_limit = 40'000'000;
  with_client([&](HttpClient& client) -> Coro<void> {
    auto large = begin(client, "/large");
    co_await server.received(1);
    auto small = begin(client, "/small");
    co_await finish(*small);
    EXPECT_TRUE(small->result);
    EXPECT_FALSE(large->task->done());
    co_await finish(*large);
    EXPECT_EQ(large->response.body.size(), 30'000'000u);
  });
}

TEST_F(Http2ClientTest, DecodesAndStopsAtTheBodyLimit) {
  const std::string packed = gzip(std::string(100'000, 'a'));
  server.answer = [&](Connection& connection, const Asked& asked) {
    connection.respond(asked.stream, 200, {{"content-encoding", "gzip"}}, packed);
  };
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(response.body, std::string(100'000, 'a'));
    request.body_limit = 1000;
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(response.body, std::string(1000, 'a'));
    EXPECT_TRUE(response.truncated);
    server.answer = [](Connection& connection, const Asked& asked) {
      connection.respond(asked.stream, 200, {}, std::string(50'000'000, 'b'));
    };
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_TRUE(response.truncated);
    EXPECT_LT(response.wire_bytes, 3'000'000u);
    request.body_limit = 1'000'000;
    server.answer = [](Connection& connection, const Asked& asked) {
      connection.respond(asked.stream, 200, {}, "end");
    };
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(response.body, "end");
    EXPECT_EQ(client.connections_opened(), 1u);
  });
}

TEST_F(Http2ClientTest, BreaksOffABodyOfATypeThatIsNotWanted) {
  const std::vector<std::string> types = {"text/html"};
  request.wanted_types = types;
  server.answer = [](Connection& connection, const Asked& asked) {
    connection.respond(asked.stream, 200, {{"content-type", "application/zip"}, {"content-length", "50000000"}},
                       std::string(50'000'000, 'z'));
  };
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_TRUE(response.unwanted);
    EXPECT_EQ(response.body, "");
    EXPECT_LT(response.wire_bytes, 3'000'000u);
    while (server.connections[0]->broken_off.empty()) co_await server.next_change();
  });
}

TEST_F(Http2ClientTest, ReadsNoBodyAfterHead) {
  request.method = HttpMethod::head;
  server.answer = [](Connection& connection, const Asked& asked) {
    connection.respond(asked.stream, 200, {{"content-length", "12345"}});
  };
  ASSERT_TRUE(send());
  EXPECT_EQ(response.headers.content_length, 12345u);
  EXPECT_EQ(response.body, "");
}

TEST_F(Http2ClientTest, TellsWhatItSentAndGotAsHttp11WouldHaveIt) {
  request.method = HttpMethod::post;
  request.body = "a=b";
  request.keep_wire = true;
  server.answer = [](Connection& connection, const Asked& asked) {
    connection.respond(asked.stream, 404, {{"content-type", "text/plain"}, {"content-encoding", "gzip"}},
                       gzip("hello"));
  };
  ASSERT_TRUE(send());
  EXPECT_THAT(response.wire.request, ::testing::StartsWith("POST / HTTP/1.1\r\nHost: secure.test:"));
  EXPECT_THAT(response.wire.request, ::testing::EndsWith("\r\nContent-Length: 3\r\n\r\na=b"));
  EXPECT_EQ(response.wire.head, "HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\ncontent-encoding: gzip\r\n\r\n");
  EXPECT_EQ(response.wire.coded_body, gzip("hello"));
  EXPECT_EQ(response.body, "hello");
}

TEST_F(Http2ClientTest, SkipsInterimResponsesButNotForEver) {
  server.answer = [](Connection& connection, const Asked& asked) {
    connection.head(asked.stream, 103, {{"link", "</style.css>; rel=preload"}, {"etag", "\"interim\""}});
    connection.respond(asked.stream, 200, {}, "hello");
  };
  ASSERT_TRUE(send());
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.etag, "");
  server.answer = [](Connection& connection, const Asked& asked) {
    for (int i = 0; i < 200; ++i) connection.head(asked.stream, 100, {});
  };
  const Error error = error_of_send();
  EXPECT_EQ(error.code, Errc::protocol);
  EXPECT_THAT(error.message, HasSubstr("too many interim responses"));
}

TEST_F(Http2ClientTest, HasTheLimitsOfHttp11ForHeads) {
  options.header_limit = 20'000;
  options.header_fields_limit = 50;
  hold_all();
  with_client([&](HttpClient& client) -> Coro<void> {
    auto many = begin(client, "/many");
    auto large = begin(client, "/large");
    auto fine = begin(client, "/fine");
    co_await server.received(3);
    Http2Fields fields;
    for (int i = 0; i < 51; ++i) fields.emplace_back("x-" + std::to_string(i), "y");
    held[0].first->respond(held[0].second, 200, fields, "body");
    held[1].first->respond(held[1].second, 200, {{"x-a", std::string(12'000, 'a')}, {"x-b", std::string(12'000, 'b')}});
    held[2].first->respond(held[2].second, 200, {}, "fine");
    co_await finish(*many);
    co_await finish(*large);
    co_await finish(*fine);
    EXPECT_EQ(many->result.error().code, Errc::too_large);
    EXPECT_THAT(many->result.error().message, HasSubstr("more than 50 response header fields"));
    EXPECT_EQ(large->result.error().code, Errc::too_large);
    EXPECT_THAT(large->result.error().message, HasSubstr("response header larger than 20000 bytes"));
    EXPECT_TRUE(fine->result);
    EXPECT_EQ(client.connections_opened(), 1u);
  });
}

TEST_F(Http2ClientTest, ABodyOfAnotherSizeThanItSaysIsDamaged) {
  server.answer = [](Connection& connection, const Asked& asked) {
    connection.respond(asked.stream, 200, {{"content-length", "9"}}, "hello");
  };
  ASSERT_TRUE(send());
  EXPECT_EQ(response.body, "hello");
  EXPECT_THAT(response.damage, HasSubstr("a body of another size than it says"));
}

// --- streams that are broken off

TEST_F(Http2ClientTest, ACancelledRequestBreaksOffItsStreamAlone) {
  hold_all();
  with_client([&](HttpClient& client) -> Coro<void> {
    auto one = begin(client, "/1");
    auto two = begin(client, "/2");
    co_await server.received(2);
    EXPECT_TRUE(co_await ends_cancelled(*one));
    while (server.connections[0]->broken_off.empty()) co_await server.next_change();
    EXPECT_THAT(server.connections[0]->broken_off, ElementsAre(held[0].second));
    held.erase(held.begin());
    release_held();
    co_await finish(*two);
    EXPECT_TRUE(two->result);
    EXPECT_EQ(client.connections_opened(), 1u);
  });
}

TEST_F(Http2ClientTest, ARequestWhoseTimeIsOverHarmsNoOther) {
  hold_all();
  with_client([&](HttpClient& client) -> Coro<void> {
    request.timeout = 10h;
    auto patient = begin(client, "/patient");
    co_await server.received(1);
    request.timeout = 1h;
    auto hasty = begin(client, "/hasty");
    co_await server.received(2);
    server.connections[0]->ping();  // it is alive
    while (server.connections[0]->pongs == 0) co_await server.next_change();
    world.clock.ahead += 1h;
    co_await finish(*hasty);
    EXPECT_EQ(hasty->result.error().code, Errc::timeout);
    EXPECT_THAT(hasty->result.error().message, HasSubstr("no complete response within 3600 s"));
    release_held();
    co_await finish(*patient);
    EXPECT_TRUE(patient->result);
    EXPECT_EQ(server.connections[0]->pongs, 1);
  });
}

TEST_F(Http2ClientTest, AConnectionThatSaysNothingAtAllIsNotUsedAgainAfterATimeout) {
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    hold_all();
    request.timeout = 1h;
    auto unanswered = begin(client, "/");
    co_await server.received(2);
    world.clock.ahead += 1h;
    co_await finish(*unanswered);
    EXPECT_FALSE(unanswered->result);
    EXPECT_EQ(client.idle_connections(), 0u);
    server.answer = [](Connection& connection, const Asked& asked) { connection.respond(asked.stream, 204, {}); };
    request.timeout = 30s;
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(client.connections_opened(), 2u);
  });
}

TEST_F(Http2ClientTest, AsksAgainAtOnceWhatTheServerRefused) {
  request.method = HttpMethod::post;
  request.body = "once";
  server.answer = [](Connection& connection, const Asked& asked) {
    if (connection.number == 0) return connection.reset(asked.stream, NGHTTP2_REFUSED_STREAM);
    connection.respond(asked.stream, 200, {}, asked.body);
  };
  ASSERT_TRUE(send());
  EXPECT_EQ(response.body, "once");
  EXPECT_EQ(server.connections.size(), 2u);
}

TEST_F(Http2ClientTest, GivesUpWhatIsRefusedAgainAndAgain) {
  server.answer = [](Connection& connection, const Asked& asked) {
    connection.reset(asked.stream, NGHTTP2_REFUSED_STREAM);
  };
  const Error error = error_of_send();
  EXPECT_EQ(error.code, Errc::network);
  EXPECT_THAT(error.message, HasSubstr("the server refused the HTTP/2 stream 4 times"));
}

TEST_F(Http2ClientTest, AsksElsewhereWhatAServerThatGoesHasNotLookedAt) {
  hold_all();
  request.method = HttpMethod::post;
  with_client([&](HttpClient& client) -> Coro<void> {
    auto one = begin(client, "/1");
    auto two = begin(client, "/2");
    co_await server.received(2);
    Connection& first = *server.connections[0];
    first.goaway(held[0].second, NGHTTP2_NO_ERROR);
    co_await server.received(3);
    EXPECT_EQ(server.connections.at(1)->asked.at(0).field(":path"), "/2");
    release_held();
    co_await finish(*one);
    co_await finish(*two);
    EXPECT_TRUE(one->result) << one->result.error().message;
    EXPECT_TRUE(two->result) << two->result.error().message;
    // The first connection has gone with its last stream.
    while (server.open > 1) co_await server.next_change();
    EXPECT_EQ(client.idle_connections(), 1u);
  });
}

TEST_F(Http2ClientTest, AServerThatGoesAfterEachFewRequestsGetsThemAll) {
  server.answer = [](Connection& connection, const Asked& asked) {
    if (connection.asked.size() > 2) return;
    connection.respond(asked.stream, 200, {}, "hello");
    if (connection.asked.size() == 2) connection.goaway(asked.stream, NGHTTP2_NO_ERROR);
  };
  with_client([&](HttpClient& client) -> Coro<void> {
    std::vector<std::unique_ptr<Sent>> all;
    for (int i = 0; i < 20; ++i) all.push_back(begin(client, "/"));
    for (auto& sent : all) {
      co_await finish(*sent);
      EXPECT_TRUE(sent->result) << sent->result.error().message;
    }
  });
  EXPECT_GE(server.connections.size(), 10u);
}

TEST_F(Http2ClientTest, TellsWhyAServerEndedTheConnection) {
  server.answer = [](Connection& connection, const Asked& asked) {
    connection.goaway(asked.stream, NGHTTP2_ENHANCE_YOUR_CALM, "too\nfast");
    connection.close();
  };
  const Error error = error_of_send();
  EXPECT_EQ(error.code, Errc::network);
  EXPECT_THAT(error.message, HasSubstr("the server ended the HTTP/2 connection: ENHANCE_YOUR_CALM, \"too\\nfast\""));
}

TEST_F(Http2ClientTest, TellsWhyAServerGoesBeforeItLooksAtAnything) {
  server.answer = [](Connection& connection, const Asked&) {
    connection.goaway(0, NGHTTP2_ENHANCE_YOUR_CALM, "too fast");
  };
  EXPECT_THAT(error_of_send().message,
              HasSubstr("the server refused the HTTP/2 stream 4 times: the server ended the HTTP/2 "
                        "connection: ENHANCE_YOUR_CALM, \"too fast\""));
}

TEST_F(Http2ClientTest, GoesOnByHttp11WhereTheServerWantsThat) {
  server.answer = [this](Connection& connection, const Asked& asked) {
    server.protocol = "http/1.1";
    connection.reset(asked.stream, NGHTTP2_HTTP_1_1_REQUIRED);
  };
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(response.body, "old");
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(server.requests(), 1u);
    EXPECT_EQ(server.http1_requests.size(), 2u);
  });
}

TEST_F(Http2ClientTest, GoesOnByHttp11HoweverTheServerSaysThatItWantsThat) {
  using Say = std::function<void(Connection&, const Asked&)>;
  const Say ways[] = {[](Connection& connection, const Asked&) { connection.goaway(0, NGHTTP2_HTTP_1_1_REQUIRED); },
                      [](Connection& connection, const Asked&) {
                        connection.goaway(0, NGHTTP2_HTTP_1_1_REQUIRED);
                        connection.close();
                      },
                      [](Connection& connection, const Asked& asked) {
                        connection.goaway(asked.stream, NGHTTP2_HTTP_1_1_REQUIRED);
                        connection.close();
                      },
                      [](Connection& connection, const Asked& asked) {
                        connection.head(asked.stream, 200, {{"content-type", "text/plain"}});
                        connection.reset(asked.stream, NGHTTP2_HTTP_1_1_REQUIRED);
                      }};
  for (const Say& say : ways) {
    SCOPED_TRACE(&say - ways);
    server.protocol = "h2";
    const std::size_t before = server.requests(), before_http1 = server.http1_requests.size();
    server.answer = [&](Connection& connection, const Asked& asked) {
      server.protocol = "http/1.1";
      say(connection, asked);
    };
    with_client([&](HttpClient& client) -> Coro<void> {
      for (int i = 0; i < 2; ++i) {
        const auto sent = co_await client.send(request, response);
        EXPECT_TRUE(sent) << sent.error().message;
        EXPECT_EQ(response.body, "old");
      }
    });
    EXPECT_EQ(server.requests(), before + 1) << "asked once by HTTP/2";
    EXPECT_EQ(server.http1_requests.size(), before_http1 + 2);
  }
}

TEST_F(Http2ClientTest, RepeatsNoRequestByHttp11ThatMayHaveDoneSomething) {
  request.method = HttpMethod::post;
  request.body = "once";
  server.answer = [this](Connection& connection, const Asked& asked) {
    server.protocol = "http/1.1";
    connection.goaway(asked.stream, NGHTTP2_HTTP_1_1_REQUIRED);
    connection.close();
  };
  EXPECT_THAT(error_of_send().message, HasSubstr("the server ended the HTTP/2 connection: HTTP_1_1_REQUIRED"));
  EXPECT_EQ(server.http1_requests.size(), 0u);
}

TEST_F(Http2ClientTest, ABrokenStreamIsAnErrorOrADamagedBody) {
  server.answer = [](Connection& connection, const Asked& asked) {
    connection.reset(asked.stream, NGHTTP2_INTERNAL_ERROR);
  };
  const Error error = error_of_send();
  EXPECT_EQ(error.code, Errc::network);
  EXPECT_THAT(error.message, HasSubstr("the server broke the HTTP/2 stream off: INTERNAL_ERROR"));
  server.answer = [](Connection& connection, const Asked& asked) {
    connection.head(asked.stream, 200, {{"content-type", "text/plain"}});
    connection.raw(http2_frame(NGHTTP2_DATA, 0, static_cast<std::uint32_t>(asked.stream), "half") +
                   http2_frame(NGHTTP2_RST_STREAM, 0, static_cast<std::uint32_t>(asked.stream), {"\0\0\0\2", 4}));
  };
  ASSERT_TRUE(send());
  EXPECT_EQ(response.body, "half");
  EXPECT_THAT(response.damage, HasSubstr("INTERNAL_ERROR"));
}

// --- connections that are lost

TEST_F(Http2ClientTest, AConnectionThatIsLostEndsEachOfItsStreams) {
  server.answer = [this](Connection& connection, const Asked& asked) {
    if (asked.field(":path") == "/begun") {
      connection.head(asked.stream, 200, {});
      connection.raw(http2_frame(NGHTTP2_DATA, 0, static_cast<std::uint32_t>(asked.stream), "half"));
    }
    held.emplace_back(&connection, asked.stream);
    if (held.size() == 2) connection.close();
  };
  with_client([&](HttpClient& client) -> Coro<void> {
    auto begun = begin(client, "/begun");
    auto silent = begin(client, "/silent");
    co_await finish(*begun);
    co_await finish(*silent);
    EXPECT_TRUE(begun->result);
    EXPECT_EQ(begun->response.body, "half");
    EXPECT_THAT(begun->response.damage, HasSubstr("connection closed inside the body"));
    EXPECT_EQ(silent->result.error().code, Errc::network);
    EXPECT_THAT(silent->result.error().message, HasSubstr("connection closed before a response"));
  });
}

TEST_F(Http2ClientTest, SendsOnceMoreWhatAKeptConnectionDidNotAnswer) {
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    server.answer = [](Connection& connection, const Asked& asked) {
      if (connection.number == 0) return connection.close();
      connection.respond(asked.stream, 200, {}, "again");
    };
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(response.body, "again");
    EXPECT_EQ(client.connections_opened(), 2u);
  });
}

TEST_F(Http2ClientTest, DoesNotSendOnceMoreWhatMustNotBeSentTwice) {
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    server.answer = [](Connection& connection, const Asked&) { connection.close(); };
    request.method = HttpMethod::post;
    EXPECT_FALSE(co_await client.send(request, response));
    EXPECT_EQ(client.connections_opened(), 1u);
  });
}

TEST_F(Http2ClientTest, NoticesThatAKeptConnectionHasGone) {
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(client.idle_connections(), 1u);
    server.connections[0]->close();
    co_await server.all_closed();
    while (client.idle_connections() > 0) co_await sleep(1ms);
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(client.connections_opened(), 2u);
  });
}

TEST_F(Http2ClientTest, ClosesConnectionsThatWereIdleForTooLongAndTheOldestOfTooMany) {
  options.keep_alive = 1ms;
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    co_await sleep(3ms);
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(client.connections_opened(), 2u);
  });
  options.keep_alive = 15s;
  options.max_idle = 0;
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(client.idle_connections(), 0u);
  });
}

TEST_F(Http2ClientTest, AServerThatTalksWithoutBeingAskedIsLeft) {
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    // Frames of a type that nobody knows: more than could be under way of streams that were broken off.
    std::string frames;
    while (frames.size() < 20'000'000) frames += http2_frame(0xf0, 0, 0, std::string(16'000, 'x'));
    server.connections[0]->raw(std::move(frames));
    co_await server.all_closed();
    EXPECT_EQ(client.idle_connections(), 0u);
  });
}

TEST_F(Http2ClientTest, WhatIsNoHttp2IsAnErrorOfTheProtocol) {
  server.answer = [](Connection& connection, const Asked&) {
    connection.raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  };
  Error error = error_of_send();
  EXPECT_EQ(error.code, Errc::protocol);
  EXPECT_THAT(error.message, HasSubstr("bad HTTP/2: "));
  server.answer = [](Connection& connection, const Asked& asked) {
    connection.raw(http2_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, static_cast<std::uint32_t>(asked.stream),
                               "\xff\xff\xff\xff\xff\xff"));
  };
  error = error_of_send();
  EXPECT_EQ(error.code, Errc::protocol);
}

// --- beside it

TEST_F(Http2ClientTest, ReceivesNoFasterThanItMayAndTheServerHasTheTimeThatTakes) {
  server.answer = [](Connection& connection, const Asked& asked) {
    connection.respond(asked.stream, 200, {}, std::string(asked.field(":path") == "/" ? 300'000 : 5, 'x'));
  };
  Result<void> sent;
  // A busy machine's server may need all the time for itself: then all takes longer.
  for (const int slower : {1, 5, 25}) {
    options.byte_rate = std::make_shared<ByteRate>(100'000 / slower);
    with_client([&](HttpClient& client) -> Coro<void> {
      request.timeout = 10min;
      auto first = begin(client, "/first");
      co_await finish(*first);
      request.timeout = slower * 2s;  // enough for the server, and not for the rate
      const TimePoint start = world.clock.now();
      sent = co_await client.send(request, response);
      if (sent) EXPECT_GE(world.clock.now() - start, slower * 2200ms);
    });
    if (sent) break;
  }
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_EQ(response.body.size(), 300'000u);
}

TEST_F(Http2ClientTest, GoesThroughAnHttpProxysTunnel) {
  TunnelProxy tunnel(world.backend);
  tunnel.target = server.port();
  options.proxies.for_https = {*Proxy::parse(tunnel.url("http"))};
  request.url = *Url::parse("https://secure.test/page");
  with_client([&](HttpClient& client) -> Coro<void> {
    auto proxying = EventLoop::current().create_task(tunnel.serve());
    for (int i = 0; i < 2; ++i) {
      const auto sent = co_await client.send(request, response);
      EXPECT_TRUE(sent) << sent.error().message;
      EXPECT_EQ(response.body, "hello");
    }
    EXPECT_EQ(client.connections_opened(), 1u);
    client.close_idle();
    co_await server.all_closed();
    tunnel.stop();
    co_await std::move(proxying);
  });
  EXPECT_THAT(tunnel.asked, ElementsAre("secure.test:443"));
  EXPECT_EQ(server.connections[0]->asked.at(0).field(":authority"), "secure.test");
}

TEST_F(Http2ClientTest, SharesNoConnectionBetweenRequestsOfDifferentWays) {
  const auto trusting = std::make_shared<const HttpWay>(HttpWay{.verifies = false});
  const auto patient = std::make_shared<const HttpWay>(HttpWay{.connect_timeout = std::chrono::seconds{30}});
  const auto patient_and_trusting =
      std::make_shared<const HttpWay>(HttpWay{.verifies = false, .connect_timeout = std::chrono::seconds{30}});
  with_client([&](HttpClient& client) -> Coro<void> {
    for (int i = 0; i < 2; ++i) {
      for (const auto& way : {std::shared_ptr<const HttpWay>(), trusting, patient, patient_and_trusting}) {
        request.way = way;
        EXPECT_TRUE(co_await client.send(request, response));
      }
    }
    EXPECT_EQ(client.connections_opened(), 4u);
  });
}

TEST_F(Http2ClientTest, AsksNobodyByAConnectionWhoseServerHasNotProvenItself) {
  options.extra_ca_file.clear();
  with_client([&](HttpClient& client) -> Coro<void> {
    request.way = std::make_shared<const HttpWay>(HttpWay{.verifies = false});
    auto trusting = begin(client, "/1");
    request.way = nullptr;
    auto verifying = begin(client, "/2");
    co_await finish(*trusting);
    co_await finish(*verifying);
    EXPECT_TRUE(trusting->result);
    EXPECT_EQ(trusting->response.body, "hello");
    EXPECT_FALSE(verifying->result);
    if (!verifying->result) EXPECT_EQ(verifying->result.error().code, Errc::tls);
    const auto again = co_await client.send(request, response);
    EXPECT_FALSE(again) << "nor by one that is kept";
  });
}

TEST_F(Http2ClientTest, MayBeDestroyedBeforeALoopWithItsStreamsUnderWay) {
  // A backend of its own: it must not run when its loop has gone.
  AsioBackend backend(world.clock);
  Http2Server silent(backend, certificate.server);
  silent.answer = [](Connection&, const Asked&) {};
  request.url = *Url::parse(silent.origin() + "/");
  HttpResponse second;
  auto client = std::make_unique<HttpClient>(options, backend, resolver, guard);
  EventLoop other(backend);
  other.create_task(silent.serve());
  other.create_task(client->send(request, response));
  other.create_task(client->send(request, second));
  other.run_until_complete(silent.received(2));
  client.reset();
}

}  // namespace
}  // namespace argiope
