#include "async/unix_path.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "async/socket_address.hpp"

namespace argiope::detail {
namespace {

[[noreturn]] void refuse_as_taken(const std::string& path) {
  throw std::system_error(EADDRINUSE, std::generic_category(), "listen at unix:" + path);
}

std::string lock_of(const std::string& path) { return path + ".lock"; }

// Whether a server may listen at the socket that lies there. A queue of clients that is full answers EAGAIN.
bool is_answered(const std::string& path) {
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) throw std::system_error(errno, std::generic_category(), "socket");
  const SocketAddress address = unix_address(path);
  const int failed = ::connect(fd.get(), address.get(), address.size) != 0 ? errno : 0;
  return failed != ECONNREFUSED && failed != ENOENT;
}

bool is_same_file(const std::string& path, int fd) noexcept {
  struct stat there {
  }, ours{};
  return ::stat(path.c_str(), &there) == 0 && ::fstat(fd, &ours) == 0 && there.st_dev == ours.st_dev &&
         there.st_ino == ours.st_ino;
}

}  // namespace

// As it is whole before it begins, what it throws lets go of the lock.
UnixPath::UnixPath(std::string path) : UnixPath() {
  path_ = std::move(path);
  lock();
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  if (is_answered(path_)) refuse_as_taken(path_);
  ::unlink(path_.c_str());
}

UnixPath::UnixPath(UnixPath&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      lock_(std::move(other.lock_)),
      is_bound_(std::exchange(other.is_bound_, false)),
      device_(other.device_),
      inode_(other.inode_) {}

UnixPath& UnixPath::operator=(UnixPath&& other) noexcept {
  if (this == &other) return *this;
  remove();
  path_ = std::exchange(other.path_, {});
  lock_ = std::move(other.lock_);
  is_bound_ = std::exchange(other.is_bound_, false);
  device_ = other.device_;
  inode_ = other.inode_;
  return *this;
}

// One that lets go of it removes the file, so that what was locked may be another file by now. Where none can be made
// there is only the look at who answers.
void UnixPath::lock() {
  const std::string name = lock_of(path_);
  for (;;) {
    UniqueFd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!fd) return;
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) refuse_as_taken(path_);
      return;
    }
    if (!is_same_file(name, fd.get())) continue;
    lock_ = std::move(fd);
    return;
  }
}

void UnixPath::note_bound() noexcept {
  struct stat status {};
  if (path_.empty() || ::stat(path_.c_str(), &status) != 0) return;
  is_bound_ = true;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

void UnixPath::remove() noexcept {
  struct stat status {};
  const bool is_there = is_bound_ && ::stat(path_.c_str(), &status) == 0;
  if (is_there && status.st_dev == device_ && status.st_ino == inode_) ::unlink(path_.c_str());
  // A file of that name that is not empty was none of ours before.
  const bool is_empty = lock_ && ::fstat(lock_.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0;
  if (is_empty) ::unlink(lock_of(path_).c_str());
  lock_.reset();
  path_.clear();
  is_bound_ = false;
}

}  // namespace argiope::detail
