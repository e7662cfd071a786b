#include "serve/base/plain_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "base/internal/output_file.hpp"
#include "base/internal/output_place.hpp"
#include "base/internal/printable.hpp"

namespace argiope {

std::unexpected<Error> io_error(const std::string& path, std::string_view what) {
  const int failure = errno;
  return fail(failure == ENOSPC || failure == EDQUOT ? Errc::disk_full : Errc::io,
              fmt::format("{}: {}: {}", printable(path), what, std::generic_category().message(failure)));
}

Result<void> write_all(const Descriptor& file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return io_error(path, "cannot be written");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  // A device or a pipe has no disk to be synced to.
  if (::fdatasync(file.get()) != 0 && errno != EINVAL && errno != EROFS) return io_error(path, "cannot be written");
  return {};
}

Result<void> replace_file(const std::string& path, std::string_view text) {
  const auto place = find_output_place(path);
  if (place && place->kind != OutputPlace::Kind::fresh && !place->is_file) {
    return fail(Errc::refused, fmt::format("{}: not a plain file", printable(path)));
  }
  OutputFile file("", path, OutputFile::Readers::owner);
  file.write(text);
  return file.finish(OutputFile::Survives::machine);
}

}  // namespace argiope
