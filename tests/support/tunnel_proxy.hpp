// A proxy that opens connections: SOCKS5, or HTTP by CONNECT, over TLS where told. Whatever it is asked for, it
// connects to one port of loopback, and notes what it was asked. Told a refusal, it says that instead.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"
#include "argiope/web/detail/ip_address.hpp"

namespace argiope {

class TunnelProxy {
 public:
  // Listens on a free port of loopback; serve() must be a task of the loop for anything to happen.
  explicit TunnelProxy(AsioBackend& backend)
      : backend_(backend), listener_(backend.context(), {boost::asio::ip::make_address("127.0.0.1"), 0}) {}

  std::uint16_t port() const { return listener_.local_endpoint().port(); }
  std::string url(std::string_view scheme, std::string_view credentials = {}) const {
    return std::string(scheme) + "://" + std::string(credentials) + (credentials.empty() ? "" : "@") +
           "127.0.0.1:" + std::to_string(port());
  }

  // Where all connections lead.
  std::uint16_t target = 0;
  // "NAME:PASSWORD" that SOCKS clients have to give; empty: none.
  std::string login;
  // Sent instead of what would follow: of SOCKS the reply to the connection, of HTTP the whole answer. "" and closed:
  // nothing.
  std::string refusal;
  bool closes_at_once = false;
  void use_tls(boost::asio::ssl::context& context) { tls_ = &context; }

  // "secure.test:443" or "127.0.0.1:80 as address", in order.
  std::vector<std::string> asked;
  // Heads of CONNECT requests.
  std::vector<std::string> heads;

  Coro<void> serve() {
    for (;;) {
      auto socket = std::make_shared<Socket>(backend_.context());
      const auto ec = co_await asio_op<>([&](auto handler) { listener_.async_accept(*socket, std::move(handler)); },
                                         [&] { listener_.cancel(); });
      if (ec) co_return;
      EventLoop::current().create_task(converse(std::move(socket)));
    }
  }
  void stop() {
    boost::system::error_code ignored;
    listener_.close(ignored);
  }

 private:
  using Socket = boost::asio::ip::tcp::socket;
  using TlsStream = boost::asio::ssl::stream<Socket&>;

  Coro<void> converse(std::shared_ptr<Socket> socket) {
    if (closes_at_once) co_return;
    if (tls_ == nullptr) {
      co_await tunnel(*socket, *socket);
      co_return;
    }
    TlsStream stream(*socket, *tls_);
    const auto ec = co_await asio_op<>(
        [&](auto handler) { stream.async_handshake(boost::asio::ssl::stream_base::server, std::move(handler)); },
        [&] { socket->cancel(); });
    if (!ec) co_await tunnel(stream, *socket);
  }

  template <class Stream>
  Coro<void> tunnel(Stream& stream, Socket& socket) {
    char first = 0;
    if (!co_await read(stream, socket, &first, 1)) co_return;
    const bool agreed = first == 5 ? co_await by_socks(stream, socket) : co_await by_connect(stream, socket, first);
    if (!agreed) co_return;
    Socket far(backend_.context());
    const auto ec = co_await asio_op<>(
        [&](auto handler) {
          far.async_connect({boost::asio::ip::make_address("127.0.0.1"), target}, std::move(handler));
        },
        [&] { far.cancel(); });
    if (ec) co_return;
    auto back = EventLoop::current().create_task(pump(far, far, stream, socket));
    co_await pump(stream, socket, far, far);
    boost::system::error_code ignored;
    far.shutdown(Socket::shutdown_both, ignored);
    co_await std::move(back);
  }

