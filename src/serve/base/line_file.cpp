#include "serve/base/line_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/internal/file_writing.hpp"
#include "base/internal/printable.hpp"

namespace argiope {

namespace {

constexpr std::size_t kMostLineFileBytes = std::size_t{1} << 30;

// The text of an open file, from where it is read. Errors: too_large beyond `most` bytes.
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

}  // namespace

Result<void> LineFile::open(const std::function<void(std::string_view line)>& each) {
  if (auto opened = open_to_append(); !opened) return opened;
  const auto text = read_all(file_, path_, kMostLineFileBytes);
  if (!text) return std::unexpected(text.error());
  std::string_view rest = *text;
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    each(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  bytes_ = static_cast<std::int64_t>(text->size() - rest.size());
  if (!rest.empty() && ::ftruncate(file_.get(), bytes_) != 0) return io_error(path_, "cannot be written");
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
  if (auto replaced = replace_file(path_, lines); !replaced) return replaced;
  bytes_ = static_cast<std::int64_t>(lines.size());
  return open_to_append();
}

}  // namespace argiope
