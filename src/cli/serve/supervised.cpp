#include "cli/serve/supervised.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace argiope {

namespace {

constexpr int kFirstDescriptor = 3;  // SD_LISTEN_FDS_START
constexpr int kMostDescriptors = 1000;

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

long long number_of(const char* name) {
  const std::string_view text = environment(name);
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? number : 0;
}

// For another process: what it was meant for has ended.
bool is_for_us(const char* name) { return environment(name).empty() || number_of(name) == ::getpid(); }

}  // namespace

std::vector<InheritedSocket> take_inherited_sockets() {
  std::vector<InheritedSocket> sockets;
  const long long count = std::min<long long>(number_of("LISTEN_FDS"), kMostDescriptors);
  std::string_view names = environment("LISTEN_FDNAMES");
  for (int i = 0; is_for_us("LISTEN_PID") && i < count; ++i) {
    const std::size_t colon = std::min(names.find(':'), names.size());
    sockets.push_back({std::string(names.substr(0, colon)), kFirstDescriptor + i});
    names.remove_prefix(std::min(colon + 1, names.size()));
    ::fcntl(sockets.back().fd, F_SETFD, FD_CLOEXEC);
  }
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
  return sockets;
}

void tell_supervisor(std::string_view state) {
  const std::string_view path = environment("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path.size() < 2 || path.size() >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) return;
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  ::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), size);
  ::close(fd);
}

std::optional<Duration> watchdog_interval() {
  const long long limit = number_of("WATCHDOG_USEC");
  if (limit <= 0 || !is_for_us("WATCHDOG_PID")) return std::nullopt;
  return std::chrono::microseconds{limit} / 2;
}

}  // namespace argiope
