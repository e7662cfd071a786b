#include "base/internal/file_writing.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace argiope {

std::unexpected<Error> file_trouble(std::string_view file, std::string_view done) {
  const Errc code = errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? Errc::disk_full : Errc::io;
  return fail(code, fmt::format("{}: cannot be {}: {}", file, done, std::strerror(errno)));
}

Result<void> write_all(int descriptor, std::string_view bytes, std::uint64_t offset, const std::string& file) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count =
        ::pwrite(descriptor, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      return file_trouble(file, "written");
    }
  }
  return {};
}

}  // namespace argiope
