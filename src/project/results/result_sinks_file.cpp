// Sinks that append to a file, each event exactly once.
//
// The place that is stored with the cursor says which file it is and how long it was: after a crash the rest is cut off
// and comes again. So that this holds from the first byte on, a file's place is committed before anything is written to
// it, and a rotation begins when all that the old file has is committed.
//
//                     ┌── the same file, at least as long ──► cut, go on
//   stored place ─────┼── renamed by a rotation that was cut short ──► begin the next one
//                     └── gone, replaced, shorter, changed ──► go on behind what is there, and say so
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "argiope/async/threads.hpp"
#include "base/internal/file_writing.hpp"
#include "base/internal/fingerprint.hpp"
#include "base/internal/output_place.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "project/results/result_sink.hpp"
#include "project/results/sink_file_place.hpp"

namespace argiope {
namespace {

// Of a file's end, looked at to know it again.
constexpr std::uint64_t kTailBytes = 4096;
// How many files of rotations are looked through for one that was renamed, or for a free name.
constexpr std::uint64_t kMostRotatedTried = 100'000;

class SinkDescriptor {
 public:
  SinkDescriptor() = default;
  explicit SinkDescriptor(int descriptor) noexcept : descriptor_(descriptor) {}
  SinkDescriptor(SinkDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  SinkDescriptor& operator=(SinkDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~SinkDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const noexcept { return descriptor_; }
  explicit operator bool() const noexcept { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

struct FileIdentity {
  std::string text;        // as file_identity_of()
  std::uint64_t size = 0;  // of an open file
  bool is_regular = false;
};

FileIdentity identify(const std::string& path) { return {.text = file_identity_of(path)}; }
FileIdentity identify(const SinkDescriptor& file) {
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return {};
  return {file_identity_of(file.get()), static_cast<std::uint64_t>(about.st_size), S_ISREG(about.st_mode)};
}

// "prices.jsonl" and 3: "prices.3.jsonl".
std::string rotated_path(const std::string& path, std::uint64_t number) {
  const std::filesystem::path whole(path);
  return (whole.parent_path() / fmt::format("{}.{}{}", whole.stem().string(), number, whole.extension().string()))
      .string();
}

// The file itself. Its functions block; one at a time, on any thread.
class SinkFile {
 public:
  SinkFile(std::string path, std::string header, const ProjectSink& sink)
      : path_(std::move(path)),
        name_(printable(path_)),
        header_(std::move(header)),
        columns_(fingerprint(header_) >> 1),
        rotate_bytes_(sink.rotate_bytes),
        rotate_span_(sink.rotate_span) {}

  // Finds the file that the place says, or begins one. True: the place is as it was stored, else it must be stored
  // first.
  Result<bool> open(WallTime now) {
    if (file_ && is_as_it_was()) return true;
    if (!file_ && place_.file == path_) {
      auto found = resume();
      if (!found || *found) return found;
    }
    file_ = {};
    if (place_.file != path_) place_ = {.file = path_};
    return begin(now);
  }

  bool has_to_rotate(std::uint64_t more, WallTime now) const {
    if (place_.length == 0) return false;
    if (place_.columns != columns_) return true;
    if (rotate_bytes_ && place_.length + more > *rotate_bytes_) return true;
    return rotate_span_ && place_.begun.time_since_epoch() / *rotate_span_ != now.time_since_epoch() / *rotate_span_;
  }

  // All that the file has is committed. The new place has to be stored before the next append().
  Result<void> rotate(WallTime now) {
    const std::uint64_t first = place_.rotated + 1;
    for (std::uint64_t number = first; number < first + kMostRotatedTried; ++number) {
      if (!rename_to(rotated_path(file_path(), number))) {
        if (errno == EEXIST) continue;
        return file_trouble(name_, "renamed");
      }
      place_.rotated = number;
      place_.identity.clear();
      file_ = {};
      if (auto synced = sync_folder_of(file_path()); !synced) return synced;
      auto begun = begin(now);
      if (!begun) return std::unexpected(std::move(begun.error()));
      return {};
    }
    return fail(Errc::io, fmt::format("{}: it cannot be rotated: {} names are taken", name_, kMostRotatedTried));
  }

  // Appends whole lines. After an error the file is as it was, or is made so by the next open().
  Result<void> append(std::string_view lines) {
    std::string front;
    if (place_.length == 0) {
      front = header_;
    } else if (!ends_a_line_) {
      front = "\n";
    }
    auto written = front.empty() ? Result<void>{} : write_all(file_.get(), front, place_.length, name_);
    if (written) written = write_all(file_.get(), lines, place_.length + front.size(), name_);
    if (written && ::fdatasync(file_.get()) != 0) written = file_trouble(name_, "synced");
    if (!written) {
      if (::ftruncate(file_.get(), static_cast<off_t>(place_.length)) != 0) file_ = {};
      return written;
    }
    place_.length += front.size() + lines.size();
    ends_a_line_ = true;
    place_.tail = tail_of(file_, place_.length);
    return {};
  }

  SinkFilePlace& place() noexcept { return place_; }
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

 private:
  // Where a link leads to, which stays.
  std::string file_path() const {
    const auto place = find_output_place(path_);
    return place ? place->path : path_;
  }

  // Errors: errno, EEXIST where there is such a file.
  bool rename_to(const std::string& name) const {
    const std::string from = file_path();
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, name.c_str(), RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    // A file system that cannot.
    if (!identify(name).text.empty()) return errno = EEXIST, false;
    return ::rename(from.c_str(), name.c_str()) == 0;
  }

  bool is_as_it_was() {
    const FileIdentity own = identify(file_);
    if (identify(path_).text != own.text) {
      note("was moved, removed or replaced by another; going on in what is there now");
      return false;
    }
    if (own.size == place_.length) return true;
    note("was changed by another; going on behind what is there");
    return false;
  }

  // The file as it was stored. False: there is none, and it was said why.
  Result<bool> resume() {
    if (place_.identity.empty()) return false;
    SinkDescriptor file(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    const FileIdentity identity = file ? identify(file) : FileIdentity{};
    if (identity.text != place_.identity) {
      if (!find_rotated())
        note(file ? "was replaced by another; going on behind what is there" : "is gone; begun anew");
      place_.identity.clear();
      return false;
    }
    if (auto locked = lock(file); !locked) return std::unexpected(std::move(locked.error()));
    if (identity.size < place_.length || tail_of(file, place_.length) != place_.tail) {
      note("was changed by another; going on behind what is there");
      return false;
    }
    if (identity.size > place_.length && ::ftruncate(file.get(), static_cast<off_t>(place_.length)) != 0) {
      return file_trouble(name_, "cut");
    }
    file_ = std::move(file);
    ends_a_line_ = ends_a_line();
    return true;
  }

  // Whether a rotation has renamed it and not come further.
  bool find_rotated() {
    const std::uint64_t first = place_.rotated + 1;
    for (std::uint64_t number = first; number < first + kMostRotatedTried; ++number) {
      const FileIdentity identity = identify(rotated_path(file_path(), number));
      if (identity.text.empty()) return false;
      if (identity.text != place_.identity) continue;
      place_.rotated = number;
      return true;
    }
    return false;
  }

  // Takes the file that is at the path, or makes one.
  Result<bool> begin(WallTime now) {
    SinkDescriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
    if (!file) return file_trouble(name_, "opened");
    const FileIdentity identity = identify(file);
    if (!identity.is_regular) return fail(Errc::refused, fmt::format("{}: it is no regular file", name_));
    if (auto locked = lock(file); !locked) return std::unexpected(std::move(locked.error()));
    if (auto synced = sync_folder_of(file_path()); !synced) return std::unexpected(std::move(synced.error()));
    const WallTime begun = identity.text == place_.identity ? place_.begun : now;
    place_ = {
        .file = path_, .identity = identity.text, .length = identity.size, .rotated = place_.rotated, .begun = begun};
    place_.columns = identity.size == 0 || begins_with_header(file) ? columns_ : 0;
    place_.tail = tail_of(file, place_.length);
    file_ = std::move(file);
    ends_a_line_ = ends_a_line();
    return false;
  }

  Result<void> lock(const SinkDescriptor& file) const {
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return {};
    if (errno != EWOULDBLOCK) return file_trouble(name_, "locked");
    return fail(Errc::busy, fmt::format("{}: another process or sink is writing it", name_));
  }

  static std::string read_at(const SinkDescriptor& file, std::uint64_t from, std::uint64_t size) {
    std::string bytes(static_cast<std::size_t>(size), '\0');
    std::size_t got = 0;
    while (got < bytes.size()) {
      const ssize_t count = ::pread(file.get(), bytes.data() + got, bytes.size() - got, static_cast<off_t>(from + got));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      got += static_cast<std::size_t>(count);
    }
    bytes.resize(got);
    return bytes;
  }
  static std::uint64_t tail_of(const SinkDescriptor& file, std::uint64_t length) {
    const std::uint64_t size = std::min(length, kTailBytes);
    return fingerprint(read_at(file, length - size, size)) >> 1;  // whole numbers of JSON have a sign
  }
  bool ends_a_line() const { return place_.length == 0 || read_at(file_, place_.length - 1, 1) == "\n"; }
  bool begins_with_header(const SinkDescriptor& file) const { return read_at(file, 0, header_.size()) == header_; }

  void note(std::string_view what) { notes_.push_back(fmt::format("{}: it {}", name_, what)); }

  const std::string path_, name_, header_;
  const std::uint64_t columns_;
  const std::optional<std::uint64_t> rotate_bytes_;
  const std::optional<Duration> rotate_span_;
  SinkFilePlace place_;
  SinkDescriptor file_;
  bool ends_a_line_ = true;
  std::vector<std::string> notes_;
};

class FileSink final : public ResultSink {
 public:
  explicit FileSink(std::shared_ptr<SinkContext> context)
      : context_(std::move(context)),
        file_(std::make_shared<SinkFile>(context_->path(context_->sink.target),
                                         is_csv() ? event_csv_header(context_->columns) : "", context_->sink)) {
    if (auto place = SinkFilePlace::parse(context_->place)) file_->place() = *std::move(place);
  }

  Coro<SinkResult<std::string>> deliver(const SinkBatch& batch) override {
    const WallTime now = EventLoop::current().clock().wall_now();
    // Whatever becomes of this coroutine, the thread has what it works on.
    const auto opened = co_await to_thread([file = file_, now] { return file->open(now); });
    for (const std::string& note : file_->take_notes()) context_->log(note);
    if (!opened) co_return sink_trouble(opened.error());
    if (!*opened) {
      if (const auto kept = co_await context_->keep(file_->place().stored()); !kept)
        co_return sink_trouble(kept.error());
    }
    auto lines =
        std::make_shared<const std::string>(is_csv() ? as_csv(batch) : events_as_lines(context_->project, batch));
    if (file_->has_to_rotate(lines->size(), now)) {
      if (const auto rotated = co_await rotate(now); !rotated) co_return sink_trouble(rotated.error());
    }
    const auto appended = co_await to_thread([file = file_, lines] { return file->append(*lines); });
    if (!appended) co_return sink_trouble(appended.error());
    co_return SinkResult<std::string>{file_->place().stored()};
  }

 private:
  bool is_csv() const noexcept { return context_->sink.format == ProjectSink::Format::csv; }
  std::string as_csv(const SinkBatch& batch) const {
    std::string lines;
    for (const FeedRow& row : batch.rows) append_event_csv(lines, context_->project, context_->columns, row);
    return lines;
  }

  Coro<Result<void>> rotate(WallTime now) {
    if (auto kept = co_await context_->keep(file_->place().stored()); !kept) co_return kept;
    if (auto rotated = co_await to_thread([file = file_, now] { return file->rotate(now); }); !rotated)
      co_return rotated;
    co_return co_await context_->keep(file_->place().stored());
  }

  const std::shared_ptr<SinkContext> context_;
  const std::shared_ptr<SinkFile> file_;
};

}  // namespace

std::shared_ptr<ResultSink> make_file_sink(std::shared_ptr<SinkContext> context) {
  return std::make_shared<FileSink>(std::move(context));
}

}  // namespace argiope