  template <class Stream>
  Coro<bool> by_socks(Stream& stream, Socket& socket) {
    unsigned char front[4];
    char text[512];
    if (!co_await read(stream, socket, text, 1)) co_return false;
    const std::string methods(text, static_cast<std::size_t>(text[0]));
    if (!co_await read(stream, socket, text, methods.size())) co_return false;
    const bool offers_login = std::string_view(text, methods.size()).contains('\2');
    const char method = login.empty() ? 0 : offers_login ? 2 : '\xff';
    if (!co_await write(stream, socket, {'\5', method})) co_return false;
    if (method == '\xff') co_return false;
    if (method == 2 && !co_await take_login(stream, socket)) co_return false;
    if (!co_await read(stream, socket, reinterpret_cast<char*>(front), 4)) co_return false;
    std::string host;
    if (front[3] == 3) {
      if (!co_await read(stream, socket, text, 1)) co_return false;
      const auto size = static_cast<unsigned char>(text[0]);
      if (!co_await read(stream, socket, text, size)) co_return false;
      host.assign(text, size);
    } else if (front[3] == 1) {
      std::array<std::uint8_t, 4> bytes;
      if (!co_await read(stream, socket, reinterpret_cast<char*>(bytes.data()), 4)) co_return false;
      host = IpAddress::v4(bytes).to_string();
    } else {
      std::array<std::uint8_t, 16> bytes;
      if (!co_await read(stream, socket, reinterpret_cast<char*>(bytes.data()), 16)) co_return false;
      host = IpAddress::v6(bytes).to_string();
    }
    if (!co_await read(stream, socket, reinterpret_cast<char*>(front), 2)) co_return false;
    asked.push_back(host + ":" + std::to_string(front[0] * 256 + front[1]) +
                    (IpAddress::parse(host) ? " as address" : ""));
    if (!refusal.empty()) {
      co_await write(stream, socket, refusal);
      co_return false;
    }
    co_return co_await write(stream, socket, std::string("\5\0\0\1\0\0\0\0\0\0", 10));
  }

  template <class Stream>
  Coro<bool> take_login(Stream& stream, Socket& socket) {
    char text[512];
    std::string given;
    if (!co_await read(stream, socket, text, 1)) co_return false;
    for (const char* separator : {":", ""}) {
      if (!co_await read(stream, socket, text, 1)) co_return false;
      const auto size = static_cast<unsigned char>(text[0]);
      if (!co_await read(stream, socket, text, size)) co_return false;
      given += std::string(text, size) + separator;
    }
    co_await write(stream, socket, {'\1', given == login ? '\0' : '\1'});
    co_return given == login;
  }

  template <class Stream>
  Coro<bool> by_connect(Stream& stream, Socket& socket, char first) {
    std::string head(1, first);
    while (!head.ends_with("\r\n\r\n")) {
      char c = 0;
      if (!co_await read(stream, socket, &c, 1)) co_return false;
      head += c;
    }
    heads.push_back(head);
    asked.push_back(head.substr(8, head.find(' ', 8) - 8));
    if (!refusal.empty()) {
      co_await write(stream, socket, refusal);
      co_return false;
    }
    co_return co_await write(stream, socket, "HTTP/1.1 200 Connection established\r\n\r\n");
  }

  template <class From, class To>
  Coro<void> pump(From& from, Socket& from_socket, To& to, Socket& to_socket) {
    char buffer[4096];
    for (;;) {
      const auto [ec, count] = co_await asio_op<std::size_t>(
          [&](auto handler) { from.async_read_some(boost::asio::buffer(buffer), std::move(handler)); },
          [&] { from_socket.cancel(); });
      if (ec || !co_await write(to, to_socket, {buffer, count})) break;
    }
    boost::system::error_code ignored;
    to_socket.shutdown(Socket::shutdown_send, ignored);
  }

  template <class Stream>
  static Coro<bool> read(Stream& stream, Socket& socket, char* out, std::size_t size) {
    for (std::size_t have = 0; have < size;) {
      const auto [ec, count] = co_await asio_op<std::size_t>(
          [&](auto handler) {
            stream.async_read_some(boost::asio::buffer(out + have, size - have), std::move(handler));
          },
          [&] { socket.cancel(); });
      if (ec) co_return false;
      have += count;
    }
    co_return true;
  }
  template <class Stream>
  static Coro<bool> write(Stream& stream, Socket& socket, std::string bytes) {
    const auto [ec, count] = co_await asio_op<std::size_t>(
        [&](auto handler) {
          boost::asio::async_write(stream, boost::asio::buffer(bytes.data(), bytes.size()), std::move(handler));
        },
        [&] { socket.cancel(); });
    co_return !ec;
  }

  AsioBackend& backend_;
  boost::asio::ip::tcp::acceptor listener_;
  boost::asio::ssl::context* tls_ = nullptr;
};

}  // namespace argiope
