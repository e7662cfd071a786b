#include "argiope/web/http_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <stdexcept>

#include "argiope/async/group.hpp"
#include "argiope/web/detail/byte_rate.hpp"
#include "support/certificate.hpp"
#include "support/http_client_fixture.hpp"

namespace argiope {
namespace {

using ::testing::HasSubstr;
using Then = RawServer::Then;

TEST_F(HttpClientTest, SendsARequestAndReadsItsResponse) {
  options.user_agent = "spider/1";
  options.headers = {{"From", "me@example.org"}};
  request.url = url("/a?b=c#d");
  request.headers = {{"If-None-Match", "\"x\""}};
  const std::string reply = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nContent-Type: text/html\r\n\r\ngone";
  server.add(reply);
  ASSERT_TRUE(send());
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, "gone");
  EXPECT_EQ(response.headers.content_type, "text/html");
  EXPECT_EQ(response.remote.to_string(), "127.0.0.1");
  EXPECT_EQ(response.wire_bytes, reply.size());
  EXPECT_LE(response.sent_at, world.clock.now());
  EXPECT_GT(response.sent_at, TimePoint{});
  EXPECT_EQ(server.requests().at(0),
            "GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) +
                "\r\nUser-Agent: spider/1\r\nAccept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.5\r\n"
                "Accept-Encoding: gzip, br, zstd, deflate\r\nFrom: me@example.org\r\nIf-None-Match: \"x\"\r\n\r\n");
}

TEST_F(HttpClientTest, ALargeBodyOfATypeThatIsNotWantedIsNotAwaitedAndItsConnectionIsClosed) {
  const std::vector<std::string> types = {"text/html"};
  request.wanted_types = types;
  server.add(RawServer::Script{
      {{"HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nContent-Length: 50000000\r\n\r\nPK"}, Then::silent}});
  server.add("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello");
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_TRUE(response.unwanted);
    EXPECT_EQ(response.headers.content_length, 50'000'000u);
    EXPECT_LT(response.wire_bytes, 1000u);
    EXPECT_EQ(client.idle_connections(), 0u);
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_FALSE(response.unwanted);
    EXPECT_EQ(response.body, "hello");
  });
}

