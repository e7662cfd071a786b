#include "base/internal/output_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace argiope {
namespace {

constexpr std::size_t kBufferedBytes = 256 * 1024;

}  // namespace

OutputFile::OutputFile(std::string what, std::string path)
    : what_(std::move(what)), path_(std::move(path)), temporary_(path_ + ".part") {
  file_ = is_standard_output() ? stdout : std::fopen(temporary_.c_str(), "wbe");
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
  if (ok()) return {};
  const Errc code = errno_ == ENOSPC || errno_ == EDQUOT ? Errc::disk_full : Errc::io;
  return fail(code, fmt::format("{} {}: {}", what_, path_, std::strerror(errno_)));
}

}  // namespace argiope
