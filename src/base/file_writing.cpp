#include "base/internal/file_writing.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace argiope {
namespace {

// Not stat(): Linux gives a file whose times have been asked for new ones with its next write, and so each sync of a
// log would write its inode too.
std::optional<FileNumber> number_of_file(int directory, const char* name, int flags) noexcept {
  struct statx found {};
  if (::statx(directory, name, flags, STATX_INO, &found) != 0) return std::nullopt;
  return FileNumber{found.stx_dev_major, found.stx_dev_minor, found.stx_ino};
}

std::optional<std::uint64_t> size_of_file(int descriptor) noexcept {
  struct statx found {};
  if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_SIZE, &found) != 0) return std::nullopt;
  return found.stx_size;
}

// Numbers of files are given again after their end, times of birth are not.
std::string identity_of_file(int directory, const char* name, int flags) {
  struct statx found {};
  if (::statx(directory, name, flags, STATX_INO | STATX_BTIME, &found) != 0) return {};
  std::string identity = fmt::format("{}", found.stx_ino);
  if ((found.stx_mask & STATX_BTIME) != 0) {
    identity += fmt::format("-{}.{:09}", found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
  }
  return identity;
}

}  // namespace

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

std::string folder_holding(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Result<void> sync_folder_of(const std::string& path) {
  const std::string folder = folder_holding(path);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return file_trouble(folder, "synced");
  const bool is_synced = ::fsync(descriptor) == 0;
  const int number = errno;
  ::close(descriptor);
  errno = number;
  return is_synced ? Result<void>{} : file_trouble(folder, "synced");
}

std::optional<FileNumber> file_number_of(const std::string& path) noexcept {
  return number_of_file(AT_FDCWD, path.c_str(), 0);
}
std::optional<FileNumber> file_number_of(int descriptor) noexcept {
  return number_of_file(descriptor, "", AT_EMPTY_PATH);
}

std::string file_identity_of(const std::string& path) { return identity_of_file(AT_FDCWD, path.c_str(), 0); }
std::string file_identity_of(int descriptor) { return identity_of_file(descriptor, "", AT_EMPTY_PATH); }

Result<void> expect_in_place(int descriptor, const std::string& path, std::string_view shown, std::uint64_t written) {
  const auto ours = file_number_of(descriptor);
  if (!ours) return {};
  const auto theirs = file_number_of(path);
  if (!theirs)
    return fail(Errc::io, fmt::format("{}: it was deleted while it was in use ({})", shown, std::strerror(errno)));
  if (ours != theirs)
    return fail(Errc::io, fmt::format("{}: it was replaced by another file while it was in use", shown));
  const auto size = written > 0 ? size_of_file(descriptor) : std::nullopt;
  if (!size || *size >= written) return {};
  return fail(Errc::io, fmt::format("{}: another program cut it while it was in use: {} of {} bytes are left", shown,
                                    *size, written));
}

}  // namespace argiope