TEST_F(HttpClientTest, ABodyEndsWhenItsQuotaIsUsedUpAndOneThatIsWholeByThenIsKept) {
  ByteQuota quota(10'000);
  request.quota = &quota;
  request.body_limit = 50'000'000;
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 50000000\r\n\r\n";
  server.add(RawServer::Script{{{kHello}}, {{head + std::string(20'000, 'x')}, Then::silent}});
  server.add(kHello);
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(response.quota_bytes, response.wire_bytes);
    EXPECT_FALSE(quota.is_used_up());
    const auto cut = co_await client.send(request, response);
    EXPECT_FALSE(cut);
    EXPECT_EQ(cut.error().code, Errc::too_large);
    EXPECT_TRUE(response.connected);
    EXPECT_EQ(response.quota_bytes, response.wire_bytes);
    EXPECT_EQ(client.idle_connections(), 0u);
    EXPECT_TRUE(quota.is_used_up());
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(response.body, "hello");
  });
}

TEST_F(HttpClientTest, SendsABodyWithItsLength) {
  request.method = HttpMethod::post;
  request.body = std::string(300'000, 'x');
  request.headers = {{"accept", "application/json"}, {"Content-Type", "text/plain"}};
  server.add(kHello);
  ASSERT_TRUE(send());
  const std::string& sent = server.requests().at(0);
  EXPECT_THAT(sent, ::testing::StartsWith("POST / HTTP/1.1\r\nHost: "));
  EXPECT_THAT(sent, ::testing::EndsWith("\r\nContent-Length: 300000\r\n\r\n" + request.body));
  EXPECT_THAT(
      sent,
      HasSubstr(
          "\r\nAccept-Encoding: gzip, br, zstd, deflate\r\naccept: application/json\r\nContent-Type: text/plain\r\n"));
  EXPECT_THAT(sent, ::testing::Not(HasSubstr("Accept: text/html")));
}

TEST_F(HttpClientTest, TellsWhatItSentWhereThatIsAskedFor) {
  request.method = HttpMethod::post;
  request.body = "a=b";
  request.keep_wire = true;
  server.add(kHello);
  ASSERT_TRUE(send());
  EXPECT_EQ(response.wire.request, server.requests().at(0));
  EXPECT_EQ(response.wire.head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  request.keep_wire = false;
  server.add(kHello);
  ASSERT_TRUE(send());
  EXPECT_EQ(response.wire.request + response.wire.head, "");
}

TEST_F(HttpClientTest, NamesEveryMethodAndSaysTheLengthOfBodiesThatAreExpected) {
  for (const HttpMethod method : {HttpMethod::put, HttpMethod::patch, HttpMethod::delete_, HttpMethod::options}) {
    request.method = method;
    server.add(kHello);
    ASSERT_TRUE(send());
    const std::string& sent = server.requests().back();
    EXPECT_THAT(sent, ::testing::StartsWith(std::string(to_string(method)) + " / HTTP/1.1\r\n"));
    const bool has_body = method == HttpMethod::put || method == HttpMethod::patch;
    EXPECT_EQ(sent.contains("Content-Length: 0\r\n"), has_body) << sent;
  }
}

TEST_F(HttpClientTest, SendsWhatMustNotBeSentTwiceOnANewConnection) {
  server.add({{{kHello}}, {{kHello}}});
  server.add({{{kHello}}, {{kHello}}});
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    request.method = HttpMethod::post;
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(client.connections_opened(), 2u);
    request.method = HttpMethod::put;
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(client.connections_opened(), 2u);
  });
}

TEST_F(HttpClientTest, ReadsBodiesOfEveryFraming) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  server.add(
      {{{head, "Content-Le", "ngth: 5\r\n\r", "\nhe", "llo"}, Then::keep},
       {{head + "Transfer-Encoding: chunked\r\n\r\n2", "\r\nhe\r\n", "3\r\nllo", "\r\n0\r\n", "\r\n"}, Then::keep},
       {{head + "\r\nhe", "llo"}, Then::close}});
  with_client([&](HttpClient& client) -> Coro<void> {
    for (int i = 0; i < 3; ++i) {
      const auto sent = co_await client.send(request, response);
      EXPECT_TRUE(sent);
      EXPECT_EQ(response.body, "hello") << i;
    }
    EXPECT_EQ(client.idle_connections(), 0u);
  });
  EXPECT_EQ(server.connections(), 1u);
}

TEST_F(HttpClientTest, KeepsConnectionsAlivePerSite) {
  server.add({{{kHello}}, {{kHello}}});
  server.add({{{kHello}}});
  with_client([&](HttpClient& client) -> Coro<void> {
    for (const char* host : {"127.0.0.1", "127.0.0.1", "other.test"}) {
      request.url = url("/", host);
      EXPECT_TRUE(co_await client.send(request, response));
    }
    EXPECT_EQ(client.connections_opened(), 2u);
    EXPECT_EQ(client.idle_connections(), 2u);
    client.close_idle();
    EXPECT_EQ(client.idle_connections(), 0u);
    co_await server.all_closed();
  });
}

TEST_F(HttpClientTest, ClosesTheOldestOfTooManyIdleConnections) {
  options.max_idle = 2;
  for (int i = 0; i < 4; ++i) server.add({{{kHello}}, {{kHello}}});
  with_client([&](HttpClient& client) -> Coro<void> {
    for (const char* host : {"a.test", "b.test", "c.test", "b.test", "a.test"}) {
      request.url = url("/", host);
      EXPECT_TRUE(co_await client.send(request, response));
    }
    EXPECT_EQ(client.connections_opened(), 4u);
    EXPECT_EQ(client.idle_connections(), 2u);
  });
}

TEST_F(HttpClientTest, KeepsNothingWhenToldTo) {
  for (const bool by_count : {true, false}) {
    options = {};
    if (by_count) {
      options.max_idle = 0;
    } else {
      options.keep_alive = 0s;
    }
    server.add(kHello);
    server.add(kHello);
    with_client([&](HttpClient& client) -> Coro<void> {
      EXPECT_TRUE(co_await client.send(request, response));
      EXPECT_EQ(client.idle_connections(), 0u);
      EXPECT_TRUE(co_await client.send(request, response));
      EXPECT_EQ(client.connections_opened(), 2u);
    });
  }
}

TEST_F(HttpClientTest, DoesNotKeepAConnectionThatSaidMoreThanItsResponse) {
  server.add(std::string(kHello) + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged");
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(response.body, "hello");
    EXPECT_EQ(client.idle_connections(), 0u);
  });
}

TEST_F(HttpClientTest, SendsOnceMoreOnANewConnectionWhenAKeptOneIsStale) {
  for (const Then end : {Then::close, Then::reset}) {
    server.add({{{kHello}, Then::keep}, {{}, end}});
    server.add(kHello);
    with_client([&](HttpClient& client) -> Coro<void> {
      EXPECT_TRUE(co_await client.send(request, response));
      EXPECT_TRUE(co_await client.send(request, response));
      EXPECT_EQ(response.body, "hello");
      EXPECT_EQ(client.connections_opened(), 2u);
    });
  }
  EXPECT_EQ(server.requests().size(), 6u);
}

TEST_F(HttpClientTest, OpensANewConnectionWhenTheKeptOneWasClosedMeanwhile) {
  server.add(kHello, Then::close);
  server.add(kHello);
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(client.idle_connections(), 1u);
    co_await server.all_closed();
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(client.connections_opened(), 2u);
  });
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST_F(HttpClientTest, SendsOnlyOnceMore) {
  // Two kept connections, both stale, and a new one that is closed too.
  server.add({{{kHello}, Then::keep}, {{}, Then::close}});
  server.add({{{kHello}, Then::keep}, {{}, Then::close}});
  server.add("", Then::close);
  with_client([&](HttpClient& client) -> Coro<void> {
    HttpResponse second;
    co_await gather(client.send(request, response), client.send(request, second));
    EXPECT_EQ(client.idle_connections(), 2u);
    const auto sent = co_await client.send(request, response);
    EXPECT_FALSE(sent);
    if (!sent) EXPECT_EQ(sent.error().code, Errc::network);
  });
  EXPECT_EQ(server.requests().size(), 4u);
}

TEST_F(HttpClientTest, DoesNotSendAgainWhatWasPartlyAnswered) {
  server.add({{{kHello}, Then::keep}, {{"HTTP/1.1 200 OK\r\nCont"}, Then::close}});
  server.add(kHello);
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    const auto sent = co_await client.send(request, response);
    EXPECT_FALSE(sent);
    EXPECT_EQ(client.connections_opened(), 1u);
  });
}

