// UnixPath: the file of a Unix socket that a server listens at: looked at before it is replaced, kept from other
// servers, and removed.
#pragma once

#include <sys/types.h>

#include <string>

#include "async/unique_fd.hpp"

namespace argiope::detail {

// While a server has a path, `PATH.lock` beside it is locked, so that of two that start together one is refused. The
// kernel frees the lock of a process that dies; the file goes with the path.
//
// Threads: one at a time.
class UnixPath {
 public:
  // No path: a socket of another kind, or a name that is no file.
  UnixPath() = default;
  // Takes the path: a socket that nobody answers at is removed; any other file is left alone, and bind() will refuse
  // it.
  // Errors: std::system_error, address in use: another server answers there, or has the lock.
  explicit UnixPath(std::string path);
  UnixPath(UnixPath&& other) noexcept;
  UnixPath& operator=(UnixPath&& other) noexcept;
  ~UnixPath() { remove(); }

  // Our socket is bound to it now: which file is ours, so that another server's is not removed.
  void note_bound() noexcept;
  // Removes our socket and the lock. Does nothing the second time.
  void remove() noexcept;

 private:
  void lock();

  std::string path_;  // empty: none
  UniqueFd lock_;
  bool is_bound_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace argiope::detail
