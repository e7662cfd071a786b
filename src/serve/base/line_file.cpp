#include "serve/base/line_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

#include "base/internal/file_reading.hpp"
#include "base/internal/file_writing.hpp"
#include "base/internal/null_device.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/text_lines.hpp"

namespace argiope {

// After a power cut a file of ours may begin with zeros.
Result<void> check_line_file(const std::string& path) {
  const auto file = InputFile::open(path, FileReading::again);
  if (!file && file.error().code == Errc::not_found) return {};
  char first = '{';
  const Result<std::size_t> read = file ? file->read({&first, 1}) : std::unexpected(file.error());
  if (!read) return fail(read.error().code, fmt::format("{}: {}", printable(path), read.error().message));
  if (first == '{' || first == '\0') return {};
  return fail(
      Errc::wrong_format,
      fmt::format("{}: another program has written it, and it is left as it is; name another file", printable(path)));
}

Result<void> LineFile::open(const std::function<void(std::string_view line)>& each) {
  if (is_null_device(path_)) return open_to_append();
  if (auto ours = check_line_file(path_); !ours) return ours;
  if (auto opened = open_to_append(); !opened) return opened;
  std::int64_t whole = 0;
  bool is_torn = false;
  const auto read = read_lines(path_, most_line_bytes_, FileReading::again, [&](const TextLine& line) {
    is_torn = !line.has_end;
    if (is_torn) return true;
    whole += static_cast<std::int64_t>(line.size);
    each(line.is_too_long ? std::string_view() : line.text);
    return true;
  });
  if (!read) return fail(read.error().code, fmt::format("{}: {}", printable(path_), read.error().message));
  bytes_ = whole;
  if (is_torn && ::ftruncate(file_.get(), bytes_) != 0) return io_error(path_, "cannot be written");
  return sync_folder_of(path_);
}

Result<void> LineFile::open_to_append() {
  file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!file_) return io_error(path_, "cannot be opened");
  return {};
}

Result<void> LineFile::append(std::string_view lines) {
  if (!expect_in_place(file_.get(), path_, path_)) {
    if (auto opened = go_on_in_another(); !opened) return opened;
  }
  auto written = write_all(file_, lines, path_);
  if (written) {
    bytes_ += static_cast<std::int64_t>(lines.size());
  } else if (::ftruncate(file_.get(), bytes_) != 0) {
    return io_error(path_, "cannot be written, and has half a line");
  }
  return written;
}

// It was moved away, as programs do that keep logs small: what it had is where it went.
Result<void> LineFile::go_on_in_another() {
  if (auto opened = open_to_append(); !opened) return opened;
  const auto end = ::lseek(file_.get(), 0, SEEK_END);
  if (end < 0) return io_error(path_, "cannot be opened");
  bytes_ = end;
  return sync_folder_of(path_);
}

Result<void> LineFile::replace(std::string_view lines) {
  if (is_null_device(path_)) return {};
  if (auto replaced = replace_file(path_, lines); !replaced) return replaced;
  bytes_ = static_cast<std::int64_t>(lines.size());
  return open_to_append();
}

}  // namespace argiope
