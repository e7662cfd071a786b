#include "base/internal/file_reading.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace argiope {
namespace {

class ReadFile {
 public:
  explicit ReadFile(const std::string& path) noexcept : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) {}
  ~ReadFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;
  int get() const noexcept { return descriptor_; }

 private:
  const int descriptor_;
};

std::unexpected<Error> why_unread() {
  const int error = errno;
  return fail(error == ENOENT ? Errc::not_found : Errc::io, std::strerror(error));
}

// What this process was given open: `<(generate)` is a name of that kind.
bool is_name_of_open_file(std::string_view path) noexcept {
  constexpr std::string_view kPlaces[] = {"/dev/fd/", "/proc/self/fd/"};
  return path == "/dev/stdin" || std::ranges::any_of(kPlaces, [&](std::string_view place) { return path.starts_with(place); });
}

bool is_null_device(const struct ::stat& status) noexcept { return S_ISCHR(status.st_mode) && status.st_rdev == ::makedev(1, 3); }

// `status`: of the file of that name.
Result<void> may_read_file(const std::string& path, const struct ::stat& status, FileReading reading) {
  if (S_ISREG(status.st_mode)) return {};
  if (reading == FileReading::again) return fail(Errc::refused, "is not a plain file: it cannot be read again");
  if (S_ISDIR(status.st_mode)) return fail(Errc::io, std::strerror(EISDIR));
  if (is_name_of_open_file(path) || is_null_device(status)) return {};
  return fail(Errc::refused, "is not a plain file, nor a pipe that was opened for this process");
}

// A piece at a time: hundreds of small files are kept.
Result<std::string> read_open_file(int descriptor, std::size_t most_bytes) {
  std::string text;
  char piece[16 * 1024];
  for (;;) {
    const ssize_t count = ::read(descriptor, piece, sizeof piece);
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return why_unread();
    text.append(piece, static_cast<std::size_t>(count));
    if (text.size() > most_bytes) return fail(Errc::too_large, fmt::format("more than {} bytes", most_bytes));
  }
}

}  // namespace

Result<void> expect_readable_file(const std::string& path, FileReading reading) {
  struct ::stat status {};
  return ::stat(path.c_str(), &status) == 0 ? may_read_file(path, status, reading) : why_unread();
}

Result<std::string> read_file_text(const std::string& path, std::size_t most_bytes, FileReading reading) {
  // Looked at before it is opened: to open a pipe lets its writer go on, and to open a device may do anything.
  if (auto good = expect_readable_file(path, reading); !good) return std::unexpected(std::move(good.error()));
  const ReadFile file(path);
  struct ::stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return why_unread();
  if (auto good = may_read_file(path, status, reading); !good) return std::unexpected(std::move(good.error()));
  if (::fcntl(file.get(), F_SETFL, ::fcntl(file.get(), F_GETFL) & ~O_NONBLOCK) != 0) return why_unread();
  return read_open_file(file.get(), most_bytes);
}

Result<std::string> read_standard_input(std::size_t most_bytes) { return read_open_file(STDIN_FILENO, most_bytes); }

}  // namespace argiope
