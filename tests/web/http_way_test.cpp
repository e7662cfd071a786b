// Requests with a way of their own among those of one client: other proxies, no proof of who the server is, less
// patience.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "support/certificate.hpp"
#include "support/http_client_fixture.hpp"
#include "support/tunnel_proxy.hpp"

namespace argiope {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::shared_ptr<const HttpWay> way_by(const std::string& proxy, bool verifies = true) {
  return std::make_shared<const HttpWay>(HttpWay{.proxy = *Proxy::parse(proxy), .verifies = verifies});
}
std::shared_ptr<const HttpWay> way_of_trust() { return std::make_shared<const HttpWay>(HttpWay{.verifies = false}); }
std::shared_ptr<const HttpWay> way_without_proxy() {
  return std::make_shared<const HttpWay>(HttpWay{.is_direct = true});
}

class HttpWayTest : public HttpClientTest {
 public:
  Coro<Result<void>> send_by(HttpClient& client, std::shared_ptr<const HttpWay> way) {
    request.way = std::move(way);
    return client.send(request, response);
  }
  void use(const std::string& proxy) { options.proxies.for_http = options.proxies.for_https = {*Proxy::parse(proxy)}; }
};

TEST_F(HttpWayTest, AsksItsOwnProxyInsteadOfTheClients) {
  use("http://127.0.0.1:1");
  request.url = *Url::parse("http://a.test/x");
  request.way = way_by(server.origin());
  server.add(kHello);
  const auto sent = send();
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_THAT(server.requests().at(0), StartsWith("GET http://a.test/x HTTP/1.1\r\n"));
}

TEST_F(HttpWayTest, AsksNoProxyWhereItSaysNone) {
  use("http://127.0.0.1:1");
  request.url = url("/x", "a.test");
  request.way = way_without_proxy();
  server.add(kHello);
  const auto sent = send();
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_THAT(server.requests().at(0), StartsWith("GET /x HTTP/1.1\r\n"));
}

TEST_F(HttpWayTest, SharesConnectionsOnlyWithTheSameWay) {
  const std::string at = "127.0.0.1:" + std::to_string(server.port());
  use("http://" + at);
  request.url = *Url::parse("http://a.test/");
  for (int i = 0; i < 4; ++i) server.add({{{kHello}}, {{kHello}}});
  with_client([&](HttpClient& client) -> Coro<void> {
    for (int i = 0; i < 2; ++i) {
      for (const auto& way : {std::shared_ptr<const HttpWay>(), way_by("http://" + at), way_by("http://ann:one@" + at),
                              way_by("http://ann:two@" + at)}) {
        const auto sent = co_await send_by(client, way);
        EXPECT_TRUE(sent) << sent.error().message;
      }
    }
    EXPECT_EQ(client.connections_opened(), 4u);
  });
  ASSERT_EQ(server.requests().size(), 8u);
  for (const std::size_t i : {0u, 1u, 4u, 5u}) EXPECT_THAT(server.requests()[i], Not(HasSubstr("Proxy-Authorization")));
  for (const std::size_t i : {2u, 6u})
    EXPECT_THAT(server.requests()[i], HasSubstr("Proxy-Authorization: Basic YW5uOm9uZQ==\r\n"));
  for (const std::size_t i : {3u, 7u})
    EXPECT_THAT(server.requests()[i], HasSubstr("Proxy-Authorization: Basic YW5uOnR3bw==\r\n"));
}

TEST_F(HttpWayTest, HasNoOtherProxyToTry) {
  use("http://127.0.0.1:1");
  request.url = *Url::parse("http://a.test/");
  request.way = way_by("http://ann:secret@" + server.origin().substr(7));
  server.add("HTTP/1.1 407 Who?\r\nContent-Length: 0\r\n\r\n");
  const auto refused = send();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("(407)"), Not(HasSubstr("secret"))));
  EXPECT_FALSE(response.connected);
  EXPECT_EQ(server.requests().size(), 1u);

  request.way = way_by("socks5://ann:secret@127.0.0.1:1");
  const auto unreached = send();
  ASSERT_FALSE(unreached);
  EXPECT_THAT(unreached.error().message,
              AllOf(StartsWith("proxy socks5://127.0.0.1:1: connect"), Not(HasSubstr("secret"))));
}

