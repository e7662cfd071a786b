#include "base/internal/file_reading.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/internal/null_device.hpp"

namespace argiope {
namespace {

std::unexpected<Error> why_unread() {
  const int error = errno;
  return fail(error == ENOENT ? Errc::not_found : Errc::io, std::strerror(error));
}

// Files that this process was given open: `<(generate)` is a name of that kind.
bool is_name_of_open_file(std::string_view path) noexcept {
  constexpr std::string_view kPlaces[] = {"/dev/fd/", "/proc/self/fd/"};
  return path == "/dev/stdin" ||
         std::ranges::any_of(kPlaces, [&](std::string_view place) { return path.starts_with(place); });
}

// `status`: of the file of that name.
Result<void> may_read_file(const std::string& path, const struct ::stat& status, FileReading reading) {
  if (S_ISREG(status.st_mode)) return {};
  if (reading == FileReading::again) return fail(Errc::refused, "is not a plain file: it cannot be read again");
  if (S_ISDIR(status.st_mode)) return fail(Errc::io, std::strerror(EISDIR));
  if (is_name_of_open_file(path) || is_null_device(status)) return {};
  if (reading == FileReading::stream && S_ISFIFO(status.st_mode)) return {};
  return fail(Errc::refused, "is not a plain file, nor a pipe that was opened for this process");
}

}  // namespace

Result<void> expect_readable_file(const std::string& path, FileReading reading) {
  struct ::stat status {};
  return ::stat(path.c_str(), &status) == 0 ? may_read_file(path, status, reading) : why_unread();
}

Result<InputFile> InputFile::open(const std::string& path, FileReading reading) {
  // Looked at before it is opened: to open a pipe lets its writer go on, and to open a device may do anything.
  if (auto good = expect_readable_file(path, reading); !good) return std::unexpected(std::move(good.error()));
  const int waiting = reading == FileReading::stream ? 0 : O_NONBLOCK;
  InputFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | waiting), true);
  struct ::stat status {};
  if (file.descriptor_ < 0 || ::fstat(file.descriptor_, &status) != 0) return why_unread();
  if (auto good = may_read_file(path, status, reading); !good) return std::unexpected(std::move(good.error()));
  if (::fcntl(file.descriptor_, F_SETFL, ::fcntl(file.descriptor_, F_GETFL) & ~O_NONBLOCK) != 0) return why_unread();
  return file;
}

InputFile InputFile::standard_input() noexcept { return InputFile(STDIN_FILENO, false); }

InputFile::~InputFile() {
  if (is_own_ && descriptor_ >= 0) ::close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), is_own_(other.is_own_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(is_own_, other.is_own_);
  return *this;
}

Result<std::size_t> InputFile::read(std::span<char> to) const {
  for (;;) {
    const ssize_t count = ::read(descriptor_, to.data(), to.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    // Another process that has the same pipe may have made it not to block.
    pollfd end{.fd = descriptor_, .events = POLLIN, .revents = 0};
    if (errno == EAGAIN) {
      (void)::poll(&end, 1, -1);
    } else if (errno != EINTR) {
      return why_unread();
    }
  }
}

// A piece at a time: hundreds of small files are kept.
Result<std::string> InputFile::read_text(std::size_t most_bytes) const {
  std::string text;
  char piece[16 * 1024];
  for (;;) {
    const auto count = read(piece);
    if (!count) return std::unexpected(count.error());
    if (*count == 0) return text;
    text.append(piece, *count);
    if (text.size() > most_bytes) return fail(Errc::too_large, fmt::format("more than {} bytes", most_bytes));
  }
}

Result<std::string> read_file_text(const std::string& path, std::size_t most_bytes, FileReading reading) {
  const auto file = InputFile::open(path, reading);
  return file ? file->read_text(most_bytes) : std::unexpected(file.error());
}

Result<std::string> read_standard_input(std::size_t most_bytes) {
  return InputFile::standard_input().read_text(most_bytes);
}

}  // namespace argiope
