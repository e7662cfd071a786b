#include "web/http/client_connection.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/error.hpp>
#include <cerrno>
#include <cstring>

#include "argiope/async/asio_backend.hpp"

namespace argiope {
namespace {

using boost::asio::ip::tcp;

tcp::endpoint endpoint_of(const IpAddress& address, std::uint16_t port) {
  if (address.is_v4()) {
    boost::asio::ip::address_v4::bytes_type bytes;
    std::memcpy(bytes.data(), address.bytes().data(), bytes.size());
    return {boost::asio::ip::address_v4{bytes}, port};
  }
  boost::asio::ip::address_v6::bytes_type bytes;
  std::memcpy(bytes.data(), address.bytes().data(), bytes.size());
  return {boost::asio::ip::address_v6{bytes}, port};
}

}  // namespace

// --- the socket's bytes

WireStep ClientConnection::SocketWire::step_after(WireStep::Outcome when_blocked) noexcept {
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {when_blocked, 0};
  error_ = errno;
  return {WireStep::Outcome::broken, 0};
}

WireStep ClientConnection::SocketWire::read(char* out, std::size_t size) noexcept {
  for (;;) {
    const ssize_t count = ::recv(fd, out, size, 0);
    if (count > 0) return {WireStep::Outcome::done, static_cast<std::size_t>(count)};
    if (count == 0) return {WireStep::Outcome::ended, 0};
    if (errno != EINTR) return step_after(WireStep::Outcome::wants_read);
  }
}

WireStep ClientConnection::SocketWire::write(const char* bytes, std::size_t size) noexcept {
  for (;;) {
    const ssize_t count = ::send(fd, bytes, size, MSG_NOSIGNAL);
    if (count >= 0) return {WireStep::Outcome::done, static_cast<std::size_t>(count)};
    if (errno != EINTR) return step_after(WireStep::Outcome::wants_write);
  }
}

bool ClientConnection::SocketWire::is_quiet() noexcept {
  char byte = 0;
  const ssize_t count = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

std::string ClientConnection::SocketWire::why_broken() const { return std::strerror(error_); }

// --- opening

ClientConnection::ClientConnection(boost::asio::io_context& context) : socket_(context) {}

Coro<Result<void>> ClientConnection::connect(const IpAddress& address, std::uint16_t port) {
  remote = address;
  const tcp::endpoint endpoint = endpoint_of(address, port);
  boost::system::error_code ec;
  socket_.open(endpoint.protocol(), ec);
  if (ec) co_return fail(Errc::network, ec.message());
  ec = co_await asio_op<>([&](auto handler) { socket_.async_connect(endpoint, std::move(handler)); },
                          [&] { socket_.cancel(); });
  if (ec) co_return fail(Errc::network, ec.message());
  socket_.set_option(tcp::no_delay(true), ec);
  socket_.native_non_blocking(true, ec);
  socket_wire_.fd = socket_.native_handle();
  co_return Result<void>{};
}

Coro<Result<void>> ClientConnection::start_tls(ClientTls& tls, std::string_view host, bool is_known, TlsOffer offer,
                                               bool verifies) {
  auto layer = tls.over(*wire_, host, is_known, offer, verifies);
  if (!layer) co_return std::unexpected(std::move(layer.error()));
  TlsWire& wire = **layer;
  layers_.push_back(std::move(*layer));
  wire_ = &wire;
  for (;;) {
    const WireStep step = wire.shake_hands();
    if (step.outcome == WireStep::Outcome::done) co_return Result<void>{};
    if (!wire.certificate_trouble().empty()) {
      co_return fail(Errc::tls, fmt::format("certificate refused: {}", wire.certificate_trouble()));
    }
    if (step.outcome == WireStep::Outcome::ended) {
      co_return fail(Errc::network, "TLS handshake: the connection was closed");
    }
    if (step.outcome == WireStep::Outcome::broken) {
      if (wire.broke_below()) co_return fail(Errc::network, fmt::format("TLS handshake: {}", wire.why_broken()));
      co_return fail(Errc::tls, fmt::format("TLS handshake failed: {}", wire.why_broken()));
    }
    if (auto ready = co_await wait_for(step); !ready) co_return ready;
  }
}

// --- bytes

Error ClientConnection::broken(std::string_view doing) const {
  const bool is_unwelcome = !layers_.empty() && layers_.back()->is_unwelcome();
  return {is_unwelcome ? Errc::tls : Errc::network, fmt::format("{}: {}", doing, wire_->why_broken())};
}

Coro<Result<void>> ClientConnection::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const WireStep step = write_now(bytes);
    if (step.outcome == WireStep::Outcome::done) {
      bytes.remove_prefix(step.bytes);
    } else if (step.outcome == WireStep::Outcome::ended) {
      co_return fail(Errc::network, "write: the connection was closed");
    } else if (step.outcome == WireStep::Outcome::broken) {
      co_return std::unexpected(broken("write"));
    } else if (auto ready = co_await wait_for(step); !ready) {
      co_return ready;
    }
  }
  co_return Result<void>{};
}

Coro<Result<std::size_t>> ClientConnection::read_some(std::span<char> out) {
  for (;;) {
    const WireStep step = read_now(out);
    if (step.outcome == WireStep::Outcome::done) co_return step.bytes;
    if (step.outcome == WireStep::Outcome::ended) co_return std::size_t{0};
    if (step.outcome == WireStep::Outcome::broken) co_return std::unexpected(broken("read"));
    if (auto ready = co_await wait_for(step); !ready) co_return std::unexpected(std::move(ready.error()));
  }
}

Coro<Result<void>> ClientConnection::wait_for(WireStep step) {
  const boost::system::error_code ec = co_await asio_op<>(
      [&](auto handler) { socket_.async_wait(kind_of(step), std::move(handler)); }, [&] { socket_.cancel(); });
  // Another wait at this socket was cancelled, and takes this one with it.
  if (ec && ec != boost::asio::error::operation_aborted) co_return fail(Errc::network, ec.message());
  co_return Result<void>{};
}

}  // namespace argiope
