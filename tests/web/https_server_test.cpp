// HttpServer with TLS: who is served, who is told why not, and that a connection costs no more than it may.
#include <gmock/gmock.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <fstream>
#include <thread>

#include "argiope/async/asio_backend.hpp"
#include "argiope/web/detail/tls.hpp"
#include "async/internal/stream_layer.hpp"
#include "support/certificate.hpp"
#include "support/http_server_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace argiope {
namespace {

namespace ssl = boost::asio::ssl;
using boost::asio::ip::tcp;
using boost::system::error_code;
using ::testing::HasSubstr;

// A client of OpenSSL's, as told.
class TlsClient {
 public:
  explicit TlsClient(AsioBackend& backend) : socket_(backend.context()) {
    socket_.open(tcp::v4());
    context.set_verify_mode(ssl::verify_peer);
  }
  void trust(const Certificate& certificate) { context.load_verify_file(certificate.path()); }

  Coro<error_code> connect(std::uint16_t port) {
    const tcp::endpoint server(boost::asio::ip::address_v4::loopback(), port);
    co_await asio_op<>([&](auto handler) { socket_.async_connect(server, std::move(handler)); },
                       [&] { socket_.cancel(); });
    stream_.emplace(socket_, context);
    co_return co_await asio_op<>(
        [&](auto handler) { stream_->async_handshake(ssl::stream_base::client, std::move(handler)); },
        [&] { socket_.cancel(); });
  }
  Coro<void> write(std::string bytes) {
    (void)co_await asio_op<std::size_t>(
        [&](auto handler) { boost::asio::async_write(*stream_, boost::asio::buffer(bytes), std::move(handler)); },
        [&] { socket_.cancel(); });
  }
  // All that comes, and how it ended.
  Coro<std::pair<std::string, error_code>> read_rest() {
    std::string all;
    std::string some(64 * 1024, '\0');
    for (;;) {
      const auto [ec, count] = co_await asio_op<std::size_t>(
          [&](auto handler) { stream_->async_read_some(boost::asio::buffer(some), std::move(handler)); },
          [&] { socket_.cancel(); });
      all.append(some, 0, count);
      if (ec) co_return std::pair(std::move(all), ec);
    }
  }
  void leave() {
    error_code ignored;
    socket_.close(ignored);
  }
  SSL* handle() { return stream_->native_handle(); }

  ssl::context context{ssl::context::tls_client};

 private:
  tcp::socket socket_;
  std::optional<ssl::stream<tcp::socket&>> stream_;
};

class HttpsServerTest : public HttpServerTest {
 public:
  HttpsServerTest() { options.tls = identity; }
  TlsFiles files() const { return {.certificate = certificate.path(), .key = certificate.key_path()}; }

