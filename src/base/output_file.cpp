#include "base/internal/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/internal/file_writing.hpp"

namespace argiope {
namespace {

constexpr std::size_t kBufferedBytes = 256 * 1024;
constexpr const char* kPart = ".part";
constexpr mode_t kOwnerAlone = 0700;

std::unexpected<Error> broken(std::string_view what, std::string_view path, int number) {
  const Errc code = number == ENOSPC || number == EDQUOT || number == EFBIG ? Errc::disk_full : Errc::io;
  return fail(code, fmt::format("{}{}{}: {}", what, what.empty() ? "" : " ", path, std::strerror(number)));
}

// Whether writing into what is there may do what replacing it may not.
bool is_forbidden(int number) { return number == EACCES || number == EPERM || number == EROFS; }

// The new file has what the old one had.
bool give_owner_and_mode(int descriptor, const OutputPlace& old, mode_t mode) {
  struct stat made {};
  if (::fstat(descriptor, &made) != 0) return false;
  const bool has_owner = made.st_uid == old.owner && made.st_gid == old.group;
  return (has_owner || ::fchown(descriptor, old.owner, old.group) == 0) && ::fchmod(descriptor, mode) == 0;
}

// Makes a file beside the place as one that would replace it, and takes it away again.
// The system's number; 0: nothing speaks against it.
int try_to_replace(const OutputPlace& place) {
  std::string name;
  std::FILE* const file = open_beside(place.path, ".try", 0600, name);
  if (file == nullptr) return errno;
  const int refused = !place.is_file || give_owner_and_mode(::fileno(file), place, place.mode) ? 0 : errno;
  std::fclose(file);
  std::remove(name.c_str());
  return refused;
}

}  // namespace

OutputFile::OutputFile(std::string what, std::string path, Readers readers)
    : what_(std::move(what)), path_(std::move(path)) {
  auto place = find_output_place(path_);
  if (!place) {
    errno_ = place.error();
    return;
  }
  place_ = std::move(*place);
  file_ = open(readers);
  if (file_ == nullptr) errno_ = errno;
}

OutputFile::~OutputFile() {
  if (file_ == nullptr || is_standard_output()) return;
  std::fclose(file_);
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

std::FILE* OutputFile::open(Readers readers) {
  if (place_.descriptor >= 0) return open_descriptor();
  if (place_.kind == OutputPlace::Kind::written_into) return open_to_write_into(readers);
  std::FILE* const file = open_to_replace(readers);
  return file == nullptr && place_.is_file && is_forbidden(errno) ? open_to_write_into(readers) : file;
}

// It shares the place in the file with the program that gave it.
std::FILE* OutputFile::open_descriptor() const {
  if (place_.descriptor == STDOUT_FILENO) return stdout;
  const int descriptor = ::fcntl(place_.descriptor, F_DUPFD_CLOEXEC, 0);
  std::FILE* const file = descriptor < 0 ? nullptr : ::fdopen(descriptor, "wb");
  if (file == nullptr && descriptor >= 0) ::close(descriptor);
  return file;
}

std::FILE* OutputFile::open_to_replace(Readers readers) {
  const mode_t mode = readers == Readers::owner ? 0600 : 0666;
  std::FILE* const file = open_beside(place_.path, kPart, place_.is_file ? 0600 : mode, temporary_);
  const mode_t kept = readers == Readers::owner ? place_.mode & kOwnerAlone : place_.mode;
  if (file != nullptr && (!place_.is_file || give_owner_and_mode(::fileno(file), place_, kept))) return file;
  const int number = errno;
  if (file != nullptr) std::fclose(file), std::remove(temporary_.c_str());
  temporary_.clear();
  errno = number;
  return nullptr;
}

std::FILE* OutputFile::open_to_write_into(Readers readers) {
  const int descriptor = ::open(place_.path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  is_cut_ = !place_.is_file;
  const bool is_private =
      readers == Readers::all || !place_.is_file || ::fchmod(descriptor, place_.mode & kOwnerAlone) == 0;
  std::FILE* const file = is_private ? ::fdopen(descriptor, "wb") : nullptr;
  if (file == nullptr) ::close(descriptor);
  return file;
}

void OutputFile::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBufferedBytes) flush();
}

void OutputFile::flush() {
  if (ok() && !std::exchange(is_cut_, true) && ::ftruncate(::fileno(file_), 0) != 0) errno_ = errno;
  if (ok() && std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size()) errno_ = errno;
  buffer_.clear();
}

Result<void> OutputFile::finish(Survives survives) {
  flush();
  if (ok() && std::fflush(file_) != 0) errno_ = errno;
  if (file_ != nullptr && !is_standard_output()) take_place(survives);
  return result();
}

// A device or a pipe has no disk to be synced to.
void OutputFile::take_place(Survives survives) {
  const bool is_synced = survives == Survives::machine && place_.descriptor < 0;
  if (ok() && is_synced && ::fdatasync(::fileno(file_)) != 0 && errno != EINVAL && errno != EROFS) errno_ = errno;
  if (std::fclose(std::exchange(file_, nullptr)) != 0 && ok()) errno_ = errno;
  if (temporary_.empty()) return;
  if (ok() && std::rename(temporary_.c_str(), place_.path.c_str()) != 0) errno_ = errno;
  if (!ok()) std::remove(temporary_.c_str());
  if (ok() && is_synced && !sync_folder_of(place_.path)) errno_ = errno;
}

Result<void> OutputFile::check(std::string_view what, const std::string& path, Readers readers) {
  const auto place = find_output_place(path);
  if (!place) return broken(what, path, place.error());
  if (place->descriptor >= 0) return {};
  if (place->kind != OutputPlace::Kind::written_into) {
    const int refused = try_to_replace(*place);
    if (refused == 0) return {};
    if (!place->is_file || !is_forbidden(refused)) return broken(what, path, refused);
  }
  // It is not opened: who reads a pipe would see its end.
  if (::faccessat(AT_FDCWD, place->path.c_str(), W_OK, AT_EACCESS) != 0) return broken(what, path, errno);
  // Its owner alone may change the mode, and asking for the one that it has says so.
  const bool is_to_be_private = readers == Readers::owner && place->is_file;
  if (is_to_be_private && ::chmod(place->path.c_str(), place->mode) != 0) return broken(what, path, errno);
  return {};
}

bool OutputFile::is_plain(const std::string& path) {
  const auto place = find_output_place(path);
  return !place || place->kind != OutputPlace::Kind::written_into;
}

Result<void> OutputFile::result() const {
  if (ok()) return {};
  return broken(what_, path_, errno_);
}

}  // namespace argiope