TEST_F(HttpClientTest, NamesWhatIsWrongWithTheResponse) {
  server.add("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", Then::close);
  EXPECT_EQ(error_of_send(), Errc::network);
  server.add("", Then::close);
  EXPECT_EQ(error_of_send(), Errc::network);
  server.add("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", Then::reset);
  EXPECT_EQ(error_of_send(), Errc::network);
  server.add("\x16\x03\x01 no HTTP at all\r\n\r\n");
  EXPECT_EQ(error_of_send(), Errc::protocol);
  server.add("HTTP/1.1 200 OK\r\nX: " + std::string(300'000, 'a'));
  EXPECT_EQ(error_of_send(), Errc::too_large);
  server.add("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 12\r\n\r\n\x1f\x8bplain text");
  EXPECT_EQ(error_of_send(), Errc::protocol);
}

TEST_F(HttpClientTest, KeepsWhatCameOfABodyWhoseConnectionEndsOrBreaks) {
  for (const Then then : {Then::close, Then::reset}) {
    server.add({{{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "short"}, then}});
    ASSERT_TRUE(send());
    if (response.body.empty()) continue;  // a reset may overtake what was sent
    EXPECT_EQ(response.body, "short");
    EXPECT_NE(response.damage, "");
  }
}

TEST_F(HttpClientTest, TakesACutRobotsTxtOrRedirectForATroubleOfTheNetwork) {
  server.add("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUser-agent: *", Then::close);
  with_client([&](HttpClient& client) -> Coro<void> {
    const auto sent = co_await send_following_redirects(client, request, response, 5);
    EXPECT_FALSE(sent);
    if (!sent) EXPECT_EQ(sent.error().code, Errc::network);
  });
}

TEST_F(HttpClientTest, UsesNoConnectionAgainThatHasCarriedAnythingOddOrHasMoreToSay) {
  for (const char* reply :
       {"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"}) {
    server.add({{{reply}}, {{kHello}}});
    server.add(kHello);
    with_client([&](HttpClient& client) -> Coro<void> {
      EXPECT_TRUE(co_await client.send(request, response));
      EXPECT_EQ(response.body, "hello");
      EXPECT_TRUE(co_await client.send(request, response));
      EXPECT_EQ(client.connections_opened(), 2u) << reply;
    });
  }
  // Bytes that come when the response is over and read.
  server.add({{{kHello, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"}}, {{kHello}}});
  server.add(kHello);
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    for (int i = 0; i < 100; ++i) co_await yield_now();
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(response.body, "hello");
  });
}

TEST_F(HttpClientTest, SendsFieldsToTheServersTheyAreForAndNoOther) {
  const std::string here = server.origin();
  options.headers_for = {{here, "Authorization", "Basic eDp5"},
                         {"127.0.0.1", "X-Host", "1"},
                         {"127.0.0.1:" + std::to_string(server.port()), "X-Port", "1"},
                         {"*", "User-Agent", "everywhere"},
                         {"http://127.0.0.1:1", "Cookie", "other port"},
                         {"https://127.0.0.1:" + std::to_string(server.port()), "Cookie", "other scheme"},
                         {"localhost", "Cookie", "other name"}};
  server.add(kHello);
  ASSERT_TRUE(send());
  EXPECT_THAT(server.requests().at(0),
              ::testing::EndsWith(
                  "deflate\r\nAuthorization: Basic eDp5\r\nX-Host: 1\r\nX-Port: 1\r\nUser-Agent: everywhere\r\n\r\n"));
  EXPECT_THAT(server.requests().at(0), ::testing::Not(HasSubstr("User-Agent: argiope")));
  request.url = url("/", "localhost");
  request.headers = {{"cookie", "its own"}};
  server.add(kHello);
  ASSERT_TRUE(send());
  EXPECT_THAT(server.requests().at(1),
              ::testing::EndsWith("deflate\r\nUser-Agent: everywhere\r\ncookie: its own\r\n\r\n"));
  // Of a request that says nothing of who we are, only what goes everywhere.
  request.url = url("/");
  request.headers.clear();
  request.is_anonymous = true;
  server.add(kHello);
  ASSERT_TRUE(send());
  EXPECT_THAT(server.requests().at(2), ::testing::EndsWith("deflate\r\nUser-Agent: everywhere\r\n\r\n"));
}

TEST_F(HttpClientTest, MakesBasicAuthorizationOfAUrlsCredentialsAndTakesThemOut) {
  const std::pair<const char*, const char*> cases[] = {
      {"http://Aladdin:open%20sesame@h/a", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},
      {"http://a@h/a", "Basic YTo="},
      {"http://:b@h/a", "Basic OmI="},
      {"http://ab:c@h/a", "Basic YWI6Yw=="},
      {"http://h/a", ""}};
  for (const auto& [text, value] : cases) {
    Url parsed = *Url::parse(text);
    EXPECT_EQ(take_credentials(parsed), value);
    EXPECT_EQ(parsed, *Url::parse("http://h/a"));
    EXPECT_EQ(parsed.host(), "h");
    EXPECT_EQ(parsed.path_and_query(), "/a");
  }
  Url parsed = *Url::parse("http://u:p@h:81/a?b#c");
  parsed.strip_credentials();
  EXPECT_EQ(parsed.href() + " " + std::string(parsed.host_and_port()) + std::string(parsed.search()) +
                std::string(parsed.hash()),
            "http://h:81/a?b#c h:81?b#c");
  EXPECT_EQ(without_credentials("http://u:p@ss@bad host/x@y"), "http://…@bad host/x@y");
  EXPECT_EQ(without_credentials("no url, me@there"), "no url, me@there");
}

TEST_F(HttpClientTest, SkipsInterimResponsesButNotForEver) {
  const std::string interim = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
  server.add(interim + kHello);
  ASSERT_TRUE(send());
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "hello");
  server.add({{{interim, interim + "HTTP/1", ".1 200 OK\r\nContent-Length: 1\r\n\r\nx"}}});
  ASSERT_TRUE(send());
  EXPECT_EQ(response.body, "x");
  std::string endless;
  for (int i = 0; i < 200; ++i) endless += interim;
  server.add(endless);
  EXPECT_EQ(error_of_send(), Errc::protocol);
}

TEST_F(HttpClientTest, StopsReadingAtTheBodyLimit) {
  request.body_limit = 3;
  server.add(kHello, Then::silent);
  ASSERT_TRUE(send());
  EXPECT_TRUE(response.truncated);
  EXPECT_EQ(response.body, "hel");
}

TEST_F(HttpClientTest, ReadsNoBodyAfterHead) {
  request.method = HttpMethod::head;
  server.add({{{"HTTP/1.1 200 OK\r\nContent-Length: 500\r\nETag: \"a\"\r\n\r\n"}}, {{kHello}}});
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(response.body, "");
    EXPECT_EQ(response.headers.content_length, 500u);
    request.method = HttpMethod::get;
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(response.body, "hello");
    EXPECT_EQ(client.connections_opened(), 1u);
  });
  EXPECT_THAT(server.requests().at(0), ::testing::StartsWith("HEAD / HTTP/1.1\r\n"));
}

TEST_F(HttpClientTest, GivesUpWhenTheTimeIsOver) {
  request.timeout = 50ms;
  server.add("", Then::silent);
  const Result<void> nothing = send();
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, Errc::timeout);
  EXPECT_THAT(nothing.error().message, HasSubstr("within 0.05 s"));
  server.add("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal", Then::silent);
  EXPECT_EQ(error_of_send(), Errc::timeout);
}