// A client's own proxies are its user's to name; those of requests are anybody's.
TEST_F(HttpWayTest, ItsProxyIsNoWayToPrivateAddresses) {
  guard = AddressGuard(false);
  for (const char* scheme : {"http", "https", "socks5", "socks5h"}) {
    for (const char* host : {"127.0.0.1", "by.name.test"}) {
      for (const char* url : {"http://93.184.216.34/", "https://93.184.216.34/"}) {
        request.url = *Url::parse(url);
        request.way = way_by(server.origin("ann:secret@" + std::string(host), scheme));
        const auto sent = send();
        ASSERT_FALSE(sent) << scheme << host << url;
        EXPECT_EQ(sent.error().code, Errc::refused);
        EXPECT_THAT(sent.error().message,
                    AllOf(StartsWith("proxy: "), HasSubstr("127.0.0.1"), Not(HasSubstr("secret"))));
        EXPECT_FALSE(response.connected);
      }
    }
  }
  EXPECT_EQ(server.connections(), 0u);

  guard.permit(*IpAddress::parse("127.0.0.1"));
  server.add(kHello);
  request.url = *Url::parse("http://a.test/");
  request.way = way_by(server.origin());
  EXPECT_TRUE(send());
  request.url = *Url::parse("http://intranet/");
  EXPECT_EQ(error_of_send(), Errc::refused) << "nor what the proxy would look up there";
}

TEST_F(HttpWayTest, AddressesOfServersAreCheckedWhereNoProxyIsAsked) {
  guard = AddressGuard(false);
  use(server.origin());
  request.url = *Url::parse("http://by.name.test/");
  request.way = way_without_proxy();
  EXPECT_EQ(error_of_send(), Errc::refused);
  EXPECT_EQ(server.connections(), 0u);
}

TEST_F(HttpWayTest, WaitsForAConnectionAsLongAsItSays) {
  Certificate certificate;
  RawServer silent(world.backend);  // accepts, and never answers the handshake
  silent.add("", RawServer::Then::silent);
  request.url = *Url::parse(silent.origin("secure.test", "https") + "/");
  request.way = std::make_shared<const HttpWay>(HttpWay{.connect_timeout = std::chrono::milliseconds{50}});
  with_client([&](HttpClient& client) -> Coro<void> {
    auto serving = EventLoop::current().create_task(silent.serve());
    const auto sent = co_await client.send(request, response);
    EXPECT_FALSE(sent);
    if (!sent) {
      EXPECT_EQ(sent.error().code, Errc::timeout);
      EXPECT_THAT(sent.error().message, HasSubstr("no answer within 0.05 s"));
    }
    co_await silent.all_closed();
    silent.stop();
    co_await std::move(serving);
  });
}

TEST(HttpWay, MayBeHeardByAProxyOfItsOwnOrWhoeverAnswers) {
  const Url plain = *Url::parse("http://a.test/"), secure = *Url::parse("https://a.test/");
  EXPECT_FALSE(HttpWay{}.may_be_heard(plain) || HttpWay{}.may_be_heard(secure));
  EXPECT_TRUE(way_by("http://p.test:1")->may_be_heard(plain));
  EXPECT_FALSE(way_by("http://p.test:1")->may_be_heard(secure)) << "it is a tunnel";
  EXPECT_TRUE(way_of_trust()->may_be_heard(secure));
  EXPECT_FALSE(way_of_trust()->may_be_heard(plain)) << "no more than ever";
}

// --- without a certificate that is good

class TrustingWayTest : public HttpWayTest {
 public:
  Certificate certificate;
  TrustingWayTest() {
    server.use_tls(certificate.server);
    request.url = url("/", "secure.test", "https");
  }
};

TEST_F(TrustingWayTest, TakesWhoeverAnswers) {
  const Certificate old(true);
  for (const bool is_old : {false, true}) {
    if (is_old) server.use_tls(const_cast<Certificate&>(old).server);
    for (const char* host : {"secure.test", "other.test", "127.0.0.1"}) {
      request.url = url("/", host, "https");
      request.way = way_of_trust();
      server.add(kHello);
      const auto sent = send();
      ASSERT_TRUE(sent) << host << ": " << sent.error().message;
      EXPECT_EQ(response.body, "hello");
      request.way = nullptr;
      server.add(kHello);
      EXPECT_EQ(error_of_send(), Errc::tls);
    }
  }
}

