#include "async/socket_address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "base/internal/printable.hpp"

namespace argiope::detail {
namespace {

// Empty, with `failure` set, when there is none.
std::vector<SocketAddress> ask(const std::string& host, std::uint16_t port, int flags, int& failure) {
  // The system would see only what is before a null byte.
  failure = EAI_NONAME;
  if (host.find('\0') != std::string::npos) return {};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
  if (failure != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(first, &::freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* info = first; info != nullptr; info = info->ai_next) {
    SocketAddress& address = addresses.emplace_back();
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    address.size = info->ai_addrlen;
  }
  return addresses;
}

std::string unix_name(const SocketAddress& address) {
  const auto& path = reinterpret_cast<const sockaddr_un&>(address.storage).sun_path;
  if (address.size <= offsetof(sockaddr_un, sun_path)) return "";  // the unnamed end of a connection
  const std::size_t length = address.size - offsetof(sockaddr_un, sun_path);
  if (path[0] == '\0') return "unix:@" + std::string(path + 1, length - 1);
  return "unix:" + std::string(path, ::strnlen(path, length));
}

}  // namespace

std::uint16_t SocketAddress::port() const noexcept {
  switch (family()) {
    case AF_INET: return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
    case AF_INET6: return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
    default: return 0;
  }
}

std::string SocketAddress::name() const {
  if (family() == AF_UNIX) return unix_name(*this);
  if (family() != AF_INET && family() != AF_INET6) return "";
  char host[INET6_ADDRSTRLEN + 1 + IF_NAMESIZE];
  if (::getnameinfo(get(), size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return family() == AF_INET ? fmt::format("{}:{}", host, port()) : fmt::format("[{}]:{}", host, port());
}

std::vector<SocketAddress> numeric_addresses(const std::string& host, std::uint16_t port) {
  int failure = 0;
  std::vector<SocketAddress> addresses;
  if (host == "localhost") {
    addresses = ask("127.0.0.1", port, AI_NUMERICHOST, failure);
    for (SocketAddress& address : ask("::1", port, AI_NUMERICHOST, failure)) addresses.push_back(address);
  } else if (!host.empty()) {
    addresses = ask(host, port, AI_NUMERICHOST, failure);
  }
  return addresses;
}

std::vector<SocketAddress> look_up(const std::string& host, std::uint16_t port) {
  int failure = 0;
  std::vector<SocketAddress> addresses = ask(host, port, AI_ADDRCONFIG, failure);
  if (addresses.empty()) {
    throw std::runtime_error(fmt::format("host name {}: {}", in_quotes(host), ::gai_strerror(failure)));
  }
  return addresses;
}

SocketAddress unix_address(const std::string& path) {
  SocketAddress address;
  auto& un = reinterpret_cast<sockaddr_un&>(address.storage);
  if (path.find('\0', 1) != std::string::npos && path[0] != '\0') {
    throw std::invalid_argument("null byte in the path of a Unix socket");
  }
  if (path.empty() || path.size() >= sizeof un.sun_path) {
    throw std::invalid_argument(
        fmt::format("a Unix socket's path has 1 to {} bytes, this one {}", sizeof un.sun_path - 1, path.size()));
  }
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, path.data(), path.size());
  // An abstract name ends where its length says, a path with a null byte.
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (path[0] == '\0' ? 0 : 1));
  return address;
}

}  // namespace argiope::detail
