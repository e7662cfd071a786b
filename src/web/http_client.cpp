#include "argiope/web/http_client.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <list>
#include <unordered_map>

#include "argiope/async/asio_op.hpp"
#include "argiope/async/timeout.hpp"
#include "base/internal/printable.hpp"
#include "web/certificate_trouble.hpp"
#include "web/http_request_head.hpp"
#include "web/http_response_reader.hpp"

namespace argiope {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using TlsStream = asio::ssl::stream<tcp::socket&>;

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kMostAddressesNamed = 8;  // in one error
constexpr int kMostInterim = 100;               // 1xx responses before the real one
// A body's memory is kept for the next page up to this size.
constexpr std::size_t kKeptBodyBytes = 1024 * 1024;

tcp::endpoint endpoint_of(const IpAddress& address, std::uint16_t port) {
  if (address.is_v4()) {
    asio::ip::address_v4::bytes_type bytes;
    std::memcpy(bytes.data(), address.bytes().data(), bytes.size());
    return {asio::ip::address_v4{bytes}, port};
  }
  asio::ip::address_v6::bytes_type bytes;
  std::memcpy(bytes.data(), address.bytes().data(), bytes.size());
  return {asio::ip::address_v6{bytes}, port};
}

std::string_view bare_host(const Url& url) noexcept {
  std::string_view host = url.host();
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return host;
}

struct Connection {
  explicit Connection(asio::io_context& context) : socket(context) {}
  tcp::socket socket;
  std::unique_ptr<TlsStream> tls;
  std::string certificate_trouble;  // what the certificate was refused for; empty: it was not
  std::string tls_buffer;           // TLS reads while others use the shared buffer
  IpAddress remote;
  TimePoint idle_since;
  std::string site;
  bool reused = false;
};
using ConnectionPtr = std::unique_ptr<Connection>;

}  // namespace

class HttpClient::Impl {
 public:
  Impl(HttpClientOptions options, AsioBackend& backend, Resolver& resolver, const AddressGuard& guard)
      : options_(std::move(options)),
        backend_(backend),
        resolver_(resolver),
        guard_(guard),
        request_head_(options_),
        shared_buffer_(kReadBytes, '\0') {}

  Coro<Result<void>> send(const HttpRequest& request, HttpResponse& response) {
    for (std::string* body : {&response.body, &response.wire.coded_body}) {
      if (body->capacity() > kKeptBodyBytes) std::string{}.swap(*body);
    }
    response.connected = false;
    response.sent_at = EventLoop::current().time();
    Timeout timeout(saturating_add(response.sent_at, request.timeout));
    Result<void> result;
    bool timed_out = false;
    try {
      result = co_await timeout.run(exchange(request, response));
    } catch (const TimeoutError&) {
      timed_out = true;
    }
    if (timed_out) {
      co_return fail(Errc::timeout, fmt::format("{}: {} within {:g} s", request.url.site_key(),
                                                response.connected ? "no complete response" : "no connection",
                                                to_seconds(request.timeout)));
    }
    co_return result;
  }

  std::size_t idle_connections() const noexcept { return idle_.size(); }
  std::uint64_t connections_opened = 0;
  void close_idle() {
    by_site_.clear();
    idle_.clear();
  }

