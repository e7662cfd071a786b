// Descriptors for tests: pipes and socket pairs that close themselves.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "async/unique_fd.hpp"

namespace argiope {

struct DescriptorPair {
  detail::UniqueFd first;
  detail::UniqueFd second;
};

// first: to read from; second: to write to. Blocking.
inline DescriptorPair make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  return {detail::UniqueFd(ends[0]), detail::UniqueFd(ends[1])};
}

inline DescriptorPair make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("socketpair");
  return {detail::UniqueFd(ends[0]), detail::UniqueFd(ends[1])};
}

inline void put_bytes(const detail::UniqueFd& fd, std::string_view bytes) {
  if (::write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("write");
  }
}

// True when a read would not wait.
inline bool has_input(const detail::UniqueFd& fd) {
  pollfd entry{fd.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

// Some of what there is, without waiting; "" when there is nothing, or the end.
inline std::string take_bytes(const detail::UniqueFd& fd) {
  if (!has_input(fd)) return "";
  char buffer[4096];
  const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
  return count > 0 ? std::string(buffer, static_cast<std::size_t>(count)) : "";
}

inline bool is_at_end(const detail::UniqueFd& fd) { return has_input(fd) && take_bytes(fd).empty(); }

// Fills a pipe until it takes no more.
inline void fill_up(const detail::UniqueFd& fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK);
  const std::string block(4096, 'x');
  while (::write(fd.get(), block.data(), block.size()) > 0) {
  }
  ::fcntl(fd.get(), F_SETFL, flags);
}

inline bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
inline bool is_blocking(const detail::UniqueFd& fd) { return (::fcntl(fd.get(), F_GETFL) & O_NONBLOCK) == 0; }

}  // namespace argiope
