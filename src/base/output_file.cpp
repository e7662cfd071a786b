#include "base/internal/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace argiope {
namespace {

constexpr std::size_t kBufferedBytes = 256 * 1024;

// Never one that is there already, which others may have open.
std::FILE* open_for_owner(const std::string& path) {
  ::unlink(path.c_str());
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return nullptr;
  std::FILE* const file = ::fdopen(descriptor, "wb");
  if (file == nullptr) ::close(descriptor);
  return file;
}

std::unexpected<Error> broken(std::string_view what, std::string_view path, int number) {
  const Errc code = number == ENOSPC || number == EDQUOT ? Errc::disk_full : Errc::io;
  return fail(code, fmt::format("{} {}: {}", what, path, std::strerror(number)));
}

}  // namespace

OutputFile::OutputFile(std::string what, std::string path, Readers readers)
    : what_(std::move(what)), path_(std::move(path)), temporary_(path_ + ".part") {
  file_ = is_standard_output()         ? stdout
          : readers == Readers::owner ? open_for_owner(temporary_)
                                      : std::fopen(temporary_.c_str(), "wbe");
  if (file_ == nullptr) errno_ = errno;
}

OutputFile::~OutputFile() {
  if (file_ == nullptr || is_standard_output()) return;
  std::fclose(file_);
  std::remove(temporary_.c_str());
}

void OutputFile::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBufferedBytes) flush();
}

void OutputFile::flush() {
  if (ok() && std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size()) errno_ = errno;
  buffer_.clear();
}

Result<void> OutputFile::finish() {
  flush();
  if (ok() && is_standard_output()) {
    if (std::fflush(file_) != 0) errno_ = errno;
  } else if (file_ != nullptr && !is_standard_output()) {
    if (std::fclose(std::exchange(file_, nullptr)) != 0 && ok()) errno_ = errno;
    if (ok() && std::rename(temporary_.c_str(), path_.c_str()) != 0) errno_ = errno;
    if (!ok()) std::remove(temporary_.c_str());
  }
  return result();
}

Result<void> OutputFile::check(std::string_view what, const std::string& path) {
  if (path == "-") return {};
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return broken(what, path, EISDIR);
  // Not by the name of one that another process may be writing.
  const std::string tried = path + ".try";
  const int descriptor = ::open(tried.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0 && errno != EEXIST) return broken(what, path, errno);
  if (descriptor < 0) return {};
  ::close(descriptor);
  ::unlink(tried.c_str());
  return {};
}

Result<void> OutputFile::result() const {
  if (ok()) return {};
  return broken(what_, path_, errno_);
}

}  // namespace argiope