TEST_F(HttpClientTest, ClosesTheConnectionWhenCancelled) {
  server.add("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal", Then::silent);
  with_client([&](HttpClient& client) -> Coro<void> {
    auto sending = EventLoop::current().create_task(client.send(request, response));
    co_await server.received(1);
    co_await yield_now();
    sending.cancel();
    bool cancelled = false;
    try {
      co_await std::move(sending);
    } catch (const CancelledError&) {
      cancelled = true;
    }
    EXPECT_TRUE(cancelled);
    EXPECT_EQ(client.idle_connections(), 0u);
    co_await server.all_closed();
  });
}

TEST_F(HttpClientTest, RefusesAddressesTheGuardRefuses) {
  guard = AddressGuard(false);
  const std::uint16_t port = server.port();
  for (const char* host : {"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "2130706433", "0x7f.1",
                           "0.0.0.0", "[::]", "169.254.169.254", "10.0.0.1", "private.test"}) {
    request.url = *Url::parse("http://" + std::string(host) + ":" + std::to_string(port) + "/");
    EXPECT_EQ(error_of_send(), Errc::refused) << host;
  }
  EXPECT_EQ(server.connections(), 0u);
  guard.permit_loopback();
  server.add(kHello);
  request.url = url("/");
  EXPECT_TRUE(send());
}

