#include "site/internal/site_server.hpp"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <list>
#include <optional>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/group.hpp"
#include "base/internal/printable.hpp"
#include "site/site_http2.hpp"

namespace argiope {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kMostHeader = 16 * 1024;
constexpr std::uint64_t kMostBody = 64 * 1024;  // of a form
constexpr std::size_t kHttp2Bytes = 64 * 1024;

using TlsStream = asio::ssl::stream<tcp::socket&>;

int choose_http2(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                 unsigned offered_size, void*) {
  static constexpr std::string_view kKnown = "\x02h2\x08http/1.1";
  unsigned char* found = nullptr;
  const int outcome = ::SSL_select_next_proto(&found, size, reinterpret_cast<const unsigned char*>(kKnown.data()),
                                              kKnown.size(), offered, offered_size);
  *chosen = found;
  return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

bool has_chosen_http2(SSL* tls) {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  ::SSL_get0_alpn_selected(tls, &name, &size);
  return std::string_view(reinterpret_cast<const char*>(name), size) == "h2";
}

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

class Server final : public SiteServer {
 public:
  Server(AsioBackend& backend, const SiteServerOptions& options) : backend_(backend), options_(options) {}

  Result<void> load_tls() {
    if (options_.certificate.empty()) return {};
    error_code ec;
    asio::ssl::context& tls = tls_.emplace(asio::ssl::context::tls_server);
    tls.use_certificate_chain_file(options_.certificate, ec);
    if (ec) return fail(Errc::invalid_input, fmt::format("{}: {}", in_quotes(options_.certificate), ec.message()));
    tls.use_private_key_file(options_.key, asio::ssl::context::pem, ec);
    if (ec) return fail(Errc::invalid_input, fmt::format("{}: {}", in_quotes(options_.key), ec.message()));
    ::SSL_CTX_set_alpn_select_cb(tls.native_handle(), choose_http2, nullptr);
    return {};
  }

  Result<void> bind(const SyntheticWebOptions& web) {
    for (std::uint32_t host = 0; host < web.hosts; ++host) {
      const std::uint32_t last_byte = options_.by_address ? host : 0;
      const auto address = asio::ip::address_v4{0x7f000001u + last_byte};
      const bool free_port = options_.port == 0;
      // With addresses apart, all hosts share the port, also one that was free for the first.
      const std::uint32_t port =
          options_.by_address ? (free_port && host > 0 ? listeners_.front().local_endpoint().port() : options_.port)
          : free_port         ? 0
                              : options_.port + host;
      if (port > 65535) return fail(Errc::io, fmt::format("port {}: ports end at 65535", port));
      error_code ec;
      tcp::acceptor listener(backend_.context());
      listener.open(tcp::v4(), ec);
      if (!ec) listener.set_option(tcp::acceptor::reuse_address(true), ec);
      if (!ec) listener.bind({address, static_cast<std::uint16_t>(port)}, ec);
      if (!ec) listener.listen(4096, ec);
      if (ec) return fail(Errc::io, fmt::format("cannot listen on {}:{}: {}", address.to_string(), port, ec.message()));
      origins_.push_back(
          fmt::format("{}://{}:{}", tls_ ? "https" : "http", address.to_string(), listener.local_endpoint().port()));
      listeners_.push_back(std::move(listener));
    }
    web_.emplace(web, origins_);
    return {};
  }

  const std::vector<std::string>& origins() const override { return origins_; }
  SyntheticWeb& web() override { return *web_; }
  std::uint64_t requests() const override { return requests_; }

  Coro<void> serve() override {
    co_await TaskGroup::run([this](TaskGroup& group) -> Coro<void> {
      std::uint32_t host = 0;
      for (tcp::acceptor& listener : listeners_) group.create_task(accept(group, listener, host++));
      co_return;
    });
  }

 private:
  Coro<void> accept(TaskGroup& group, tcp::acceptor& listener, std::uint32_t host) {
    for (;;) {
      tcp::socket socket(backend_.context());
      const error_code ec = co_await asio_op<>([&](auto handler) { listener.async_accept(socket, std::move(handler)); },
                                               [&] { listener.cancel(); });
      if (!ec) {
        co_await yield_now();  // if it came with the cancellation, this throws, and not the closed group
        group.create_task(tls_ ? converse_by_tls(std::move(socket), host) : converse_plainly(std::move(socket), host));
      } else {
        co_await sleep(std::chrono::milliseconds{50});  // out of descriptors, most likely: some will come free
      }
    }
  }

  Coro<void> converse_plainly(tcp::socket socket, std::uint32_t host) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    co_await converse(socket, socket, host);
  }

  Coro<void> converse_by_tls(tcp::socket socket, std::uint32_t host) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    TlsStream tls(socket, *tls_);
    const error_code failed = co_await asio_op<>(
        [&](auto handler) { tls.async_handshake(asio::ssl::stream_base::server, std::move(handler)); },
        [&] { socket.cancel(); });
    if (failed) co_return;
    if (has_chosen_http2(tls.native_handle())) {
      co_await converse_by_http2(tls, socket, host);
    } else {
      co_await converse(tls, socket, host);
    }
  }

