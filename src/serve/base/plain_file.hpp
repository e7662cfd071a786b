// Small files of the daemon beside its store: replaced as a whole, or written on at their end. All of it blocks.
// base/internal/file_reading.hpp reads them.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "argiope/base/error.hpp"

namespace argiope {

// A file that is open, or none; closed with it.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

// Of `errno`: disk_full or io, with the file's name.
std::unexpected<Error> io_error(const std::string& path, std::string_view what);
// All of it, on the disk. Of what fails, a part may be written.
Result<void> write_all(const Descriptor& file, std::string_view text, const std::string& path);
// The file has this text, which only its owner may read, or what it had before, whenever the process ends. As
// OutputFile has it: a link is followed.
// Errors: io, disk_full; refused for what is no plain file: a pipe would hold up its writer, and nothing could be read
// again.
Result<void> replace_file(const std::string& path, std::string_view text);

}  // namespace argiope