TEST_F(HttpClientTest, TriesTheNextAddressWhenOneDoesNotAnswer) {
  // Nobody listens there on this port, and the guard does not let the second be tried.
  guard = AddressGuard(false);
  guard.permit_loopback();
  resolver.addresses = {*IpAddress::parse("127.9.9.9"), *IpAddress::parse("10.0.0.1"), *IpAddress::parse("127.0.0.1")};
  server.add(kHello);
  request.url = url("/", "many.test");
  ASSERT_TRUE(send());
  EXPECT_EQ(response.remote.to_string(), "127.0.0.1");
}

TEST_F(HttpClientTest, NamesTheHostThatCannotBeReached) {
  resolver.addresses = {*IpAddress::parse("127.9.9.9")};
  request.url = url("/", "nobody.test");
  const Result<void> unreachable = send();
  ASSERT_FALSE(unreachable);
  EXPECT_EQ(unreachable.error().code, Errc::network);
  EXPECT_THAT(unreachable.error().message, HasSubstr("connect nobody.test (127.9.9.9 port "));
  resolver.addresses.clear();
  EXPECT_EQ(error_of_send(), Errc::dns);
}

TEST_F(HttpClientTest, NamesEveryAddressThatCannotBeReached) {
  guard = AddressGuard(false);
  guard.permit_loopback();
  resolver.addresses = {*IpAddress::parse("127.9.9.9"), *IpAddress::parse("10.0.0.1"), *IpAddress::parse("127.8.8.8")};
  request.url = url("/", "many.test");
  const Result<void> unreachable = send();
  ASSERT_FALSE(unreachable);
  EXPECT_EQ(unreachable.error().code, Errc::network);
  for (const char* part : {"many.test", "3 addresses", "127.9.9.9: ", "10.0.0.1", "127.8.8.8: ", "refused"}) {
    EXPECT_THAT(unreachable.error().message, HasSubstr(part));
  }
}

TEST_F(HttpClientTest, TellsWhatFailsBeforeAConnectionFromWhatFailsAfter) {
  response.sent_at = TimePoint{1h};
  resolver.addresses = {*IpAddress::parse("127.9.9.9")};
  request.url = url("/", "nobody.test");
  EXPECT_EQ(error_of_send(), Errc::network);
  EXPECT_FALSE(response.connected);
  EXPECT_NE(response.sent_at, TimePoint{1h});
  request.url = url("/");
  server.add("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", Then::reset);
  EXPECT_EQ(error_of_send(), Errc::network);
  EXPECT_TRUE(response.connected);
}

