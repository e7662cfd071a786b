// Addresses of sockets: from text, to text, and from host names.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

namespace argiope::detail {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const noexcept { return storage.ss_family; }
  // 0 for what has no port.
  std::uint16_t port() const noexcept;
  // As Stream::peer_name().
  std::string name() const;
};

// "127.0.0.1", "::1", "fe80::1%eth0", or "localhost", which is both loopback addresses; empty for another name.
std::vector<SocketAddress> numeric_addresses(const std::string& host, std::uint16_t port);
// Asks the system's resolver, and blocks meanwhile. Throws std::runtime_error when it knows no address.
std::vector<SocketAddress> look_up(const std::string& host, std::uint16_t port);
// Throws std::invalid_argument when it is too long or empty.
SocketAddress unix_address(const std::string& path);

}  // namespace argiope::detail
