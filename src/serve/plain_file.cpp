#include "serve/plain_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "base/internal/printable.hpp"

namespace argiope {

std::unexpected<Error> io_error(const std::string& path, std::string_view what) {
  const int failure = errno;
  return fail(failure == ENOSPC || failure == EDQUOT ? Errc::disk_full : Errc::io,
              fmt::format("{}: {}: {}", printable(path), what, std::generic_category().message(failure)));
}

Result<std::string> read_all(const Descriptor& file, const std::string& path, std::size_t most) {
  std::string text;
  char buffer[16 * 1024];
  for (;;) {
    const ssize_t read = ::read(file.get(), buffer, sizeof buffer);
    if (read == 0) return text;
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return io_error(path, "cannot be read");
    text.append(buffer, static_cast<std::size_t>(read));
    if (text.size() > most) return fail(Errc::too_large, fmt::format("{}: too large", printable(path)));
  }
}

Result<void> write_all(const Descriptor& file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error(path, "cannot be written");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fdatasync(file.get()) != 0) return io_error(path, "cannot be written");
  return {};
}

// The name lasts only when the folder is synced too.
Result<void> sync_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || ::fsync(opened.get()) != 0) return io_error(folder, "cannot be synced");
  return {};
}

Result<void> replace_file(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new";
  ::unlink(fresh.c_str());  // of one who was killed
  {
    const Descriptor file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return io_error(fresh, "cannot be made");
    if (auto written = write_all(file, text, fresh); !written) {
      ::unlink(fresh.c_str());
      return written;
    }
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return io_error(path, "cannot be replaced");
  return sync_folder_of(path);
}

}  // namespace argiope