  // --- HTTP/2

  Coro<void> converse_by_http2(TlsStream& tls, tcp::socket& socket, std::uint32_t host) {
    SiteHttp2 site(EventLoop::current(), [this, host](const SiteHttp2Request& request) {
      const SyntheticRequest asked{host,
                                   request.method == "HEAD",
                                   request.target,
                                   request.field("accept-encoding"),
                                   request.field("if-none-match"),
                                   request.field("if-modified-since"),
                                   request.field("cookie"),
                                   request.field("authorization"),
                                   request.method == "POST",
                                   request.body};
      SyntheticReply reply = web_->reply(asked);
      log(host, request.method, request.target, reply.status);
      return reply;
    });
    auto sending = EventLoop::current().create_task(send_http2(tls, socket, site));
    std::exception_ptr ended;
    try {
      co_await receive_http2(tls, socket, site);
    } catch (...) {
      ended = std::current_exception();
    }
    sending.cancel();
    try {
      co_await std::move(sending);
    } catch (const CancelledError&) {
      // asked for
    }
    if (ended) std::rethrow_exception(ended);
  }

  static Coro<void> receive_http2(TlsStream& tls, tcp::socket& socket, SiteHttp2& site) {
    std::string buffer(kHttp2Bytes, '\0');
    for (;;) {
      const auto [ec, count] = co_await asio_op<std::size_t>(
          [&](auto handler) { tls.async_read_some(asio::buffer(buffer), std::move(handler)); },
          [&] { socket.cancel(); });
      if (ec || !site.receive(std::string_view(buffer).substr(0, count))) co_return;
    }
  }

  static Coro<void> send_http2(TlsStream& tls, tcp::socket& socket, SiteHttp2& site) {
    std::string out;
    for (;;) {
      co_await site.wants_to_send.wait();
      co_await yield_now();  // what others have to say in this turn goes with it
      site.wants_to_send.clear();
      out.clear();
      site.fill(out, kHttp2Bytes);
      if (out.empty())
        site.wants_to_send.clear();
      else if (!co_await write(tls, socket, out))
        co_return;
    }
  }

  // --- HTTP/1.1

  template <class Stream>
  Coro<void> converse(Stream& stream, tcp::socket& socket, std::uint32_t host) {
    std::string received;
    std::string reply;
    for (bool go_on = true; go_on;) {
      http::request_parser<http::string_body> parser;
      parser.header_limit(kMostHeader);
      parser.body_limit(kMostBody);
      parser.eager(true);
      if (!co_await read_request(stream, socket, parser, received)) co_return;
      go_on = co_await answer(stream, socket, host, parser.get(), reply) && parser.get().keep_alive();
    }
    error_code ignored;
    socket.shutdown(tcp::socket::shutdown_send, ignored);
  }

  template <class Stream>
  Coro<bool> read_request(Stream& stream, tcp::socket& socket, http::request_parser<http::string_body>& parser,
                          std::string& received) {
    char buffer[4096];
    for (;;) {
      if (!received.empty()) {
        error_code ec;
        const std::size_t used = parser.put(asio::buffer(received), ec);
        received.erase(0, used);
        if (parser.is_done()) co_return true;
        if (ec && ec != http::error::need_more) co_return false;
      }
      const auto [ec, count] = co_await asio_op<std::size_t>(
          [&](auto handler) { stream.async_read_some(asio::buffer(buffer), std::move(handler)); },
          [&] { socket.cancel(); });
      if (ec) co_return false;
      received.append(buffer, count);
    }
  }