  Certificate certificate;
  std::shared_ptr<TlsIdentity> identity = value_or_throw(TlsIdentity::load(files()));
  TlsClient client{world.backend};
};

TEST_F(HttpsServerTest, AnswersWhoTrustsItsCertificate) {
  bool was_secure = false;
  const auto answer_securely = [&](ServerRequest& request) -> Coro<ServerResponse> {
    was_secure = request.secure;
    co_return ServerResponse::text(200, request.body);
  };
  with_server(
      [&](HttpServer&) -> Coro<void> {
        client.trust(certificate);
        EXPECT_FALSE(co_await client.connect(port));
        co_await client.write(post("/a", "first") + post("/b", std::string(200'000, 'x'), "Connection: close\r\n"));
        const auto [text, end] = co_await client.read_rest();
        EXPECT_THAT(text, HasSubstr("\r\n\r\nfirstHTTP/1.1 200 OK"));
        EXPECT_TRUE(text.ends_with("\r\n\r\n" + std::string(200'000, 'x')));
        EXPECT_EQ(end, boost::asio::error::eof) << "the end is told, and no cut: " << end.message();
      },
      answer_securely);
  EXPECT_TRUE(was_secure);
}

TEST_F(HttpsServerTest, IsRefusedByWhoDoesNotTrustIt) {
  with_server([&](HttpServer& server) -> Coro<void> {
    EXPECT_TRUE(co_await client.connect(port));
    co_await until([&] { return server.connections() == 0; });
  });
}

TEST_F(HttpsServerTest, SpeaksTls12AndLaterAndNothingOlder) {
  with_server([&](HttpServer&) -> Coro<void> {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      TlsClient one(world.backend);
      one.trust(certificate);
      SSL_CTX_set_min_proto_version(one.context.native_handle(), version);
      SSL_CTX_set_max_proto_version(one.context.native_handle(), version);
      EXPECT_FALSE(co_await one.connect(port)) << version;
      EXPECT_EQ(SSL_version(one.handle()), version);
    }
    TlsClient old(world.backend);
    old.trust(certificate);
    SSL_CTX_set_security_level(old.context.native_handle(), 0);
    SSL_CTX_set_min_proto_version(old.context.native_handle(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(old.context.native_handle(), TLS1_1_VERSION);
    EXPECT_TRUE(co_await old.connect(port));
  });
}

TEST_F(HttpsServerTest, ChoosesHttp11WhereTheClientAsksWhatIsSpoken) {
  with_server([&](HttpServer&) -> Coro<void> {
    constexpr std::string_view kBoth = "\x02h2\x08http/1.1";
    client.trust(certificate);
    SSL_CTX_set_alpn_protos(client.context.native_handle(), reinterpret_cast<const unsigned char*>(kBoth.data()),
                            kBoth.size());
    EXPECT_FALSE(co_await client.connect(port));
    const unsigned char* chosen = nullptr;
    unsigned int size = 0;
    SSL_get0_alpn_selected(client.handle(), &chosen, &size);
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(chosen), size), "http/1.1");

    TlsClient other(world.backend);
    other.trust(certificate);
    SSL_CTX_set_alpn_protos(other.context.native_handle(), reinterpret_cast<const unsigned char*>("\x02h2"), 3);
    EXPECT_TRUE(co_await other.connect(port));
  });
}

TEST_F(HttpsServerTest, TellsWhoSpeaksPlainHttpThatItSpeaksHttps) {
  const std::string answer = ask(get("/"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 Bad Request\r\n")) << answer;
  EXPECT_THAT(answer, HasSubstr("this port speaks HTTPS"));
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  EXPECT_TRUE(begun.empty());
}

TEST_F(HttpsServerTest, BreaksOffWhatIsNoTlsAtAll) {
  with_server([&](HttpServer& server) -> Coro<void> {
    for (const std::string_view bytes :
         {std::string_view("\x00\x00\x00", 3), std::string_view("\x16\x03\x01\xff\xff\x01", 6),
          std::string_view("\x80\x2e\x01\x00\x02", 5)}) {
      Stream stream = co_await connect();
      stream.write(std::string(bytes) + std::string(100'000, '\xff'));
      EXPECT_EQ((co_await read_rest(stream)).find("HTTP"), std::string::npos);
    }
    co_await until([&] { return server.connections() == 0; });
  });
  EXPECT_TRUE(reports.lines().empty());
}

TEST_F(HttpsServerTest, RefusesAHandshakeInTheMiddleOfAConnection) {
  with_server([&](HttpServer& server) -> Coro<void> {
    client.trust(certificate);
    SSL_CTX_set_max_proto_version(client.context.native_handle(), TLS1_2_VERSION);
    EXPECT_FALSE(co_await client.connect(port));
    EXPECT_EQ(SSL_renegotiate(client.handle()), 1);
    co_await client.write(last("/a"));
    EXPECT_THAT((co_await client.read_rest()).first, "");
    client.leave();
    co_await until([&] { return server.connections() == 0; });
    EXPECT_THAT(begun, testing::IsEmpty());
  });
}

TEST_F(HttpsServerTest, TakesNewKeysAsOftenAsAClientMakesThem) {
  with_server([&](HttpServer&) -> Coro<void> {
    client.trust(certificate);
    EXPECT_FALSE(co_await client.connect(port));
    co_await client.write("GET /");
    for (int i = 0; i < 500; ++i) {
      EXPECT_EQ(SSL_key_update(client.handle(), SSL_KEY_UPDATE_REQUESTED), 1);
      co_await client.write("a");
    }
    co_await client.write(" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    EXPECT_THAT((co_await client.read_rest()).first, HasSubstr("200 OK"));
  });
}

TEST_F(HttpsServerTest, AClientThatDoesNotFinishTheHandshakeIsLetGo) {
  options.handshake_timeout = 20ms;
  with_server([&](HttpServer& server) -> Coro<void> {
    Stream silent = co_await connect();
    Stream slow = co_await connect();
    slow.write("\x16\x03\x01");
    EXPECT_EQ(co_await read_rest(silent), "");
    EXPECT_EQ(co_await read_rest(slow), "");
    co_await until([&] { return server.connections() == 0; });
  });
}

TEST_F(HttpsServerTest, AHandshakeUnderWayHoldsUpNoStop) {
  with_server([&](HttpServer& server) -> Coro<void> {
    Stream silent = co_await connect();
    co_await until([&] { return server.connections() == 1; });
    EXPECT_TRUE(co_await server.stop(kPlenty));
  });
}

TEST_F(HttpsServerTest, AHandlerIsCancelledWhenItsClientLeaves) {
  with_server([&](HttpServer&) -> Coro<void> {
    {
      TlsClient leaving(world.backend);
      leaving.trust(certificate);
      EXPECT_FALSE(co_await leaving.connect(port));
      co_await leaving.write(get("/wait"));
      co_await has_begun.wait();
    }
    co_await until([&] { return !cancelled.empty(); });
  });
}

TEST_F(HttpsServerTest, ConnectionsFromNowOnGetTheCertificateThatWasReadAgain) {
  Certificate renewed;
  with_server([&](HttpServer&) -> Coro<void> {
    client.trust(certificate);
    EXPECT_FALSE(co_await client.connect(port));
    EXPECT_TRUE(identity->reload({.certificate = renewed.path(), .key = renewed.key_path()}));
    co_await client.write(last("/still"));
    EXPECT_THAT((co_await client.read_rest()).first, HasSubstr("/still"));
    TlsClient late(world.backend);
    late.trust(renewed);
    EXPECT_FALSE(co_await late.connect(port));
  });
}

TEST_F(HttpsServerTest, AUnixSocketStaysPlain) {
  const TemporaryFolder folder;
  HttpServer server(handler(), options);
  run([&]() -> Coro<void> {
    server.listen_unix(folder.file("s"));
    Stream stream = co_await open_unix_connection(folder.file("s"));
    stream.write(last("/plain"));
    EXPECT_THAT(co_await read_rest(stream), HasSubstr("/plain"));
    co_await server.stop(Duration::zero());
  });
}

// --- what is read from files

class TlsFilesTest : public ::testing::Test {
 public:
  static std::string error_of(const TlsFiles& files) {
    const auto identity = TlsIdentity::load(files);
    return identity ? "none" : identity.error().message;
  }
  std::string file(const std::string& name, std::string_view text) const {
    std::ofstream(folder.file(name)) << text;
    return folder.file(name);
  }
  TemporaryFolder folder;
  Certificate one, other;
};

TEST_F(TlsFilesTest, WhatIsWrongIsToldWithItsFile) {
  EXPECT_THAT(error_of({.certificate = "/nowhere.pem", .key = one.key_path()}),
              HasSubstr("\"/nowhere.pem\": No such file or directory"));
  EXPECT_THAT(error_of({.certificate = file("empty.pem", ""), .key = one.key_path()}), HasSubstr("empty.pem"));
  EXPECT_THAT(error_of({.certificate = file("text.pem", "hello\n"), .key = one.key_path()}),
              HasSubstr("is no chain of certificates"));
  EXPECT_THAT(error_of({.certificate = one.path(), .key = one.path()}), HasSubstr("is no private key"));
  EXPECT_THAT(error_of({.certificate = one.path(), .key = other.key_path()}), HasSubstr("goes with the certificate"));
  EXPECT_EQ(error_of({.certificate = one.path(), .key = one.key_path()}), "none");
}

TEST_F(TlsFilesTest, AKeyThatNeedsAPasswordIsRefusedAndNobodyIsAsked) {
  const std::string path = file("locked.pem", "");
  std::FILE* const out = std::fopen(path.c_str(), "w");
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  PEM_write_PrivateKey(out, key, EVP_aes_128_cbc(), nullptr, 0, nullptr, const_cast<char*>("secret"));
  EVP_PKEY_free(key);
  std::fclose(out);
  EXPECT_THAT(error_of({.certificate = one.path(), .key = path}), HasSubstr("needs no password"));
}

TEST_F(TlsFilesTest, APipeIsReadOnceAndNotWaitedForLater) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const TlsFiles files{.certificate = one.path(), .key = "/dev/fd/" + std::to_string(ends[0])};
  {
    const std::jthread writer([&] {
      std::ofstream("/dev/fd/" + std::to_string(ends[1])) << std::ifstream(one.key_path()).rdbuf();
      ::close(ends[1]);
    });
    EXPECT_EQ(error_of(files), "none");
  }
  const auto again = TlsIdentity::load_again(files);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr(": is not a plain file: it cannot be read again"));
  EXPECT_FALSE(value_or_throw(TlsIdentity::load({.certificate = one.path(), .key = one.key_path()}))->reload(files));
  ::close(ends[0]);
}

TEST_F(TlsFilesTest, AFailedReloadKeepsWhatWasThere) {
  const auto identity = value_or_throw(TlsIdentity::load({.certificate = one.path(), .key = one.key_path()}));
  const WallTime before = identity->expires_at();
  EXPECT_GT(before, WallTime{});
  EXPECT_FALSE(identity->reload({.certificate = one.path(), .key = other.key_path()}));
  EXPECT_EQ(identity->expires_at(), before);
  EXPECT_NE(identity->new_layer(), nullptr);
}

// --- one connection's layer, without a socket

// A client of OpenSSL's, by the bytes that it sends and gets.
class LayerClient {
 public:
  LayerClient()
      : tls_(::SSL_new(context_.native_handle())), came_(::BIO_new(::BIO_s_mem())), sent_(::BIO_new(::BIO_s_mem())) {
    ::SSL_set_bio(tls_, came_, sent_);
    ::SSL_set_connect_state(tls_);
  }
  ~LayerClient() { ::SSL_free(tls_); }
  LayerClient(const LayerClient&) = delete;
  LayerClient& operator=(const LayerClient&) = delete;

  std::string take_sent() {
    std::string bytes(::BIO_ctrl_pending(sent_), '\0');
    if (!bytes.empty()) ::BIO_read(sent_, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }
  std::string record_of(std::string_view text) {
    ::SSL_write(tls_, text.data(), static_cast<int>(text.size()));
    return take_sent();
  }
  std::string take_leave() {
    ::SSL_shutdown(tls_);
    return take_sent();
  }
  // The outcome of a read, as SSL_get_error() tells it.
  int read(std::string_view came) {
    ::BIO_write(came_, came.data(), static_cast<int>(came.size()));
    char byte = 0;
    return ::SSL_get_error(tls_, ::SSL_read(tls_, &byte, 1));
  }
  // Byte by byte.
  void shake_hands_with(detail::StreamLayer& layer) {
    std::string plain;
    while (!layer.is_ready() || ::SSL_is_init_finished(tls_) == 0) {
      ::SSL_do_handshake(tls_);
      std::string answer;
      for (const char byte : take_sent()) EXPECT_FALSE(layer.receive({&byte, 1}, plain, answer));
      ::BIO_write(came_, answer.data(), static_cast<int>(answer.size()));
    }
    EXPECT_EQ(plain, "");
  }

 private:
  ssl::context context_{ssl::context::tls_client};
  SSL* const tls_;
  BIO* const came_;
  BIO* const sent_;
};

class TlsLayerTest : public ::testing::Test {
 public:
  TlsLayerTest() { client.shake_hands_with(*layer); }
  Certificate certificate;
  const std::unique_ptr<detail::StreamLayer> layer =
      value_or_throw(TlsIdentity::load({.certificate = certificate.path(), .key = certificate.key_path()}))
          ->new_layer();
  LayerClient client;
  std::string plain, to_peer;
};

TEST_F(TlsLayerTest, GivesARecordOnceItIsWhole) {
  for (const char byte : client.record_of("hello")) {
    EXPECT_EQ(plain, "");
    EXPECT_FALSE(layer->receive({&byte, 1}, plain, to_peer));
  }
  EXPECT_EQ(plain, "hello");
  EXPECT_EQ(to_peer, "");
}

TEST_F(TlsLayerTest, GivesWhatCameBeforeTheEndAndNothingBehindIt) {
  const std::string before = client.record_of("hello");
  EXPECT_TRUE(layer->receive(before + client.take_leave() + before, plain, to_peer));
  EXPECT_EQ(plain, "hello");
  to_peer.clear();
  layer->end(to_peer);
  EXPECT_EQ(client.read(to_peer), SSL_ERROR_ZERO_RETURN);
}

TEST_F(TlsLayerTest, GivesWhatCameBeforeADamagedRecordAndTellsThePeer) {
  std::string bytes = client.record_of("good") + client.record_of("bad");
  bytes.back() ^= 1;
  EXPECT_THROW((void)layer->receive(bytes, plain, to_peer), std::system_error);
  EXPECT_EQ(plain, "good");
  EXPECT_EQ(client.read(to_peer), SSL_ERROR_SSL);
}

}  // namespace
}  // namespace argiope
