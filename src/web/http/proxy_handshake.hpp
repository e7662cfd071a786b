// The talk with a proxy before a connection through it is there: SOCKS5 (RFC 1928, RFC 1929) and CONNECT (RFC 9110,
// 9.3.6), without sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "argiope/base/error.hpp"
#include "argiope/web/detail/ip_address.hpp"
#include "argiope/web/detail/proxy.hpp"
#include "argiope/web/http.hpp"
#include "web/http/internal/http_response_reader.hpp"
#include "web/text/internal/content_decoder.hpp"

namespace argiope {

// Why there is no connection, and whether another proxy might do better.
struct OpenFailure {
  Error error;
  bool is_of_proxy = false;
};
template <class T>
using Opened = std::expected<T, OpenFailure>;

// Told a server's name, the proxy looks it up.
using ProxyTarget = std::variant<IpAddress, std::string>;

// Say what it has to say, give it exactly the bytes it wants, until it wants none.
class Socks5Handshake {
 public:
  static constexpr std::size_t kMostOfName = 255;

  // A name has kMostOfName bytes at most. `proxy` must outlive it.
  Socks5Handshake(const Proxy& proxy, ProxyTarget target, std::uint16_t port);

  // The bytes to send before more is read; often nothing. They are given once.
  std::string take_output() noexcept { return std::exchange(output_, {}); }
  // Bytes of the proxy's answer that it needs next; 0: the connection is there.
  std::size_t wants() const noexcept { return wants_; }
  // As many as it wants. After an error it is not to be used.
  Opened<void> take(std::string_view bytes);

 private:
  enum class State : std::uint8_t { method, login, reply, address, done };

  bool has_login() const noexcept { return !proxy_.username.empty() || !proxy_.password.empty(); }
  Opened<void> take_method(std::string_view bytes);
  Opened<void> take_reply(std::string_view bytes);
  void ask_to_log_in();
  void ask_for_connection();
  void expect(State state, std::size_t bytes) noexcept;

  const Proxy& proxy_;
  const ProxyTarget target_;
  const std::uint16_t port_;
  std::string output_;
  State state_ = State::method;
  std::size_t wants_ = 2;
};

// The request for a connection to the server of `url`.
std::string connect_request(const Url& url, const Proxy& proxy, std::string_view user_agent);

// The answer to it.
class ConnectAnswer {
 public:
  explicit ConnectAnswer(const Proxy& proxy) : proxy_(proxy) {}

  // Takes what has come. True: the connection is there.
  // Errors: after one it is not to be used.
  Opened<bool> feed(std::string_view bytes);
  // No more comes.
  OpenFailure ended() const;

 private:
  Opened<bool> judge(bool has_more) const;

  static constexpr int kMostInterim = 10;

  const Proxy& proxy_;
  ContentDecoder decoder_;
  HttpResponse response_;
  std::optional<HttpResponseReader> reader_;
  std::string waiting_;  // of a head that has not come whole
  int interim_ = 0;
};

// The error for a proxy that answers 407.
OpenFailure wants_login(const Proxy& proxy);

}  // namespace argiope