TEST_F(HttpClientTest, RefusesHeadersThatCouldSplitARequest) {
  const auto make = [&](std::string agent, std::string name, std::string value) {
    HttpClientOptions with;
    with.user_agent = std::move(agent);
    with.headers = {{std::move(name), std::move(value)}};
    HttpClient(std::move(with), world.backend, resolver, guard);
  };
  EXPECT_THROW(make("a\r\nX: y", "X", "y"), std::invalid_argument);
  EXPECT_THROW(make("a", "X", "a\nb"), std::invalid_argument);
  EXPECT_THROW(make("a", "X", std::string("a\0b", 3)), std::invalid_argument);
  EXPECT_THROW(make("a", "X\r\nY", "a"), std::invalid_argument);
  EXPECT_THROW(make("a", "X: y", "a"), std::invalid_argument);
  EXPECT_THROW(make("a", "", "a"), std::invalid_argument);
  EXPECT_NO_THROW(make("a", "X", "tab\tand \xe4"));

  // What a server made us send is left out instead.
  request.headers = {{"If-None-Match", "\"a\"\r\nX-Forged: y"}, {"X\n", "b"}, {"X-Good", "c"}};
  server.add(kHello);
  ASSERT_TRUE(send());
  EXPECT_THAT(server.requests().at(0), ::testing::Not(HasSubstr("Forged")));
  EXPECT_THAT(server.requests().at(0), ::testing::EndsWith("deflate\r\nX-Good: c\r\n\r\n"));
}

// --- how fast