 private:
  using IdleList = std::list<ConnectionPtr>;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };

  Coro<Result<void>> exchange(const HttpRequest& request, HttpResponse& response) {
    response.wire_bytes = 0;
    for (bool again = false;; again = true) {
      const bool may_keep = !again && (is_idempotent(request.method) || request.is_repeatable);
      ConnectionPtr connection = may_keep ? take_idle(request.url.site_key()) : nullptr;
      if (connection == nullptr) {
        auto opened = co_await open(request.url);
        if (!opened) co_return std::unexpected(std::move(opened.error()));
        connection = std::move(*opened);
      }
      response.connected = true;
      bool answered = false;
      Result<bool> reusable = co_await exchange_on(*connection, request, response, answered);
      if (reusable) {
        if (*reusable) put_idle(std::move(connection));
        co_return Result<void>{};
      }
      const Error& error = reusable.error();
      // A kept connection that the server had closed meanwhile says nothing about the request.
      if (connection->reused && !answered && error.code == Errc::network) continue;
      co_return fail(error.code, fmt::format("{}: {}", request.url.site_key(), error.message));
    }
  }

  // --- connecting

  Coro<Result<ConnectionPtr>> open(const Url& url) {
    auto addresses = co_await resolver_.resolve(bare_host(url));
    if (!addresses) co_return std::unexpected(std::move(addresses.error()));
    std::vector<FailedAddress> failed;
    for (const IpAddress& address : *addresses) {
      if (auto allowed = guard_.check(address); !allowed) {
        failed.push_back({address, std::move(allowed.error())});
        continue;
      }
      auto connected = co_await connect(url, address);
      if (connected) co_return connected;
      failed.push_back({address, std::move(connected.error())});
    }
    co_return std::unexpected(connect_error(url, failed));
  }

  struct FailedAddress {
    IpAddress address;
    Error error;
  };

  // One error for all addresses that were tried: each of them named, and the code of the one that came closest.
  static Error connect_error(const Url& url, const std::vector<FailedAddress>& failed) {
    constexpr Errc kClosestFirst[] = {Errc::tls, Errc::network, Errc::timeout, Errc::refused};
    Error error{Errc::network, {}};
    for (const Errc code : kClosestFirst) {
      if (std::ranges::any_of(failed, [&](const FailedAddress& one) { return one.error.code == code; })) {
        error.code = code;
        break;
      }
    }
    // What the guard refuses names the address by itself.
    const auto text_of = [](const FailedAddress& one) {
      return one.error.code == Errc::refused ? one.error.message
                                             : fmt::format("{}: {}", one.address.to_string(), one.error.message);
    };
    if (failed.size() == 1) {
      const FailedAddress& only = failed.front();
      error.message = error.code == Errc::refused
                          ? fmt::format("{}: {}", url.host(), only.error.message)
                          : fmt::format("connect {} ({} port {}): {}", url.host(), only.address.to_string(),
                                        url.effective_port(), only.error.message);
      return error;
    }
    error.message =
        fmt::format("connect {} (port {}, {} addresses): ", url.host(), url.effective_port(), failed.size());
    for (std::size_t i = 0; i < std::min(failed.size(), kMostAddressesNamed); ++i) {
      if (i > 0) error.message += "; ";
      error.message += text_of(failed[i]);
    }
    if (failed.size() > kMostAddressesNamed) error.message += "; …";
    return error;
  }

  Coro<Result<ConnectionPtr>> connect(const Url& url, const IpAddress& address) {
    auto connection = std::make_unique<Connection>(backend_.context());
    connection->remote = address;
    connection->site = url.site_key();
    Timeout timeout(saturating_add(EventLoop::current().time(), options_.connect_timeout));
    Result<void> result;
    bool timed_out = false;
    try {
      result = co_await timeout.run(establish(*connection, url));
    } catch (const TimeoutError&) {
      timed_out = true;
    }
    if (timed_out)
      result = fail(Errc::timeout, fmt::format("no answer within {:g} s", to_seconds(options_.connect_timeout)));
    if (!result) co_return std::unexpected(std::move(result.error()));
    ++connections_opened;
    co_return connection;
  }

  Coro<Result<void>> establish(Connection& connection, const Url& url) {
    tcp::socket& socket = connection.socket;
    const tcp::endpoint endpoint = endpoint_of(connection.remote, static_cast<std::uint16_t>(url.effective_port()));
    error_code ec;
    socket.open(endpoint.protocol(), ec);
    if (ec) co_return fail(Errc::network, ec.message());
    ec = co_await asio_op<>([&](auto handler) { socket.async_connect(endpoint, std::move(handler)); },
                            [&] { socket.cancel(); });
    if (ec) co_return fail(Errc::network, ec.message());
    socket.set_option(tcp::no_delay(true), ec);
    socket.native_non_blocking(true, ec);
    if (url.scheme() == "https") co_return co_await start_tls(connection, url);
    co_return Result<void>{};
  }

  Coro<Result<void>> start_tls(Connection& connection, const Url& url) {
    auto context = tls_context();
    if (!context) co_return std::unexpected(std::move(context.error()));
    connection.tls = std::make_unique<TlsStream>(connection.socket, **context);
    TlsStream& tls = *connection.tls;
    const std::string host(bare_host(url));
    error_code ec;
    if (!IpAddress::parse(host) && SSL_set_tlsext_host_name(tls.native_handle(), host.c_str()) != 1) {
      co_return fail(Errc::tls, "cannot set the server name");
    }
    tls.set_verify_mode(asio::ssl::verify_peer, ec);
    // OpenSSL checks the name itself, so that a wrong one has an error of its own.
    X509_VERIFY_PARAM* checks = SSL_get0_param(tls.native_handle());
    const bool checked = IpAddress::parse(host) ? X509_VERIFY_PARAM_set1_ip_asc(checks, host.c_str()) == 1
                                                : X509_VERIFY_PARAM_set1_host(checks, host.data(), host.size()) == 1;
    if (!checked) co_return fail(Errc::tls, "cannot set the name the certificate must have");
    tls.set_verify_callback(
        [&connection, host](bool trusted, asio::ssl::verify_context& verification) {
          if (!trusted) connection.certificate_trouble = certificate_trouble(*verification.native_handle(), host);
          return trusted;
        },
        ec);
    ec = co_await asio_op<>(
        [&](auto handler) { tls.async_handshake(asio::ssl::stream_base::client, std::move(handler)); },
        [&] { connection.socket.cancel(); });
    if (!ec) {
      connection.tls_buffer.resize(16 * 1024);
      co_return Result<void>{};
    }
    if (!connection.certificate_trouble.empty()) {
      co_return fail(Errc::tls, fmt::format("certificate refused: {}", connection.certificate_trouble));
    }
    if (ec.category() == asio::error::get_ssl_category()) {
      co_return fail(Errc::tls, fmt::format("TLS handshake failed: {}", ec.message()));
    }
    co_return fail(Errc::network, fmt::format("TLS handshake: {}", ec.message()));
  }

  // Made at the first https request: reading the authorities takes longer than a page.
  Result<asio::ssl::context*> tls_context() {
    if (tls_context_ == nullptr) {
      auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
      error_code ec;
      context->set_options(
          asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, ec);
      context->set_default_verify_paths(ec);
      if (ec) return fail(Errc::tls, fmt::format("the system's certificate authorities: {}", ec.message()));
      if (!options_.extra_ca_file.empty()) {
        context->load_verify_file(options_.extra_ca_file, ec);
        if (ec) return fail(Errc::tls, fmt::format("{}: {}", options_.extra_ca_file, ec.message()));
      }
      constexpr unsigned char kProtocols[] = "\x08http/1.1";
      SSL_CTX_set_alpn_protos(context->native_handle(), kProtocols, sizeof kProtocols - 1);
      tls_context_ = std::move(context);
    }
    return tls_context_.get();
  }

  // --- one exchange

  // Whether the connection may be used again.
  Coro<Result<bool>> exchange_on(Connection& connection, const HttpRequest& request, HttpResponse& response,
                                 bool& answered) {
    response.remote = connection.remote;
    std::string head = take_string();
    request_head_.write(request, head);
    response.wire.request.assign(request.keep_wire ? std::string_view{head} : std::string_view{});
    response.sent_at = EventLoop::current().time();
    Result<void> written = co_await write_all(connection, head);
    give_string(std::move(head));
    if (!written) co_return std::unexpected(std::move(written.error()));

    const HttpReaderLimits limits{options_.header_limit, options_.header_fields_limit, request.body_limit,
                                  request.keep_fields, request.wanted_types, request.keep_wire};
    auto decoder = take_decoder();
    std::string leftover;  // of a head that came in pieces
    Result<bool> result = false;
    for (int interim = 0;; ++interim) {
      HttpResponseReader reader(response, *decoder, limits, request.method);
      auto read = co_await read_response(connection, reader, leftover, response, answered);
      if (!read) {
        result = std::unexpected(std::move(read.error()));
        break;
      }
      result = reader.reusable() && leftover.empty();
      if (!reader.interim()) break;
      if (interim == kMostInterim) {
        result = fail(Errc::protocol, "too many interim responses");
        break;
      }
    }
    give_decoder(std::move(decoder));
    co_return result;
  }

  Coro<Result<void>> read_response(Connection& connection, HttpResponseReader& reader, std::string& leftover,
                                   HttpResponse& response, bool& answered) {
    if (!leftover.empty()) {
      auto used = reader.feed(leftover);
      if (!used) co_return std::unexpected(std::move(used.error()));
      leftover.erase(0, *used);
    }
    while (!reader.done()) {
      auto received = co_await read_some(connection);
      if (!received) co_return reader.feed_end(&received.error());
      if (received->empty()) co_return reader.feed_end();
      answered = true;
      response.wire_bytes += received->size();
      // The received bytes are in a buffer that others use too: nothing may suspend before they are taken.
      const bool in_pieces = !leftover.empty();
      if (in_pieces) leftover.append(*received);
      auto used = reader.feed(in_pieces ? std::string_view{leftover} : *received);
      if (!used) co_return std::unexpected(std::move(used.error()));
      if (in_pieces) {
        leftover.erase(0, *used);
      } else {
        leftover.assign(received->substr(*used));
      }
    }
    co_return Result<void>{};
  }

  // --- bytes

  Coro<Result<void>> write_all(Connection& connection, std::string_view bytes) {
    if (connection.tls != nullptr) {
      const auto [ec, count] = co_await asio_op<std::size_t>(
          [&](auto handler) {
            asio::async_write(*connection.tls, asio::buffer(bytes.data(), bytes.size()), std::move(handler));
          },
          [&] { connection.socket.cancel(); });
      if (ec) co_return fail(Errc::network, fmt::format("write: {}", ec.message()));
      co_return Result<void>{};
    }
    const int fd = connection.socket.native_handle();
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(count));
      } else if (errno == EAGAIN) {
        if (auto ready = co_await wait_for_socket(connection, tcp::socket::wait_write); !ready) co_return ready;
      } else if (errno != EINTR) {
        co_return fail(Errc::network, fmt::format("write: {}", std::strerror(errno)));
      }
    }
    co_return Result<void>{};
  }

  // What has arrived, once something has; empty at the end of the stream. The view is valid until the next suspension.
  Coro<Result<std::string_view>> read_some(Connection& connection) {
    if (connection.tls != nullptr) {
      std::string& buffer = connection.tls_buffer;
      const auto [ec, count] = co_await asio_op<std::size_t>(
          [&](auto handler) {
            connection.tls->async_read_some(asio::buffer(buffer.data(), buffer.size()), std::move(handler));
          },
          [&] { connection.socket.cancel(); });
      // Without close_notify a cut-off cannot be told from an end; the framing of the response decides.
      if (ec == asio::error::eof || ec == asio::ssl::error::stream_truncated) co_return std::string_view{};
      if (ec) co_return fail(Errc::network, fmt::format("read: {}", ec.message()));
      co_return std::string_view(buffer.data(), count);
    }
    const int fd = connection.socket.native_handle();
    for (;;) {
      const ssize_t count = ::recv(fd, shared_buffer_.data(), shared_buffer_.size(), 0);
      if (count >= 0) co_return std::string_view(shared_buffer_.data(), static_cast<std::size_t>(count));
      if (errno == EAGAIN) {
        if (auto ready = co_await wait_for_socket(connection, tcp::socket::wait_read); !ready) {
          co_return std::unexpected(std::move(ready.error()));
        }
      } else if (errno != EINTR) {
        co_return fail(Errc::network, fmt::format("read: {}", std::strerror(errno)));
      }
    }
  }

  Coro<Result<void>> wait_for_socket(Connection& connection, tcp::socket::wait_type what) {
    const error_code ec =
        co_await asio_op<>([&](auto handler) { connection.socket.async_wait(what, std::move(handler)); },
                           [&] { connection.socket.cancel(); });
    if (ec) co_return fail(Errc::network, ec.message());
    co_return Result<void>{};
  }

  // --- what is kept for the next exchange

  ConnectionPtr take_idle(std::string_view site) {
    auto found = by_site_.find(site);
    if (found == by_site_.end()) return nullptr;
    const TimePoint now = EventLoop::current().time();
    ConnectionPtr connection;
    while (connection == nullptr && !found->second.empty()) {
      const IdleList::iterator newest = found->second.back();
      found->second.pop_back();
      if (now - (*newest)->idle_since < options_.keep_alive && is_quiet(**newest)) connection = std::move(*newest);
      idle_.erase(newest);
    }
    if (found->second.empty()) by_site_.erase(found);
    if (connection != nullptr) connection->reused = true;
    return connection;
  }

  // Whether nothing has come since the last response: neither an end, nor bytes that the next would be taken for.
  static bool is_quiet(Connection& connection) {
    if (connection.tls != nullptr) return SSL_pending(connection.tls->native_handle()) == 0;
    char byte;
    const ssize_t count = ::recv(connection.socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

  void put_idle(ConnectionPtr connection) {
    const TimePoint now = EventLoop::current().time();
    connection->idle_since = now;
    idle_.push_back(std::move(connection));
    by_site_[idle_.back()->site].push_back(std::prev(idle_.end()));
    while (!idle_.empty() &&
           (idle_.size() > options_.max_idle || now - idle_.front()->idle_since >= options_.keep_alive)) {
      close_oldest();
    }
  }

  void close_oldest() {
    auto found = by_site_.find(idle_.front()->site);
    std::erase(found->second, idle_.begin());
    if (found->second.empty()) by_site_.erase(found);
    idle_.pop_front();
  }

  std::unique_ptr<ContentDecoder> take_decoder() {
    if (decoders_.empty()) return std::make_unique<ContentDecoder>();
    auto decoder = std::move(decoders_.back());
    decoders_.pop_back();
    return decoder;
  }
  void give_decoder(std::unique_ptr<ContentDecoder> decoder) {
    if (decoders_.size() < kKeptSpares) decoders_.push_back(std::move(decoder));
  }
  std::string take_string() {
    if (strings_.empty()) return {};
    std::string text = std::move(strings_.back());
    strings_.pop_back();
    text.clear();
    return text;
  }
  void give_string(std::string text) {
    if (strings_.size() < kKeptSpares) strings_.push_back(std::move(text));
  }

  static constexpr std::size_t kKeptSpares = 16;

  HttpClientOptions options_;
  AsioBackend& backend_;
  Resolver& resolver_;
  const AddressGuard& guard_;
  const HttpRequestHead request_head_;
  std::unique_ptr<asio::ssl::context> tls_context_;
  std::string shared_buffer_;
  IdleList idle_;  // oldest first
  std::unordered_map<std::string, std::vector<IdleList::iterator>, Hash, std::equal_to<>> by_site_;
  std::vector<std::unique_ptr<ContentDecoder>> decoders_;
  std::vector<std::string> strings_;
};

HttpClient::HttpClient(HttpClientOptions options, AsioBackend& backend, Resolver& resolver, const AddressGuard& guard)
    : impl_(std::make_unique<Impl>(std::move(options), backend, resolver, guard)) {}
HttpClient::~HttpClient() = default;

Coro<Result<void>> HttpClient::send(const HttpRequest& request, HttpResponse& response) {
  return impl_->send(request, response);
}
std::size_t HttpClient::idle_connections() const noexcept { return impl_->idle_connections(); }
std::uint64_t HttpClient::connections_opened() const noexcept { return impl_->connections_opened; }
void HttpClient::close_idle() { impl_->close_idle(); }

Coro<Result<void>> send_following_redirects(HttpTransport& transport, HttpRequest& request, HttpResponse& response,
                                            int max_redirects, std::function<void()> after_each) {
  for (int hops = 0;; ++hops) {
    auto sent = co_await transport.send(request, response);
    if (sent && after_each) after_each();
    if (sent && !response.damage.empty()) {
      co_return fail(Errc::network, fmt::format("{}: {}", request.url.site_key(), response.damage));
    }
    if (!sent || !is_redirect(response.status) || response.headers.location.empty()) co_return sent;
    if (hops == max_redirects) {
      co_return fail(Errc::not_found, fmt::format("{}: more than {} redirects", request.url.href(), max_redirects));
    }
    auto next = Url::parse(response.headers.location, &request.url);
    if (!next || (next->scheme() != "http" && next->scheme() != "https")) {
      co_return fail(Errc::protocol, fmt::format("{}: redirect to {}, which is no http URL", request.url.href(),
                                                 in_quotes(without_credentials(response.headers.location))));
    }
    next->strip_credentials();
    request.url = std::move(*next);
  }
}

}  // namespace argiope
