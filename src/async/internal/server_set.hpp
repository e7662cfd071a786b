// ServerSet: the addresses that one server listens at, taken up one by one and given up together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "argiope/async/stream.hpp"

namespace argiope::detail {

// Errors:   listening throws what start_server() throws, and std::logic_error after close().
// Lifetime: its servers keep the handlers they are given, and what those keep; forget() lets go of them.
// Threads:  the loop's own.
class ServerSet {
 public:
  // `owner`: what is said to have been stopped, when one listens afterwards: "an HTTP server".
  ServerSet(std::string owner, ServerOptions options) : owner_(std::move(owner)), options_(options) {}

  // Takes clients from now on, as start_server() and start_unix_server() do. The port.
  std::uint16_t listen(ConnectionHandler handler, const std::string& host, std::uint16_t port);
  void listen_unix(ConnectionHandler handler, const std::string& path);
  // Takes `fd`, whatever it throws.
  void listen_at(ConnectionHandler handler, int fd);

  // Takes no more clients, at once and for good.
  void close();
  bool is_closed() const noexcept { return is_closed_; }
  void abort_clients();
  void forget() { servers_.clear(); }
  // Clients being served.
  std::size_t connections() const;
  // Suspends until all clients of a set that is closed have gone, for `limit` at most; whether they have.
  // Lifetime: the set outlives it.
  Coro<bool> all_gone(Duration limit);

 private:
  void require_open() const;

  const std::string owner_;
  const ServerOptions options_;
  std::vector<Server> servers_;
  bool is_closed_ = false;
};

}  // namespace argiope::detail
