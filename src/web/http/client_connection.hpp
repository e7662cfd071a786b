// One connection of HttpClient: a socket, with TLS on it once or, through a proxy that speaks TLS, twice.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/async/coro.hpp"
#include "argiope/base/clock.hpp"
#include "argiope/base/error.hpp"
#include "argiope/web/detail/ip_address.hpp"
#include "argiope/web/detail/proxy.hpp"
#include "argiope/web/http.hpp"
#include "web/net/client_tls.hpp"
#include "web/net/wire.hpp"

namespace argiope {

// Errors:  network, unless said otherwise.
// Cancel:  throws CancelledError; of what was read nothing is lost.
// Threads: the loop's own.
class ClientConnection {
 public:
  explicit ClientConnection(boost::asio::io_context& context);
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  // Call it first, and once.
  Coro<Result<void>> connect(const IpAddress& address, std::uint16_t port);
  // On what is there; `is_known`, `offer` and `verifies` are ClientTls::over()'s.
  // Errors: tls, when the server's certificate is refused or it speaks no TLS; invalid_input, of the client's own
  // files.
  Coro<Result<void>> start_tls(ClientTls& tls, std::string_view host, bool is_known, TlsOffer offer = TlsOffer::http1,
                               bool verifies = true);
  // Whether the server has chosen HTTP/2. Ask after start_tls().
  bool speaks_http2() const noexcept { return !layers_.empty() && layers_.back()->has_chosen_http2(); }

  // Errors of this and read_some(): tls, when the server wants another certificate of ours.
  Coro<Result<void>> write_all(std::string_view bytes);
  // Waits until something has arrived: how much. 0: the server says no more.
  Coro<Result<std::size_t>> read_some(std::span<char> out);
  // The same without waiting.
  WireStep read_now(std::span<char> out) noexcept { return wire_->read(out.data(), out.size()); }
  WireStep write_now(std::string_view bytes) noexcept { return wire_->write(bytes.data(), bytes.size()); }
  // Until the step may be tried again; now and then earlier. `step` wants to read or to write.
  Coro<Result<void>> wait_for(WireStep step);
  // The same for who is no task: calls `ready` once, unless the connection is destroyed before.
  template <class Ready>
  void when_ready(WireStep step, Ready ready) {
    socket_.async_wait(kind_of(step),
                       [ready = std::move(ready)](const boost::system::error_code&) mutable { ready(); });
  }
  Error broken(std::string_view doing) const;
  // Whether nothing has come that nobody has asked for: neither an end, nor bytes that the next answer would be taken
  // for.
  bool is_quiet() noexcept { return wire_->is_quiet(); }

  // Where it is connected to: the server, or the proxy that looks up its name.
  IpAddress remote;
  // Connections with the same key serve the same requests.
  std::string key;
  // The proxy that is asked for whole URLs, as one connection for all servers; null: the server itself is asked.
  const Proxy* asked_proxy = nullptr;
  // Of the request that it was opened for; holds the proxy, if that is its own.
  std::shared_ptr<const HttpWay> way;
  TimePoint idle_since;
  bool reused = false;

 private:
  static boost::asio::ip::tcp::socket::wait_type kind_of(WireStep step) noexcept {
    return step.outcome == WireStep::Outcome::wants_write ? boost::asio::ip::tcp::socket::wait_write
                                                          : boost::asio::ip::tcp::socket::wait_read;
  }
  class SocketWire final : public Wire {
   public:
    WireStep read(char* out, std::size_t size) noexcept override;
    WireStep write(const char* bytes, std::size_t size) noexcept override;
    bool is_quiet() noexcept override;
    std::string why_broken() const override;
    int fd = -1;

   private:
    WireStep step_after(WireStep::Outcome when_blocked) noexcept;
    int error_ = 0;
  };

  boost::asio::ip::tcp::socket socket_;
  SocketWire socket_wire_;
  std::vector<std::unique_ptr<TlsWire>> layers_;  // each on the one before
  Wire* wire_ = &socket_wire_;                    // the last of them
};
using ConnectionPtr = std::unique_ptr<ClientConnection>;

}  // namespace argiope