TEST_F(TrustingWayTest, NoConnectionOfItsIsUsedWhereTheServerHasToProveItself) {
  server.add({{{kHello}}, {{kHello}}, {{kHello}}});
  server.add(kHello);  // nothing is asked there: the certificate is refused
  with_client([&](HttpClient& client) -> Coro<void> {
    EXPECT_TRUE(co_await send_by(client, way_of_trust()));
    EXPECT_EQ(client.idle_connections(), 1u);
    const auto verified = co_await send_by(client, nullptr);
    EXPECT_FALSE(verified);
    if (!verified) EXPECT_THAT(verified.error().message, HasSubstr("certificate refused"));
    EXPECT_TRUE(co_await send_by(client, way_of_trust()));
    EXPECT_EQ(client.connections_opened(), 1u) << "those of its kind share it";
  });
  EXPECT_EQ(server.connections(), 2u);
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST_F(TrustingWayTest, TwoRequestsToOneHostShareNoConnectionWhereOneVerifies) {
  options.extra_ca_file = certificate.path();
  for (int i = 0; i < 4; ++i) server.add({{{kHello}}, {{kHello}}});
  const auto trusting_without_proxy = std::make_shared<const HttpWay>(HttpWay{.is_direct = true, .verifies = false});
  with_client([&](HttpClient& client) -> Coro<void> {
    for (int i = 0; i < 2; ++i) {
      for (const auto& way :
           {std::shared_ptr<const HttpWay>(), way_of_trust(), way_without_proxy(), trusting_without_proxy}) {
        EXPECT_TRUE(co_await send_by(client, way));
      }
    }
    EXPECT_EQ(client.connections_opened(), 4u);
  });
}

TEST_F(TrustingWayTest, TrustsNoProxyForThat) {
  TunnelProxy tunnel(world.backend);
  tunnel.target = server.port();
  tunnel.use_tls(certificate.server);
  request.way = way_by("https://secure.test:" + std::to_string(tunnel.port()), false);
  with_client([&](HttpClient& client) -> Coro<void> {
    auto proxying = EventLoop::current().create_task(tunnel.serve());
    const auto sent = co_await client.send(request, response);
    EXPECT_FALSE(sent);
    if (!sent)
      EXPECT_THAT(sent.error().message,
                  AllOf(HasSubstr("proxy https://secure.test:"), HasSubstr("certificate refused")));
    proxying.cancel();
  });
  tunnel.stop();
  settle();
  EXPECT_TRUE(tunnel.asked.empty());
}

TEST_F(TrustingWayTest, GoesThroughATunnelOfItsOwnProxy) {
  TunnelProxy tunnel(world.backend);
  tunnel.target = server.port();
  request.url = *Url::parse("https://other.test/page");
  server.add(kHello);
  server.add(kHello);
  with_client([&](HttpClient& client) -> Coro<void> {
    auto proxying = EventLoop::current().create_task(tunnel.serve());
    const auto verified = co_await send_by(client, way_by(tunnel.url("http", "ann:secret")));
    EXPECT_FALSE(verified);
    if (!verified)
      EXPECT_THAT(verified.error().message, AllOf(HasSubstr("certificate refused"), Not(HasSubstr("secret"))));
    const auto sent = co_await send_by(client, way_by(tunnel.url("http", "ann:secret"), false));
    EXPECT_TRUE(sent) << sent.error().message;
    proxying.cancel();
    client.close_idle();
  });
  tunnel.stop();
  settle();
  EXPECT_THAT(tunnel.asked, ElementsAre("other.test:443", "other.test:443"));
  EXPECT_THAT(tunnel.heads.at(1), HasSubstr("Proxy-Authorization: Basic YW5uOnNlY3JldA==\r\n"));
  EXPECT_THAT(server.requests().at(0), Not(HasSubstr("Proxy-Authorization")));
}

TEST_F(TrustingWayTest, ShowsNoCertificateOfOursToWhoeverAnswers) {
  const Certificate own;
  SSL_CTX* const context = certificate.server.native_handle();
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  ASSERT_EQ(SSL_CTX_load_verify_locations(context, own.path().c_str(), nullptr), 1);
  options.extra_ca_file = certificate.path();
  options.client_certificate = {.certificate = own.path(), .key = own.key_path()};
  options.client_certificate_for = {request.url.site_key()};
  server.add(kHello);
  EXPECT_TRUE(send());
  request.way = way_of_trust();
  server.add(kHello);
  const auto sent = send();
  ASSERT_FALSE(sent);
  EXPECT_THAT(sent.error().message, HasSubstr("certificate required"));
}

}  // namespace
}  // namespace argiope
