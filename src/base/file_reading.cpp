#include "base/internal/file_reading.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace argiope {
namespace {

class ReadFile {
 public:
  ReadFile(const std::string& path, int flags) noexcept : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | flags)) {}
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

Result<void> expect_plain(int descriptor) {
  struct ::stat status {};
  if (::fstat(descriptor, &status) != 0) return why_unread();
  if (S_ISREG(status.st_mode)) return {};
  return fail(Errc::refused, "is not a plain file: it cannot be read again");
}

}  // namespace

Result<std::string> read_file_text(const std::string& path, std::size_t most_bytes, FileReading reading) {
  const bool is_again = reading == FileReading::again;
  const ReadFile file(path, is_again ? O_NONBLOCK : 0);
  if (file.get() < 0) return why_unread();
  if (is_again) {
    if (auto plain = expect_plain(file.get()); !plain) return std::unexpected(std::move(plain.error()));
  }
  // A piece at a time: hundreds of small files are kept.
  std::string text;
  char piece[16 * 1024];
  for (;;) {
    const ssize_t count = ::read(file.get(), piece, sizeof piece);
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return why_unread();
    text.append(piece, static_cast<std::size_t>(count));
    if (text.size() > most_bytes) return fail(Errc::too_large, fmt::format("more than {} bytes", most_bytes));
  }
}

}  // namespace argiope
