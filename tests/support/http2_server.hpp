// An HTTP/2 server for tests of the client, by nghttp2's server side: it answers as the test says, and breaks the rules
// where that says so. It listens on loopback with TLS, on the loop of the test.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/async/sync.hpp"

namespace argiope {

using Http2Fields = std::vector<std::pair<std::string, std::string>>;

// A frame as it goes over the wire, for what nghttp2 would not send.
inline std::string http2_frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string_view payload) {
  std::string frame;
  for (int shift = 16; shift >= 0; shift -= 8) frame += static_cast<char>(payload.size() >> shift & 0xff);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(stream >> shift & 0xff);
  return frame.append(payload);
}

class Http2Server {
 public:
  struct Asked {
    std::int32_t stream = 0;
    Http2Fields fields;  // pseudo-fields too, in their order
    std::string body;
    std::string field(std::string_view name) const {
      for (const auto& [its_name, value] : fields) {
        if (its_name == name) return value;
      }
      return {};
    }
  };

  class Connection {
   public:
    void respond(std::int32_t stream, int status, Http2Fields fields, std::string body = {}) {
      fields.insert(fields.begin(), {":status", std::to_string(status)});
      Body& kept = bodies_[stream] = {std::move(body), 0};
      nghttp2_data_provider source{};
      source.source.ptr = &kept;
      source.read_callback = [](nghttp2_session*, std::int32_t, std::uint8_t* out, std::size_t size,
                                std::uint32_t* flags, nghttp2_data_source* from, void*) -> ssize_t {
        Body& rest = *static_cast<Body*>(from->ptr);
        const std::size_t count = std::min(size, rest.text.size() - rest.sent);
        std::memcpy(out, rest.text.data() + rest.sent, count);
        rest.sent += count;
        if (rest.sent == rest.text.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
        return static_cast<ssize_t>(count);
      };
      const auto sent = pairs(fields);
      nghttp2_submit_response(session_.get(), stream, sent.data(), sent.size(), kept.text.empty() ? nullptr : &source);
      wake.set();
    }
    // A head alone: 1xx, or one whose body is raw frames.
    void head(std::int32_t stream, int status, Http2Fields fields) {
      fields.insert(fields.begin(), {":status", std::to_string(status)});
      const auto sent = pairs(fields);
      nghttp2_submit_headers(session_.get(), NGHTTP2_FLAG_NONE, stream, nullptr, sent.data(), sent.size(), nullptr);
      wake.set();
    }
    void reset(std::int32_t stream, std::uint32_t code) {
      nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream, code);
      wake.set();
    }
    void goaway(std::int32_t last_stream, std::uint32_t code, std::string_view why = {}) {
      nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, last_stream, code,
                            reinterpret_cast<const std::uint8_t*>(why.data()), why.size());
      wake.set();
    }
    void ping() {
      nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, nullptr);
      wake.set();
    }
    void limit_streams(std::uint32_t most) {
      const nghttp2_settings_entry entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, most};
      nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, &entry, 1);
      wake.set();
    }
    // Sent as it is, behind what is due.
    void raw(std::string bytes) {
      raw_ += bytes;
      wake.set();
    }
    // Once all has been sent.
    void close() {
      closing_ = true;
      wake.set();
    }

    Event wake;
    std::vector<Asked> asked;              // whose headers and bodies are complete
    std::vector<std::int32_t> broken_off;  // RST_STREAM of the client
    int pongs = 0;
    std::size_t number = 0;

   private:
    friend class Http2Server;
    static std::vector<nghttp2_nv> pairs(const Http2Fields& fields) {
      std::vector<nghttp2_nv> all;
      for (const auto& [name, value] : fields) {
        all.push_back({reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
                       reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
                       NGHTTP2_NV_FLAG_NONE});
      }
      return all;
    }
    struct Free {
      void operator()(nghttp2_session* session) const noexcept { nghttp2_session_del(session); }
    };
    std::unique_ptr<nghttp2_session, Free> session_;
    std::map<std::int32_t, Asked> coming_;
    struct Body {
      std::string text;
      std::size_t sent;
    };
    std::map<std::int32_t, Body> bodies_;
    std::string raw_;
    bool closing_ = false;
    Http2Server* server_ = nullptr;
  };
  using Answer = std::function<void(Connection&, const Asked&)>;

  // serve() must be a task of the loop for anything to happen.
  Http2Server(AsioBackend& backend, boost::asio::ssl::context& tls)
      : backend_(backend), tls_(tls), listener_(backend.context(), {boost::asio::ip::make_address("127.0.0.1"), 0}) {
    SSL_CTX_set_alpn_select_cb(tls.native_handle(), choose, this);
  }

  std::uint16_t port() const { return listener_.local_endpoint().port(); }
  std::string origin(std::string_view host = "secure.test") const {
    return "https://" + std::string(host) + ":" + std::to_string(port());
  }

  // What it chooses by ALPN; "": nothing. "http/1.1" is spoken then: every request is answered "old".
  std::string protocol = "h2";
  // SETTINGS_MAX_CONCURRENT_STREAMS of new connections; 0: none is sent.
  std::uint32_t most_streams = 0;
  Answer answer = [](Connection& connection, const Asked& asked) {
    connection.respond(asked.stream, 200, {{"content-type", "text/plain"}}, "hello");
  };
  // Called when a connection has been made, before anything is read.
  std::function<void(Connection&)> greet;

  std::vector<std::shared_ptr<Connection>> connections;  // ever
  std::vector<std::string> http1_requests;
  std::size_t open = 0;
  Event changed;  // set at each request and each end of a connection; cleared by who waits

  Coro<void> serve() {
    for (;;) {
      Socket socket(backend_.context());
      const auto ec = co_await asio_op<>([&](auto handler) { listener_.async_accept(socket, std::move(handler)); },
                                         [&] { listener_.cancel(); });
      if (ec) co_return;
      EventLoop::current().create_task(converse(std::move(socket)));
    }
  }
  Coro<void> all_closed() {
    while (open > 0) co_await next_change();
  }
  Coro<void> next_change() {
    changed.clear();
    co_await changed.wait();
  }
  // Until `count` requests have come, on all connections.
  Coro<void> received(std::size_t count) {
    while (requests() < count) co_await next_change();
  }
  std::size_t requests() const {
    std::size_t all = 0;
    for (const auto& connection : connections) all += connection->asked.size();
    return all;
  }

 private:
  using Socket = boost::asio::ip::tcp::socket;
  using TlsStream = boost::asio::ssl::stream<Socket&>;

  static int choose(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                    unsigned offered_size, void* data) {
    const std::string& wanted = static_cast<Http2Server*>(data)->protocol;
    for (unsigned at = 0; at < offered_size; at += offered[at] + 1u) {
      const std::string_view one(reinterpret_cast<const char*>(offered + at + 1), offered[at]);
      if (one != wanted) continue;
      *chosen = offered + at + 1;
      *size = offered[at];
      return SSL_TLSEXT_ERR_OK;
    }
    return wanted.empty() ? SSL_TLSEXT_ERR_NOACK : SSL_TLSEXT_ERR_ALERT_FATAL;
  }

  // Kept until the server goes: a loop that is destroyed leaves operations under way.
  struct Wire {
    Wire(Socket its_socket, boost::asio::ssl::context& context) : socket(std::move(its_socket)), tls(socket, context) {}
    Socket socket;
    TlsStream tls;
    std::string buffer = std::string(65536, '\0');
  };

  Coro<void> converse(Socket accepted) {
    ++open;
    Wire& wire = *wires_.emplace_back(std::make_unique<Wire>(std::move(accepted), tls_));
    Socket& socket = wire.socket;
    TlsStream& tls = wire.tls;
    std::string& buffer = wire.buffer;
    const auto ec = co_await asio_op<>(
        [&](auto handler) { tls.async_handshake(boost::asio::ssl::stream_base::server, std::move(handler)); },
        [&] { socket.cancel(); });
    if (!ec && protocol == "http/1.1") {
      co_await speak_http1(tls, socket);
    } else if (!ec) {
      auto connection = make_connection();
      auto writing = EventLoop::current().create_task(write(tls, socket, connection));
      for (;;) {
        const auto [failed, count] = co_await asio_op<std::size_t>(
            [&](auto handler) { tls.async_read_some(boost::asio::buffer(buffer), std::move(handler)); },
            [&] { socket.cancel(); });
        if (failed) break;
        if (nghttp2_session_mem_recv(connection->session_.get(), reinterpret_cast<const std::uint8_t*>(buffer.data()),
                                     count) < 0) {
          break;
        }
        connection->wake.set();
      }
      writing.cancel();
      try {
        co_await std::move(writing);
      } catch (const CancelledError&) {
      }
    }
    boost::system::error_code ignored;
    socket.close(ignored);
    --open;
    changed.set();
  }

  // One answer.
  Coro<void> speak_http1(TlsStream& tls, Socket& socket) {
    std::string head;
    while (!head.ends_with("\r\n\r\n")) {
      char buffer[4096];
      const auto [failed, count] = co_await asio_op<std::size_t>(
          [&](auto handler) { tls.async_read_some(boost::asio::buffer(buffer), std::move(handler)); },
          [&] { socket.cancel(); });
      if (failed) co_return;
      head.append(buffer, count);
    }
    http1_requests.push_back(head);
    const std::string reply = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nold";
    co_await asio_op<std::size_t>(
        [&](auto handler) { boost::asio::async_write(tls, boost::asio::buffer(reply), std::move(handler)); },
        [&] { socket.cancel(); });
  }

  Coro<void> write(TlsStream& tls, Socket& socket, std::shared_ptr<Connection> connection) {
    for (;;) {
      co_await connection->wake.wait();
      connection->wake.clear();
      std::string out;
      for (;;) {
        const std::uint8_t* bytes = nullptr;
        const ssize_t size = nghttp2_session_mem_send(connection->session_.get(), &bytes);
        if (size <= 0) break;
        out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
      }
      out += std::exchange(connection->raw_, {});
      if (!out.empty()) {
        const auto [failed, count] = co_await asio_op<std::size_t>(
            [&](auto handler) { boost::asio::async_write(tls, boost::asio::buffer(out), std::move(handler)); },
            [&] { socket.cancel(); });
        if (failed) co_return;
      }
      if (connection->closing_) {
        boost::system::error_code ignored;
        socket.shutdown(Socket::shutdown_both, ignored);
        co_return;
      }
    }
  }

  static Connection& of(void* data) { return *static_cast<Connection*>(data); }

  std::shared_ptr<Connection> make_connection() {
    auto connection = std::make_shared<Connection>();
    connection->server_ = this;
    connection->number = connections.size();
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                      const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* data) {
          of(data).coming_[frame->hd.stream_id].fields.emplace_back(
              std::string(reinterpret_cast<const char*>(name), name_size),
              std::string(reinterpret_cast<const char*>(value), value_size));
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks, [](nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* bytes, std::size_t size,
                      void* data) {
          of(data).coming_[stream].body.append(reinterpret_cast<const char*>(bytes), size);
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* data) {
          Connection& self = of(data);
          if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) ++self.pongs;
          if (frame->hd.type == NGHTTP2_RST_STREAM) self.broken_off.push_back(frame->hd.stream_id);
          const bool is_request = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
          if (is_request && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
            Asked asked = std::move(self.coming_[frame->hd.stream_id]);
            asked.stream = frame->hd.stream_id;
            self.asked.push_back(asked);
            self.server_->answer(self, asked);
          }
          self.server_->changed.set();
          return 0;
        });
    nghttp2_session* session = nullptr;
    nghttp2_session_server_new(&session, callbacks, connection.get());
    nghttp2_session_callbacks_del(callbacks);
    connection->session_.reset(session);
    const nghttp2_settings_entry entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, most_streams};
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, &entry, most_streams > 0 ? 1 : 0);
    connections.push_back(connection);
    connection->wake.set();
    if (greet) greet(*connection);
    return connection;
  }

  AsioBackend& backend_;
  boost::asio::ssl::context& tls_;
  std::vector<std::unique_ptr<Wire>> wires_;
  boost::asio::ip::tcp::acceptor listener_;
};

}  // namespace argiope