  // False when the connection must not be used again.
  template <class Stream>
  Coro<bool> answer(Stream& stream, tcp::socket& socket, std::uint32_t host,
                    const http::request<http::string_body>& request, std::string& out) {
    using Kind = SyntheticReply::Behaviour;
    const SyntheticRequest asked{host,
                                 request.method() == http::verb::head,
                                 view(request.target()),
                                 view(request[http::field::accept_encoding]),
                                 view(request[http::field::if_none_match]),
                                 view(request[http::field::if_modified_since]),
                                 view(request[http::field::cookie]),
                                 view(request[http::field::authorization]),
                                 request.method() == http::verb::post,
                                 request.body()};
    SyntheticReply reply = web_->reply(asked);
    log(host, view(request.method_string()), view(request.target()), reply.status);
    if (reply.latency > Duration::zero()) co_await sleep(reply.latency);
    if (reply.behaviour == Kind::silent) co_await sleep(std::chrono::hours{24});
    if (reply.behaviour == Kind::closed) co_return false;
    if (reply.behaviour == Kind::garbage || reply.behaviour == Kind::odd) {
      co_await write(stream, socket, reply.behaviour == Kind::odd ? reply.wire : reply.body);
      co_return false;
    }
    write_head(reply, out);
    const bool bodiless = asked.head || reply.status == 304;
    if (bodiless) co_return co_await write(stream, socket, out);
    switch (reply.behaviour) {
      case Kind::normal: out += reply.body; co_return co_await write(stream, socket, out);
      case Kind::surplus:
        out += reply.body;
        out += "and more than that";
        co_await write(stream, socket, out);
        co_return false;
      case Kind::cut:
        out.append(reply.body, 0, reply.body.size() / 2);
        co_await write(stream, socket, out);
        co_return false;
      case Kind::reset: {
        out.append(reply.body, 0, reply.body.size() / 2);
        co_await write(stream, socket, out);
        error_code ignored;
        socket.set_option(asio::socket_base::linger(true, 0), ignored);  // closing now sends RST
        socket.close(ignored);
        co_return false;
      }
      case Kind::drip:
        if (!co_await write(stream, socket, out)) co_return false;
        for (const char c : reply.body) {
          co_await sleep(from_seconds(1 / reply.drip_bytes_per_second));
          if (!co_await write(stream, socket, {&c, 1})) co_return false;
        }
        co_return true;
      case Kind::flood: {
        if (!co_await write(stream, socket, out)) co_return false;
        const std::string chunk = fmt::format("{:x}\r\n{}\r\n", reply.body.size(), reply.body);
        while (co_await write(stream, socket, chunk)) {
        }
        co_return false;
      }
      default: co_return false;
    }
  }

  static void write_head(const SyntheticReply& reply, std::string& out) {
    out = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n", reply.status,
                      view(http::obsolete_reason(static_cast<http::status>(reply.status))), reply.content_type);
    for (const auto& [name, value] : reply.headers) {
      out += name;
      out += ": ";
      out += value;
      out += "\r\n";
    }
    if (reply.behaviour == SyntheticReply::Behaviour::flood) {
      out += "Transfer-Encoding: chunked\r\n\r\n";
    } else {
      fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n\r\n", reply.body.size());
    }
  }

  template <class Stream>
  static Coro<bool> write(Stream& stream, tcp::socket& socket, std::string_view bytes) {
    const auto [ec, count] = co_await asio_op<std::size_t>(
        [&](auto handler) { asio::async_write(stream, asio::buffer(bytes.data(), bytes.size()), std::move(handler)); },
        [&] { socket.cancel(); });
    co_return !ec;
  }

  // Microseconds on the loop's clock, host, method, target, status.
  void log(std::uint32_t host, std::string_view method, std::string_view target, int status) {
    ++requests_;
    if (options_.log == nullptr) return;
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(backend_.clock().now().time_since_epoch());
    fmt::print(options_.log, "{} {} {} {} {}\n", now.count(), host, method, target, status);
    std::fflush(options_.log);
  }

  AsioBackend& backend_;
  const SiteServerOptions options_;
  std::optional<asio::ssl::context> tls_;
  std::list<tcp::acceptor> listeners_;
  std::vector<std::string> origins_;
  std::optional<SyntheticWeb> web_;
  std::uint64_t requests_ = 0;
};

}  // namespace

Result<std::unique_ptr<SiteServer>> SiteServer::listen(AsioBackend& backend, const SyntheticWebOptions& web,
                                                       const SiteServerOptions& options) {
  auto server = std::make_unique<Server>(backend, options);
  if (auto loaded = server->load_tls(); !loaded) return std::unexpected(std::move(loaded.error()));
  if (auto bound = server->bind(web); !bound) return std::unexpected(std::move(bound.error()));
  return server;
}

}  // namespace argiope