TEST_F(HttpClientTest, ReceivesNoFasterThanItMayAndTheServerHasTheTimeThatTakes) {
  const std::string body(200'000, 'x');
  server.add({{{"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + body}, Then::keep}});
  Result<void> sent;
  // A busy machine's server may need all the time for itself: then all takes longer.
  for (const int slower : {1, 5, 25}) {
    options.byte_rate = std::make_shared<ByteRate>(200'000 / slower);
    request.timeout = slower * 400ms;
    const TimePoint start = world.clock.now();
    sent = send();
    if (!sent && slower < 25) {
      server.add({{{"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + body}, Then::keep}});
      continue;
    }
    EXPECT_GE(world.clock.now() - start, slower * 1s - ByteRate::kBurst);
    break;
  }
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_EQ(response.body, body);
}

TEST_F(HttpClientTest, SharesTheRateAmongItsConnections) {
  const std::string reply = "HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n" + std::string(50'000, 'x');
  server.add(reply);
  server.add(reply);
  options.byte_rate = std::make_shared<ByteRate>(200'000);
  const TimePoint start = world.clock.now();
  with_client([&](HttpClient& client) -> Coro<void> {
    HttpResponse second;
    const auto [one, two] = co_await gather(client.send(request, response), client.send(request, second));
    EXPECT_TRUE(one && two);
  });
  EXPECT_GE(world.clock.now() - start, 500ms - ByteRate::kBurst);
}

TEST_F(HttpClientTest, StopsAtOnceWhenCancelledWhileItWaitsForTheRate) {
  server.add("HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n" + std::string(90'000, 'x'));
  options.byte_rate = std::make_shared<ByteRate>(1);
  with_client([&](HttpClient& client) -> Coro<void> {
    auto sending = EventLoop::current().create_task(client.send(request, response));
    co_await server.received(1);
    for (int i = 0; i < 100; ++i) co_await yield_now();
    sending.cancel();
    bool cancelled = false;
    try {
      co_await std::move(sending);
    } catch (const CancelledError&) {
      cancelled = true;
    }
    EXPECT_TRUE(cancelled);
    co_await server.all_closed();
  });
}

// --- redirects

TEST_F(HttpClientTest, FollowsRedirectsRelativeToWhereTheyCameFrom) {
  const auto redirect = [](int status, const char* location) {
    return "HTTP/1.1 " + std::to_string(status) + " Go\r\nContent-Length: 0\r\nLocation: " + location + "\r\n\r\n";
  };
  server.add({{{redirect(301, "/b/c")}}, {{redirect(302, "d?q")}}, {{redirect(307, "../e#f")}}, {{kHello}}});
  with_client([&](HttpClient& client) -> Coro<void> {
    request.url = url("/a");
    EXPECT_TRUE(co_await send_following_redirects(client, request, response, 3));
    EXPECT_EQ(request.url.path_and_query(), "/e");
    EXPECT_EQ(response.body, "hello");
    EXPECT_EQ(client.connections_opened(), 1u);
  });
}

TEST_F(HttpClientTest, DoesNotFollowRedirectsThatLeadNowhere) {
  const auto expect = [&](const char* location, int most, Errc code) {
    server.add(std::string("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: ") + location + "\r\n\r\n");
    with_client([&](HttpClient& client) -> Coro<void> {
      const auto sent = co_await send_following_redirects(client, request, response, most);
      EXPECT_FALSE(sent) << location;
      if (!sent) EXPECT_EQ(sent.error().code, code) << location << sent.error().message;
    });
  };
  expect("/again", 0, Errc::not_found);
  expect("ftp://127.0.0.1/", 5, Errc::not_found);
  expect("javascript:alert(1)", 5, Errc::not_found);
  expect("http://", 5, Errc::not_found);

  server.add("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n");
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await send_following_redirects(client, request, response, 5));
    EXPECT_EQ(response.status, 302);
  });
}

TEST_F(HttpClientTest, AsksTheGuardAgainAtEveryRedirect) {
  guard = AddressGuard(false);
  guard.permit(*IpAddress::parse("127.0.0.1"));
  server.add("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://169.254.169.254/latest\r\n\r\n");
  with_client([&](HttpClient& client) -> Coro<void> {
    const auto sent = co_await send_following_redirects(client, request, response, 5);
    EXPECT_FALSE(sent);
    if (!sent) EXPECT_EQ(sent.error().code, Errc::refused);
  });
}

// --- TLS

class HttpsClientTest : public HttpClientTest {
 public:
  Certificate certificate;
  HttpsClientTest() {
    server.use_tls(certificate.server);
    request.url = url("/", "secure.test", "https");
  }
  void expect_refused(const char* why) {
    server.add(kHello);
    const Result<void> sent = send();
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code, Errc::tls);
    EXPECT_THAT(sent.error().message, HasSubstr("certificate refused"));
    EXPECT_THAT(sent.error().message, HasSubstr(why));
    EXPECT_TRUE(server.requests().empty());
  }
};

TEST_F(HttpsClientTest, AcceptsACertificateItsAuthoritiesVouchFor) {
  options.extra_ca_file = certificate.path();
  server.add({{{kHello}, Then::keep}, {{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "ag", "ain"}, Then::keep}});
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(response.body, "hello");
    EXPECT_TRUE(co_await client.send(request, response));
    EXPECT_EQ(response.body, "again");
    EXPECT_EQ(client.connections_opened(), 1u);
  });
}

TEST_F(HttpsClientTest, AcceptsACertificateForAnAddress) {
  options.extra_ca_file = certificate.path();
  resolver.addresses = {*IpAddress::parse("127.0.0.1")};
  RawServer elsewhere(world.backend, "127.0.0.2");
  elsewhere.use_tls(certificate.server);
  elsewhere.add(kHello, Then::close);
  request.url = *Url::parse(elsewhere.origin("127.0.0.2", "https"));
  with_client([&](HttpClient& client) -> Coro<void> {
    auto serving = EventLoop::current().create_task(elsewhere.serve());
    EXPECT_TRUE(co_await client.send(request, response));
    client.close_idle();
    co_await elsewhere.all_closed();
    elsewhere.stop();
    co_await std::move(serving);
  });
}

TEST_F(HttpsClientTest, RefusesACertificateNobodyKnows) {
  expect_refused("self-signed: certificate of CN=Argiope test, issued by CN=Argiope test");
}

TEST_F(HttpsClientTest, SaysWhoseIssuerIsUnknown) {
  const Certificate leaf(certificate);
  server.use_tls(const_cast<Certificate&>(leaf).server);
  expect_refused("unknown issuer");
  request.url = url("/", "secure.test", "https");
  expect_refused("certificate of CN=Argiope leaf, issued by CN=Argiope test");
}

TEST_F(HttpsClientTest, RefusesACertificateForAnotherHost) {
  options.extra_ca_file = certificate.path();
  request.url = url("/", "other.test", "https");
  expect_refused("name mismatch: not for other.test but for secure.test: certificate of CN=Argiope test");
  request.url = url("/", "127.0.0.1", "https");
  expect_refused("name mismatch: not for 127.0.0.1 but for secure.test");
}

TEST_F(HttpsClientTest, RefusesAnExpiredCertificate) {
  const Certificate old(true);
  server.use_tls(const_cast<Certificate&>(old).server);
  options.extra_ca_file = old.path();
  expect_refused("expired on 20");
  EXPECT_FALSE(response.connected);
}

TEST_F(HttpsClientTest, SaysWhichFileOfAuthoritiesIsMissing) {
  options.extra_ca_file = "/nowhere/ca.pem";
  const Result<void> sent = send();
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::tls);
  EXPECT_THAT(sent.error().message, HasSubstr("/nowhere/ca.pem"));
}

// --- the client's own certificate

// A server that wants a certificate which `client` has signed.
class WantingServerTest : public HttpsClientTest {
 public:
  Certificate client;
  WantingServerTest() {
    SSL_CTX* const context = certificate.server.native_handle();
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    EXPECT_EQ(SSL_CTX_load_verify_locations(context, client.path().c_str(), nullptr), 1);
    options.extra_ca_file = certificate.path();
    options.client_certificate = {.certificate = client.path(), .key = client.key_path()};
    options.client_certificate_for = {request.url.site_key()};
  }
  // The same key, for who knows the password.
  std::string locked_key() {
    std::unique_ptr<std::FILE, decltype(&std::fclose)> plain(std::fopen(client.key_path().c_str(), "r"), std::fclose);
    std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(PEM_read_PrivateKey(plain.get(), nullptr, nullptr, nullptr),
                                                            EVP_PKEY_free);
    const std::string path = write_file("");
    std::unique_ptr<std::FILE, decltype(&std::fclose)> locked(std::fopen(path.c_str(), "w"), std::fclose);
    const unsigned char password[] = "open sesame";
    PEM_write_PrivateKey(locked.get(), key.get(), EVP_aes_128_cbc(), password, 11, nullptr, nullptr);
    return path;
  }
  std::string write_file(std::string_view text) {
    std::string path = ::testing::TempDir() + "argiope-client-XXXXXX";
    std::FILE* file = ::fdopen(::mkstemp(path.data()), "w");
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
    files_.push_back(path);
    return path;
  }
  ~WantingServerTest() override {
    for (const std::string& file : files_) std::remove(file.c_str());
  }

 private:
  std::vector<std::string> files_;
};

TEST_F(WantingServerTest, GetsTheCertificateOfAClientThatHasOne) {
  request.is_anonymous = true;
  const auto refused = send();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::refused);
  request.is_anonymous = false;
  server.add(kHello);
  const auto sent = send();
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_EQ(response.body, "hello");
}

TEST_F(WantingServerTest, GetsItFromAKeyWithAPassword) {
  options.client_certificate.key = locked_key();
  options.client_certificate.password_file = write_file("open sesame\r\nand more\n");
  EXPECT_TRUE(check(options.client_certificate));
  server.add(kHello);
  EXPECT_TRUE(send());
}

TEST_F(WantingServerTest, IsNotShownItWhereItIsNotForTheSite) {
  options.client_certificate_for = {"https://secure.test"};  // another port
  server.add(kHello);
  const auto sent = send();
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::tls);
  EXPECT_THAT(sent.error().message, HasSubstr("certificate required"));
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(WantingServerTest, MakesNoConnectionWithFilesThatAreNone) {
  const auto trouble = [&](ClientCertificate files) {
    const auto checked = check(files);
    EXPECT_FALSE(checked);
    if (checked) return std::string();
    EXPECT_EQ(checked.error().code, Errc::invalid_input);
    options.client_certificate = files;
    const auto sent = send();
    EXPECT_FALSE(sent);
    if (!sent) EXPECT_THAT(sent.error().message, HasSubstr(checked.error().message));
    return checked.error().message;
  };
  EXPECT_THAT(trouble({.certificate = "/nowhere.pem"}),
              HasSubstr("\"/nowhere.pem\": is no certificate in PEM (No such file or directory)"));
  EXPECT_THAT(trouble({.certificate = client.path()}), HasSubstr("has no private key in PEM"));
  EXPECT_THAT(trouble({.certificate = client.path(), .key = certificate.key_path()}),
              HasSubstr("that goes with the certificate (key values mismatch)"));
  const std::string locked = locked_key();
  EXPECT_THAT(trouble({.certificate = client.path(), .key = locked}), HasSubstr("needs a password"));
  EXPECT_THAT(trouble({.certificate = client.path(), .key = locked, .password_file = write_file("open barley\n")}),
              HasSubstr("needs another password"));
  EXPECT_THAT(trouble({.certificate = client.path(), .key = locked, .password_file = write_file("")}),
              HasSubstr("no password can be read"));
}

TEST_F(HttpsClientTest, GivesUpAHandshakeThatNobodyAnswers) {
  RawServer plain(world.backend);
  plain.add("", Then::silent);
  request.url = *Url::parse(plain.origin("127.0.0.1", "https"));
  request.timeout = 50ms;
  with_client([&](HttpClient& client) -> Coro<void> {
    auto serving = EventLoop::current().create_task(plain.serve());
    const auto sent = co_await client.send(request, response);
    EXPECT_FALSE(sent);
    if (!sent) EXPECT_EQ(sent.error().code, Errc::timeout);
    co_await plain.all_closed();
    plain.stop();
    co_await std::move(serving);
  });
}

TEST_F(HttpsClientTest, GivesUpAnExchangeThatIsNotFinished) {
  options.extra_ca_file = certificate.path();
  request.timeout = 50ms;
  server.add("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal", Then::silent);
  EXPECT_EQ(error_of_send(), Errc::timeout);
}

}  // namespace
}  // namespace argiope
