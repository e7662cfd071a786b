#include "base/internal/output_place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

namespace argiope {
namespace {

constexpr int kMostLinks = 40;               // as Linux has it
constexpr std::size_t kMostNameBytes = 200;  // of a name to which an ending is added: a name has at most 255
constexpr int kMostNamesBeside = 10'000;

// N of /dev/fd/N and of its other names.
std::optional<int> named_descriptor(const std::string& path) {
  const std::string plain = std::filesystem::path(path).lexically_normal().string();
  for (const std::string& folder : {std::string("/dev/fd/"), std::string("/proc/self/fd/"),
                                    std::string("/proc/thread-self/fd/"), fmt::format("/proc/{}/fd/", ::getpid())}) {
    if (!plain.starts_with(folder)) continue;
    const std::string_view digits = std::string_view(plain).substr(folder.size());
    int number = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc{} && end == digits.data() + digits.size() && number >= 0) return number;
  }
  return std::nullopt;
}

// The name that the last link leads to, whether there is anything or not.
std::string with_links_followed(std::string path) {
  for (int links = 0; links < kMostLinks && !named_descriptor(path); ++links) {
    std::error_code failed;
    const std::filesystem::path target = std::filesystem::read_symlink(path, failed);
    if (failed) break;
    path = (std::filesystem::path(path).parent_path() / target).string();  // an absolute target replaces all of it
  }
  return path;
}

// Those that this process has opened itself are nobody's output: they are closed when a program is started, and have
// the mark of it.
std::expected<OutputPlace, int> place_of_descriptor(int number, std::string path) {
  const int flags = ::fcntl(number, F_GETFD);
  if (flags < 0 || (flags & FD_CLOEXEC) != 0) return std::unexpected(EBADF);
  return OutputPlace{.kind = OutputPlace::Kind::written_into, .path = std::move(path), .descriptor = number};
}

// As containers have single files of the machine: no other file can take the name.
bool is_mounted(const std::string& path) {
  struct statx about {};
  return ::statx(AT_FDCWD, path.c_str(), 0, STATX_INO, &about) == 0 &&
         (about.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

bool is_same_file(const struct stat& found, const std::string& path) {
  struct stat other {};
  return ::lstat(path.c_str(), &other) == 0 && other.st_dev == found.st_dev && other.st_ino == found.st_ino;
}

std::string path_beside(const std::string& path, const std::string& ending, int number) {
  const std::filesystem::path whole(path);
  const std::string name = whole.filename().string().substr(0, kMostNameBytes);
  return (whole.parent_path() / (number == 1 ? name + ending : fmt::format("{}{}-{}", name, ending, number))).string();
}

}  // namespace

std::expected<OutputPlace, int> find_output_place(const std::string& path) {
  if (path == "-")
    return OutputPlace{.kind = OutputPlace::Kind::written_into, .path = path, .descriptor = STDOUT_FILENO};
  std::string followed = with_links_followed(path);
  if (const auto number = named_descriptor(followed)) return place_of_descriptor(*number, std::move(followed));
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    if (errno != ENOENT) return std::unexpected(errno);
    return OutputPlace{.kind = OutputPlace::Kind::fresh, .path = std::move(followed)};
  }
  if (S_ISDIR(found.st_mode)) return std::unexpected(EISDIR);
  if (S_ISSOCK(found.st_mode)) return std::unexpected(ENXIO);  // as open() of one fails
  OutputPlace place{.kind = OutputPlace::Kind::written_into,
                    .path = path,
                    .is_file = S_ISREG(found.st_mode),
                    .mode = found.st_mode & 07777,
                    .owner = found.st_uid,
                    .group = found.st_gid};
  if (!place.is_file || !is_same_file(found, followed) || is_mounted(followed)) return place;
  place.kind = OutputPlace::Kind::plain;
  place.path = std::move(followed);
  return place;
}

std::FILE* open_beside(const std::string& path, const std::string& ending, mode_t mode, std::string& name) {
  for (int number = 1; number <= kMostNamesBeside; ++number) {
    name = path_beside(path, ending, number);
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) return nullptr;
    if (std::FILE* const file = ::fdopen(descriptor, "wb")) return file;
    ::close(descriptor);
    return nullptr;
  }
  return nullptr;
}

}  // namespace argiope
