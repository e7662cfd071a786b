// open_connection and open_unix_connection.
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <stdexcept>
#include <utility>
#include <vector>

#include "argiope/async/stream.hpp"
#include "argiope/async/threads.hpp"
#include "async/socket_address.hpp"
#include "async/stream_state.hpp"

namespace argiope {

using detail::SocketAddress;
using detail::StreamState;
using detail::UniqueFd;

namespace {

Coro<Stream> connect_to(SocketAddress address, StreamOptions options) {
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) throw std::system_error(errno, std::generic_category(), "socket");
  if (address.family() != AF_UNIX) {
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  // Interrupted, it goes on in the background like one that has only begun.
  const bool under_way = ::connect(fd.get(), address.get(), address.size) != 0;
  if (under_way && errno != EINPROGRESS && errno != EINTR) {
    throw std::system_error(errno, std::generic_category());
  }
  auto state = std::make_shared<StreamState>(std::move(fd), EventLoop::current().backend(), options);
  // Owned from here on, so that giving up closes the descriptor.
  Stream stream(state);
  if (under_way) co_await StreamState::connected(state);
  co_return stream;
}

Coro<std::vector<SocketAddress>> addresses_of(std::string host, std::uint16_t port, ThreadPoolExecutor* resolver) {
  std::vector<SocketAddress> addresses = detail::numeric_addresses(host, port);
  if (!addresses.empty()) co_return addresses;
  if (host.empty()) throw std::invalid_argument("open_connection needs a host");
  ThreadPoolExecutor& executor = resolver != nullptr ? *resolver : EventLoop::current().default_executor();
  auto found = run_in_executor(executor, [host, port] { return detail::look_up(host, port); });
  co_return co_await std::move(found);
}

}  // namespace

Coro<Stream> open_connection(std::string host, std::uint16_t port, StreamOptions options) {
  const std::vector<SocketAddress> addresses = co_await addresses_of(std::move(host), port, options.resolver);
  std::error_code first;
  std::string where;
  for (const SocketAddress& address : addresses) {
    try {
      co_return co_await connect_to(address, options);
    } catch (const std::system_error& error) {
      // The next may answer.
      if (!first) first = error.code();
      if (!where.empty()) where += ", ";
      where += address.name();
    }
  }
  throw std::system_error(first, "connect to " + where);
}

Coro<Stream> open_unix_connection(std::string path, StreamOptions options) {
  const SocketAddress address = detail::unix_address(path);
  try {
    co_return co_await connect_to(address, options);
  } catch (const std::system_error& error) {
    throw std::system_error(error.code(), "connect to " + address.name());
  }
}

}  // namespace argiope
