#include "web/http/proxy_handshake.hpp"

#include <fmt/format.h>

#include <utility>

#include "argiope/web/url.hpp"
#include "web/text/internal/http_field.hpp"

namespace argiope {
namespace {

// RFC 1928, 3 to 6; RFC 1929, 2.
constexpr char kSocksVersion = 5;
constexpr char kSocksLoginVersion = 1;
constexpr char kSocksConnect = 1;
constexpr char kSocksNoLogin = 0;
constexpr char kSocksLogin = 2;
constexpr char kSocksNoMethod = '\xff';
constexpr char kSocksV4 = 1;
constexpr char kSocksName = 3;
constexpr char kSocksV6 = 4;
constexpr std::size_t kSocksReplyFront = 5;  // version, reply, reserved, kind of address, the first byte of it
constexpr HttpReaderLimits kConnectLimits{.header_bytes = 64 * 1024, .header_fields = 200, .body_bytes = 0};

struct SocksReply {
  Errc code;
  std::string_view text;
  bool is_of_proxy;
};
// RFC 1928, 6: X'00' is success.
constexpr SocksReply kSocksReplies[] = {
    {Errc::internal, "", false},
    {Errc::network, "it cannot connect there", false},
    {Errc::refused, "its rules do not allow that", false},
    {Errc::network, "it cannot reach that network", false},
    {Errc::network, "it cannot reach that host", false},
    {Errc::network, "the server refused the connection", false},
    {Errc::timeout, "no answer from there in time", false},
    {Errc::unsupported, "it opens no connections", true},
    {Errc::unsupported, "it does not know this kind of address", false},
};

std::unexpected<OpenFailure> proxy_trouble(const Proxy& proxy, Errc code, std::string_view what, bool is_of_proxy) {
  return std::unexpected(OpenFailure{{code, fmt::format("proxy {}: {}", proxy.name(), what)}, is_of_proxy});
}

std::string_view how_to_log_in(const Proxy& proxy) {
  return proxy.username.empty() && proxy.password.empty() ? "give them as SCHEME://NAME:PASSWORD@HOST:PORT"
                                                          : "those that were given are not right";
}

}  // namespace

// --- SOCKS5

Socks5Handshake::Socks5Handshake(const Proxy& proxy, ProxyTarget target, std::uint16_t port)
    : proxy_(proxy), target_(std::move(target)), port_(port) {
  output_ = {kSocksVersion, has_login() ? char{2} : char{1}, kSocksNoLogin};
  if (has_login()) output_ += kSocksLogin;
}

void Socks5Handshake::expect(State state, std::size_t bytes) noexcept {
  state_ = state;
  wants_ = bytes;
}

Opened<void> Socks5Handshake::take(std::string_view bytes) {
  switch (state_) {
    case State::method: return take_method(bytes);
    case State::login:
      if (bytes[1] != 0) {
        return proxy_trouble(proxy_, Errc::refused, "it refuses the name and the password that were given", true);
      }
      ask_for_connection();
      return {};
    case State::reply: return take_reply(bytes);
    case State::address:
    case State::done: break;
  }
  expect(State::done, 0);
  return {};
}

Opened<void> Socks5Handshake::take_method(std::string_view bytes) {
  if (bytes[0] != kSocksVersion) return proxy_trouble(proxy_, Errc::protocol, "it does not speak SOCKS5", true);
  const char method = bytes[1];
  if (method == kSocksNoLogin) {
    ask_for_connection();
  } else if (method == kSocksLogin && has_login()) {
    ask_to_log_in();
  } else if (method == kSocksNoMethod && !has_login()) {
    return proxy_trouble(proxy_, Errc::refused,
                         fmt::format("it wants a name and a password; {}", how_to_log_in(proxy_)), true);
  } else {
    return proxy_trouble(proxy_, Errc::refused, "it wants another login than a name and a password", true);
  }
  return {};
}

void Socks5Handshake::ask_to_log_in() {
  const auto append = [&](const std::string& text) {
    output_ += static_cast<char>(text.size());
    output_ += text;
  };
  output_ = {kSocksLoginVersion};
  append(proxy_.username);
  append(proxy_.password);
  expect(State::login, 2);
}

void Socks5Handshake::ask_for_connection() {
  output_ = {kSocksVersion, kSocksConnect, 0};
  if (const auto* const address = std::get_if<IpAddress>(&target_)) {
    output_ += address->is_v4() ? kSocksV4 : kSocksV6;
    for (const std::uint8_t byte : address->bytes()) output_ += static_cast<char>(byte);
  } else {
    const std::string& name = std::get<std::string>(target_);
    output_ += kSocksName;
    output_ += static_cast<char>(name.size());
    output_ += name;
  }
  output_ += static_cast<char>(port_ >> 8);
  output_ += static_cast<char>(port_ & 0xff);
  expect(State::reply, kSocksReplyFront);
}

// The address it is connected from is read and of no use.
Opened<void> Socks5Handshake::take_reply(std::string_view bytes) {
  if (bytes[0] != kSocksVersion) return proxy_trouble(proxy_, Errc::protocol, "it does not speak SOCKS5", true);
  const auto reply = static_cast<unsigned char>(bytes[1]);
  if (reply >= std::size(kSocksReplies)) {
    return proxy_trouble(proxy_, Errc::network, fmt::format("it fails for a reason of its own ({})", reply), false);
  }
  if (reply != 0)
    return proxy_trouble(proxy_, kSocksReplies[reply].code, kSocksReplies[reply].text,
                         kSocksReplies[reply].is_of_proxy);
  constexpr std::size_t kPort = 2;
  switch (bytes[3]) {
    case kSocksV4: expect(State::address, 4 - 1 + kPort); return {};
    case kSocksV6: expect(State::address, 16 - 1 + kPort); return {};
    case kSocksName: expect(State::address, static_cast<unsigned char>(bytes[4]) + kPort); return {};
    default: return proxy_trouble(proxy_, Errc::protocol, "it says an address of an unknown kind", true);
  }
}

// --- CONNECT

std::string connect_request(const Url& url, const Proxy& proxy, std::string_view user_agent) {
  const std::string target = fmt::format("{}:{}", url.host(), url.effective_port());
  std::string text = fmt::format("CONNECT {} HTTP/1.1\r\n", target);
  append_field(text, "Host", target);
  if (const std::string login = proxy.authorization(); !login.empty()) append_field(text, "Proxy-Authorization", login);
  if (!user_agent.empty()) append_field(text, "User-Agent", user_agent);
  text += "\r\n";
  return text;
}

Opened<bool> ConnectAnswer::feed(std::string_view bytes) {
  waiting_ += bytes;
  for (;;) {
    // The body of a refusal is of no use, and what follows a success belongs to the connection.
    if (!reader_) reader_.emplace(response_, decoder_, kConnectLimits, HttpMethod::head);
    const auto used = reader_->feed(waiting_);
    if (!used) return proxy_trouble(proxy_, used.error().code, used.error().message, true);
    waiting_.erase(0, *used);
    if (!reader_->done()) return false;
    const bool is_interim = reader_->interim();
    reader_.reset();
    if (!is_interim) return judge(!waiting_.empty());
    if (++interim_ > kMostInterim) return proxy_trouble(proxy_, Errc::protocol, "too many interim responses", true);
  }
}

Opened<bool> ConnectAnswer::judge(bool has_more) const {
  const int status = response_.status;
  if (status == 407) return std::unexpected(wants_login(proxy_));
  if (status >= 200 && status < 300) {
    if (!has_more) return true;
    return proxy_trouble(proxy_, Errc::protocol, "it says more than its answer", true);
  }
  const Errc code = status == 504 ? Errc::timeout : status >= 500 ? Errc::network : Errc::refused;
  return proxy_trouble(proxy_, code, fmt::format("HTTP {} instead of a connection", status), false);
}

OpenFailure ConnectAnswer::ended() const {
  return {{Errc::network, fmt::format("proxy {}: it closed the connection without an answer", proxy_.name())}, true};
}

OpenFailure wants_login(const Proxy& proxy) {
  return {{Errc::refused,
           fmt::format("proxy {} wants a name and a password (407); {}", proxy.name(), how_to_log_in(proxy))},
          true};
}

}  // namespace argiope
