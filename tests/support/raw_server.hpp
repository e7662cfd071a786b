// A server that says what it was told to, right or wrong: what tests of the HTTP client talk to.
//
// Runs on the loop of the test. Each connection that is accepted follows the next of the scripts, in the order they
// were added: for each step it waits for one whole request, sends the step's pieces, and then does what the step
// says. Connections beyond the last script are closed at once.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"

namespace argiope {

class RawServer {
 public:
  enum class Then : std::uint8_t {
    keep,    // goes on with the next step
    close,   // an orderly end
    reset,   // RST
    silent,  // says nothing more, and waits until the client goes
  };
  struct Step {
    std::vector<std::string> pieces;  // with a turn of the loop between them
    Then then = Then::keep;
  };
  using Script = std::vector<Step>;

  // Listens on a free port of `address`; serve() must be a task of the loop for anything to happen.
  explicit RawServer(AsioBackend& backend, const char* address = "127.0.0.1")
      : backend_(backend), listener_(backend.context(), {boost::asio::ip::make_address(address), 0}) {}

  std::uint16_t port() const { return listener_.local_endpoint().port(); }
  std::string origin(std::string_view host = "127.0.0.1", std::string_view scheme = "http") const {
    return std::string(scheme) + "://" + std::string(host) + ":" + std::to_string(port());
  }
  // Speaks TLS from here on.
  void use_tls(boost::asio::ssl::context& context) { tls_ = &context; }

  void add(Script script) { scripts_.push_back(std::move(script)); }
  // One connection with one reply.
  void add(std::string reply, Then then = Then::keep) { add(Script{{{std::move(reply)}, then}}); }

  std::size_t connections() const noexcept { return connections_; }
  // Connections that have not ended yet.
  std::size_t open() const noexcept { return open_; }
  // The requests that were received, in order: heads, and bodies with a Content-Length.
  const std::vector<std::string>& requests() const noexcept { return requests_; }
  // Set when a head has been received, and when a connection has ended; cleared by whoever waits for the next.
  Event changed;

  Coro<void> serve() {
    for (;;) {
      Socket socket(backend_.context());
      const auto ec = co_await asio_op<>([&](auto handler) { listener_.async_accept(socket, std::move(handler)); },
                                         [&] { listener_.cancel(); });
      if (ec) co_return;
      ++connections_;
      if (scripts_.empty()) continue;
      Script script = std::move(scripts_.front());
      scripts_.pop_front();
      ++open_;
      EventLoop::current().create_task(converse(std::move(socket), std::move(script)));
    }
  }
  // Takes no more connections, which lets serve() end.
  void stop() {
    boost::system::error_code ignored;
    listener_.close(ignored);
  }
  // Suspends until every connection has ended.
  Coro<void> all_closed() {
    while (open_ > 0) co_await next_change();
  }
  // Suspends until so many heads have been received.
  Coro<void> received(std::size_t requests) {
    while (requests_.size() < requests) co_await next_change();
  }

 private:
  using Socket = boost::asio::ip::tcp::socket;
  using TlsStream = boost::asio::ssl::stream<Socket&>;

  Coro<void> next_change() {
    changed.clear();
    co_await changed.wait();
  }

  Coro<void> converse(Socket socket, Script script) {
    std::unique_ptr<TlsStream> tls;
    bool going = true;
    if (tls_ != nullptr) {
      tls = std::make_unique<TlsStream>(socket, *tls_);
      const auto ec = co_await asio_op<>(
          [&](auto handler) { tls->async_handshake(boost::asio::ssl::stream_base::server, std::move(handler)); },
          [&] { socket.cancel(); });
      going = !ec;
    }
    if (tls != nullptr) {
      if (going) co_await follow(*tls, socket, std::move(script));
    } else {
      co_await follow(socket, socket, std::move(script));
    }
    tls.reset();
    boost::system::error_code ignored;
    socket.close(ignored);
    --open_;
    changed.set();
  }

  template <class Stream>
  Coro<void> follow(Stream& stream, Socket& socket, Script script) {
    std::string received;
    for (const Step& step : script) {
      if (!co_await receive_request(stream, socket, received)) co_return;
      for (const std::string& piece : step.pieces) {
        if (!co_await write(stream, socket, piece)) co_return;
        co_await yield_now();
      }
      if (step.then == Then::close) co_return;
      if (step.then == Then::reset) {
        boost::system::error_code ignored;
        socket.set_option(boost::asio::socket_base::linger(true, 0), ignored);  // closing now sends RST
        co_return;
      }
      if (step.then == Then::silent) break;
    }
    while (co_await receive(stream, socket, received)) {
    }
  }

  template <class Stream>
  Coro<bool> receive_request(Stream& stream, Socket& socket, std::string& received) {
    std::size_t end;
    while ((end = received.find("\r\n\r\n")) == std::string::npos) {
      if (!co_await receive(stream, socket, received)) co_return false;
    }
    const std::size_t whole = end + 4 + body_size(received.substr(0, end + 4));
    while (received.size() < whole) {
      if (!co_await receive(stream, socket, received)) co_return false;
    }
    requests_.push_back(received.substr(0, whole));
    received.erase(0, whole);
    changed.set();
    co_return true;
  }

  static std::size_t body_size(const std::string& head) {
    constexpr std::string_view kField = "\r\nContent-Length: ";
    const std::size_t at = head.find(kField);
    return at == std::string::npos ? 0 : std::stoul(head.substr(at + kField.size()));
  }

  template <class Stream>
  Coro<bool> receive(Stream& stream, Socket& socket, std::string& received) {
    char buffer[4096];
    const auto [ec, count] = co_await asio_op<std::size_t>(
        [&](auto handler) { stream.async_read_some(boost::asio::buffer(buffer), std::move(handler)); },
        [&] { socket.cancel(); });
    received.append(buffer, count);
    co_return !ec;
  }

  template <class Stream>
  Coro<bool> write(Stream& stream, Socket& socket, std::string_view bytes) {
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
  std::deque<Script> scripts_;
  std::vector<std::string> requests_;
  std::size_t connections_ = 0;
  std::size_t open_ = 0;
};

}  // namespace argiope
