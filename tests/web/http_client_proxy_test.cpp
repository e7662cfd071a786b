// The HTTP client by proxies: HTTP, HTTPS and SOCKS5, on loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/certificate.hpp"
#include "support/http_client_fixture.hpp"
#include "support/tunnel_proxy.hpp"

namespace argiope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Then = RawServer::Then;

// `server` is the server, or the proxy that is asked for whole URLs.
class ProxiedClientTest : public HttpClientTest {
 public:
  TunnelProxy tunnel{world.backend};

  ProxiedClientTest() { tunnel.target = server.port(); }
  ~ProxiedClientTest() override {
    tunnel.stop();
    settle();
  }

  void use(std::initializer_list<std::string> proxies) {
    options.proxies.for_http.clear();
    for (const std::string& proxy : proxies) options.proxies.for_http.push_back(*Proxy::parse(proxy));
    options.proxies.for_https = options.proxies.for_http;
  }
  void use_server() { use({server.origin()}); }

  // One request, with the tunnel there too.
  Result<void> send_by_tunnel() {
    Result<void> result;
    with_client([&](HttpClient& client) -> Coro<void> {
      auto serving = EventLoop::current().create_task(tunnel.serve());
      result = co_await client.send(request, response);
      serving.cancel();
      client.close_idle();
    });
    return result;
  }
  std::string trouble() {
    const Result<void> sent = send_by_tunnel();
    EXPECT_FALSE(sent.has_value());
    return sent ? "" : sent.error().message;
  }
};

// --- HTTP, for http URLs

TEST_F(ProxiedClientTest, AsksAnHttpProxyForWholeUrlsOverOneConnection) {
  use({server.origin("127.0.0.1")});
  options.proxies.for_http[0].username = "ann";
  options.proxies.for_http[0].password = "secret";
  server.add({{{kHello}}, {{kHello}}});
  with_client([&](HttpClient& client) -> Coro<void> {
    for (const char* url : {"http://a.test/x?y#z", "http://b.test:81/"}) {
      request.url = *Url::parse(url);
      EXPECT_TRUE(co_await client.send(request, response));
      EXPECT_EQ(response.body, "hello");
    }
    EXPECT_EQ(client.connections_opened(), 1u);
  });
  EXPECT_THAT(
      server.requests().at(0),
      StartsWith("GET http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Basic YW5uOnNlY3JldA==\r\n"));
  EXPECT_THAT(server.requests().at(1), StartsWith("GET http://b.test:81/ HTTP/1.1\r\nHost: b.test:81\r\n"));
  EXPECT_THAT(resolver.questions, ElementsAre("127.0.0.1")) << "the proxy looks names up";
}

TEST_F(ProxiedClientTest, AsksThoseDirectlyThatAreToBe) {
  use({"http://127.0.0.1:1"});
  options.proxies.direct = *DirectHosts::parse("direct.test");
  request.url = url("/", "direct.test");
  server.add(kHello);
  EXPECT_TRUE(send());
  EXPECT_THAT(server.requests().at(0), StartsWith("GET / HTTP/1.1\r\n"));
}

TEST_F(ProxiedClientTest, SpeaksTlsWithAProxyThatWantsIt) {
  Certificate certificate;
  server.use_tls(certificate.server);
  options.extra_ca_file = certificate.path();
  use({server.origin("secure.test", "https")});
  request.url = *Url::parse("http://a.test/");
  server.add(kHello);
  const auto sent = send();
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_THAT(server.requests().at(0), StartsWith("GET http://a.test/ HTTP/1.1\r\n"));
}

TEST_F(ProxiedClientTest, DoesNotTrustAProxyWhoseCertificateIsNotGood) {
  Certificate certificate;
  server.use_tls(certificate.server);
  use({server.origin("secure.test", "https")});
  request.url = *Url::parse("http://a.test/");
  server.add(kHello);
  const auto sent = send();
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::tls);
  EXPECT_THAT(sent.error().message, HasSubstr("proxy https://secure.test:"));
  EXPECT_THAT(sent.error().message, HasSubstr("certificate refused: self-signed"));
}

TEST_F(ProxiedClientTest, SaysThatAProxyWantsALogin) {
  use_server();
  request.url = *Url::parse("http://a.test/");
  server.add("HTTP/1.1 407 Who?\r\nContent-Length: 0\r\n\r\n");
  const auto sent = send();
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::refused);
  EXPECT_THAT(sent.error().message, HasSubstr("wants a name and a password (407); give them as"));
  EXPECT_FALSE(response.connected) << "no trouble of the URL's";
}

TEST_F(ProxiedClientTest, GoesOnWithAnotherProxyWhenOneFailsAndKeepsTo) {
  RawServer other(world.backend);
  use({"http://127.0.0.1:1", other.origin(), server.origin()});
  request.url = *Url::parse("http://a.test/");
  other.add("HTTP/1.1 407 Who?\r\nContent-Length: 0\r\n\r\n");
  server.add({{{kHello}}, {{kHello}}});
  with_client([&](HttpClient& client) -> Coro<void> {
    auto serving = EventLoop::current().create_task(other.serve());
    for (int i = 0; i < 2; ++i) {
      const auto sent = co_await client.send(request, response);
      EXPECT_TRUE(sent) << sent.error().message;
      EXPECT_EQ(response.status, 200);
    }
    serving.cancel();
  });
  EXPECT_EQ(other.requests().size(), 1u);
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST_F(ProxiedClientTest, NamesTheProxyThatCannotBeReached) {
  use({"http://127.0.0.1:1"});
  request.url = *Url::parse("http://a.test/");
  EXPECT_THAT(trouble(), StartsWith("proxy http://127.0.0.1:1: connect 127.0.0.1 (127.0.0.1 port 1): "));
  resolver.addresses.clear();
  use({"http://proxy.test:1"});
  EXPECT_THAT(trouble(), StartsWith("proxy http://proxy.test:1: "));
}

TEST_F(ProxiedClientTest, MayConnectToAProxyWithAPrivateAddressAndAsksItForNoPrivateName) {
  guard = AddressGuard(false);
  use_server();
  server.add({{{kHello}}, {{kHello}}});
  with_client([&](HttpClient& client) -> Coro<void> {
    request.url = *Url::parse("http://public.test/");
    EXPECT_TRUE(co_await client.send(request, response));
    // On the connection that is kept, too.
    for (const char* private_url :
         {"http://169.254.169.254/latest", "http://localhost/", "http://intranet/", "http://[::1]/"}) {
      request.url = *Url::parse(private_url);
      const auto sent = co_await client.send(request, response);
      EXPECT_FALSE(sent) << private_url;
      if (!sent) EXPECT_EQ(sent.error().code, Errc::refused);
    }
  });
  EXPECT_EQ(server.requests().size(), 1u);
}

// --- CONNECT, for https URLs

class TunnelledClientTest : public ProxiedClientTest {
 public:
  Certificate certificate;
  TunnelledClientTest() {
    server.use_tls(certificate.server);
    options.extra_ca_file = certificate.path();
    request.url = *Url::parse("https://secure.test/page");
  }
};

TEST_F(TunnelledClientTest, SpeaksTlsWithTheServerThroughAnHttpProxy) {
  use({tunnel.url("http", "ann:secret")});
  options.user_agent = "spider/1";
  server.add(kHello);
  const auto sent = send_by_tunnel();
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_EQ(response.body, "hello");
  EXPECT_THAT(tunnel.heads,
              ElementsAre("CONNECT secure.test:443 HTTP/1.1\r\nHost: secure.test:443\r\nProxy-Authorization: "
                          "Basic YW5uOnNlY3JldA==\r\nUser-Agent: spider/1\r\n\r\n"));
  EXPECT_THAT(server.requests().at(0), StartsWith("GET /page HTTP/1.1\r\n"));
  EXPECT_THAT(server.requests().at(0), Not(HasSubstr("Proxy-Authorization")));
}

TEST_F(TunnelledClientTest, SpeaksTlsWithinTlsThroughAnHttpsProxy) {
  tunnel.use_tls(certificate.server);
  use({"https://secure.test:" + std::to_string(tunnel.port())});
  server.add({{{"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + std::string(300'000, 'x')}}});
  const auto sent = send_by_tunnel();
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_EQ(response.body, std::string(300'000, 'x'));
  EXPECT_THAT(tunnel.asked, ElementsAre("secure.test:443"));
}

TEST_F(TunnelledClientTest, TakesTheServersCertificateAndNotTheProxysWord) {
  use({tunnel.url("http")});
  request.url = *Url::parse("https://other.test/");
  server.add(kHello);
  EXPECT_THAT(trouble(), HasSubstr("name mismatch: not for other.test but for secure.test"));
}

TEST_F(TunnelledClientTest, KeepsATunnelForItsSiteAlone) {
  use({tunnel.url("http")});
  server.add({{{kHello}}, {{kHello}}});
  server.add({{{kHello}}});
  with_client([&](HttpClient& client) -> Coro<void> {
    auto serving = EventLoop::current().create_task(tunnel.serve());
    for (const char* url : {"https://secure.test/1", "https://secure.test/2", "https://secure.test:444/"}) {
      request.url = *Url::parse(url);
      const auto sent = co_await client.send(request, response);
      EXPECT_TRUE(sent) << sent.error().message;
    }
    EXPECT_EQ(client.connections_opened(), 2u);
    serving.cancel();
    client.close_idle();
  });
  EXPECT_THAT(tunnel.asked, ElementsAre("secure.test:443", "secure.test:444"));
}

TEST_F(TunnelledClientTest, TellsTheProxysTroubleFromTheServers) {
  use({tunnel.url("http"), tunnel.url("http", "ann:secret")});
  tunnel.refusal = "HTTP/1.1 502 Nobody there\r\nContent-Length: 4\r\n\r\noops";
  EXPECT_THAT(trouble(), HasSubstr("HTTP 502 instead of a connection"));
  EXPECT_EQ(tunnel.asked.size(), 1u) << "another proxy would not reach the server either";
  tunnel.refusal = "HTTP/1.1 407 Who?\r\n\r\n";
  EXPECT_THAT(trouble(), HasSubstr("(407)"));
  EXPECT_EQ(tunnel.asked.size(), 3u);
  tunnel.closes_at_once = true;
  EXPECT_THAT(trouble(), HasSubstr("proxy http://127.0.0.1:"));
}

TEST_F(TunnelledClientTest, GivesUpAProxyThatDoesNotAnswer) {
  use_server();
  server.add("", Then::silent);
  RawServer plain(world.backend);
  plain.add("", Then::silent);
  use({plain.origin()});
  options.connect_timeout = 1h;
  request.timeout = 2h;
  with_client([&](HttpClient& client) -> Coro<void> {
    auto serving = EventLoop::current().create_task(plain.serve());
    auto sending = EventLoop::current().create_task(client.send(request, response));
    co_await plain.received(1);
    world.clock.ahead += 1h;
    const auto sent = co_await std::move(sending);
    EXPECT_FALSE(sent);
    if (!sent) {
      EXPECT_EQ(sent.error().code, Errc::timeout);
      EXPECT_THAT(sent.error().message, HasSubstr("no answer within 3600 s"));
    }
    co_await plain.all_closed();
    plain.stop();
    co_await std::move(serving);
  });
}

TEST_F(TunnelledClientTest, StopsAtOnceWhenCancelledWhileTheProxyThinks) {
  RawServer plain(world.backend);
  plain.add("", Then::silent);
  use({plain.origin()});
  with_client([&](HttpClient& client) -> Coro<void> {
    auto serving = EventLoop::current().create_task(plain.serve());
    auto sending = EventLoop::current().create_task(client.send(request, response));
    co_await plain.received(1);
    sending.cancel();
    bool cancelled = false;
    try {
      co_await std::move(sending);
    } catch (const CancelledError&) {
      cancelled = true;
    }
    EXPECT_TRUE(cancelled);
    co_await plain.all_closed();
    plain.stop();
    co_await std::move(serving);
  });
}

// --- SOCKS5

TEST_F(ProxiedClientTest, HasSocks5hLookNamesUp) {
  use({tunnel.url("socks5h")});
  request.url = *Url::parse("http://a.test:81/");
  server.add(kHello);
  const auto sent = send_by_tunnel();
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_THAT(tunnel.asked, ElementsAre("a.test:81"));
  EXPECT_THAT(server.requests().at(0), StartsWith("GET / HTTP/1.1\r\nHost: a.test:81\r\n"));
  EXPECT_THAT(resolver.questions, ElementsAre("127.0.0.1"));
}

TEST_F(ProxiedClientTest, LooksNamesUpItselfForSocks5AndChecksWhatItFinds) {
  guard = AddressGuard(false);
  use({tunnel.url("socks5")});
  request.url = *Url::parse("http://a.test/");
  resolver.addresses = {*IpAddress::parse("10.0.0.1"), *IpAddress::parse("9.9.9.9"), *IpAddress::parse("2606:4700::1")};
  server.add(kHello);
  const auto sent = send_by_tunnel();
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_THAT(tunnel.asked, ElementsAre("9.9.9.9:80 as address"));
  EXPECT_EQ(response.remote.to_string(), "9.9.9.9");
  resolver.addresses = {*IpAddress::parse("10.0.0.1")};
  EXPECT_THAT(trouble(), HasSubstr("10.0.0.1 is a private address"));
  EXPECT_EQ(tunnel.asked.size(), 1u);
}

TEST_F(ProxiedClientTest, TriesTheNextAddressBySocks5WhenOneIsOutOfReach) {
  use({tunnel.url("socks5")});
  request.url = *Url::parse("http://a.test/");
  resolver.addresses = {*IpAddress::parse("9.9.9.9"), *IpAddress::parse("2606:4700::1")};
  tunnel.refusal = std::string("\5\4\0\1\0\0\0\0\0\0", 10);
  EXPECT_THAT(trouble(), HasSubstr("cannot reach that host"));
  EXPECT_THAT(tunnel.asked, ElementsAre("9.9.9.9:80 as address", "2606:4700::1:80 as address"));
}

TEST_F(ProxiedClientTest, LogsInToSocks5) {
  tunnel.login = "ann:secret";
  use({tunnel.url("socks5h", "ann:secret")});
  request.url = *Url::parse("http://a.test/");
  server.add(kHello);
  EXPECT_TRUE(send_by_tunnel());
  use({tunnel.url("socks5h", "ann:wrong")});
  EXPECT_THAT(trouble(), HasSubstr("refuses the name and the password"));
  use({tunnel.url("socks5h")});
  EXPECT_THAT(trouble(), HasSubstr("wants a name and a password; give them as"));
}

TEST_F(TunnelledClientTest, SpeaksTlsThroughSocks5) {
  use({tunnel.url("socks5h")});
  server.add(kHello);
  const auto sent = send_by_tunnel();
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_THAT(tunnel.asked, ElementsAre("secure.test:443"));
  EXPECT_EQ(response.body, "hello");
}

}  // namespace
}  // namespace argiope
