#include "warc/warc_opening.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/internal/file_writing.hpp"
#include "base/internal/output_file.hpp"
#include "base/internal/text_lines.hpp"
#include "warc/internal/cdxj.hpp"
#include "warc/internal/sha1.hpp"
#include "warc/internal/warc_capture.hpp"
#include "warc/internal/warc_reader.hpp"

namespace argiope {
namespace {

constexpr std::size_t kIndexAtOnce = 1024 * 1024;  // bytes of the index that are written together
// So much of a packed record may come before the first byte of it can be unpacked.
constexpr std::uint64_t kTooLittleToTell = 256;
// A larger block is not compared with its digest.
constexpr std::size_t kMostDigested = 64 * 1024 * 1024;

// Whether a line of an index may begin so: the key, the time, and what is in braces.
bool may_begin_cdxj(std::string_view text) {
  constexpr std::size_t kTimeDigits = 14;
  const std::size_t key = std::min(text.find(' '), text.size());
  if (key == text.size()) return true;
  const std::string_view time = text.substr(key + 1, kTimeDigits);
  const std::string_view rest = text.substr(key + 1 + time.size());
  return text.substr(0, key).contains(')') && std::ranges::all_of(time, [](char c) { return c >= '0' && c <= '9'; }) &&
         (rest.starts_with(" {") || std::string_view(" {").starts_with(rest));
}

class ArchiveOpening {
 public:
  ArchiveOpening(const WarcNames& names, int index) : names_(names), index_(index) {}

  Result<OpenedArchive> run() {
    if (auto listed = list_files(); !listed) return std::unexpected(std::move(listed.error()));
    if (auto read = read_index(); !read) return std::unexpected(std::move(read.error()));
    for (const std::string& name : present_) {
      // Another file of the archive was ended in order, and its lines were on the disk by then.
      if (files_[name].is_indexed && !may_be_written_on(name)) continue;
      if (auto read = read_file(name); !read) return std::unexpected(std::move(read.error()));
    }
    // What is not ours was refused by now: until here nothing was cut off.
    if (auto written = write_lines(); !written) return std::unexpected(std::move(written.error()));
    if (auto cut = cut_off(); !cut) return std::unexpected(std::move(cut.error()));
    if (auto touched = touch_index(index_, names_.index()); !touched) {
      return std::unexpected(std::move(touched.error()));
    }
    return std::move(opened_);
  }

 private:
  struct File {
    std::uint32_t number = 0;
    std::optional<std::uint64_t> size;  // nullopt: it is not there
    bool is_indexed = false;
    std::uint64_t last = 0;      // the offset of the last record that the index has
    std::uint64_t last_size = 0;
    bool is_read_whole = false;  // not from there on alone
  };

  File& file_of(const std::string& name) {
    const auto [found, is_new] = files_.try_emplace(name);
    if (is_new) {
      found->second.number = static_cast<std::uint32_t>(opened_.files.size());
      opened_.files.push_back(name);
    }
    return found->second;
  }

  Result<void> list_files() {
    auto there = names_.there();
    if (!there) return std::unexpected(std::move(there.error()));
    present_ = std::move(*there);
    opened_.is_new = present_.empty();
    for (const std::string& name : present_) {
      std::error_code error;
      file_of(name).size = std::filesystem::file_size(names_.folder() + name, error);
      if (error) return fail(Errc::io, fmt::format("{}{}: {}", names_.folder(), name, error.message()));
    }
    return {};
  }

  // The one without a number, and the last of those that have one.
  bool may_be_written_on(const std::string& name) const { return name == names_.single() || name == present_.back(); }

  // --- the index

  Result<void> read_index() {
    std::optional<Error> trouble;
    const auto read = read_lines(names_.index(), kMostCdxjLine, FileReading::again, [&](const TextLine& line) {
      auto taken = take(line);
      if (!taken) trouble = std::move(taken.error());
      return !trouble;
    });
    if (trouble) return std::unexpected(std::move(*trouble));
    if (!read && read.error().code != Errc::not_found) return fail(read.error().code, fmt::format("{}: {}", names_.index(), read.error().message));
    // Records are written before their lines.
    if (index_end_ > 0 && opened_.index_size == 0 && present_.empty()) return no_index();
    if (damaged_ > 0) opened_.repairs.push_back({.file = names_.index(), .damaged_lines = damaged_});
    return {};
  }
  Result<void> take(const TextLine& text) {
    index_end_ += text.size;
    const LineKind kind = text.has_end && !text.is_too_long ? take_line(text.text) : LineKind::none;
    const bool may_be_ours = !text.has_end && may_begin_cdxj(text.text);
    if (kind == LineKind::none && text.number == 1 && !may_be_ours && !text.text.contains('\0')) return no_index();
    is_dead_ = is_dead_ || kind == LineKind::dead;
    behind_good_ += kind == LineKind::none && !is_cdxj_remark(text.text) ? 1 : 0;
    if (kind != LineKind::good) return {};
    if (is_dead_) {
      return fail(Errc::corrupt, fmt::format("{}: it names records that are in no file: remove it, and it is made anew", names_.index()));
    }
    damaged_ += std::exchange(behind_good_, 0);
    opened_.index_size = index_end_;
    return {};
  }
  std::unexpected<Error> no_index() const {
    return fail(Errc::wrong_format, fmt::format("{}: no index of WARC files; it is left as it is", names_.index()));
  }

  enum class LineKind : std::uint8_t { good, none, dead };  // dead: of a record beyond the end of its file

  LineKind take_line(std::string_view text) {
    const auto line = parse_cdxj(text);
    if (!line) return LineKind::none;
    File& file = file_of(line->filename);
    if (file.size && line->offset + line->length > *file.size) return LineKind::dead;
    file.is_indexed = true;
    if (line->offset >= file.last) file.last_size = line->length;
    file.last = std::max(file.last, line->offset);
    remember(*line, file);
    return LineKind::good;
  }

  void remember(const CdxjLine& line, const File& file) {
    const auto digest = PayloadTable::key_of_base32(line.digest);
    if (digest && !is_revisit(line)) opened_.payloads.add(*digest, {file.number, line.offset});
  }

  // --- the files

  // Whether nothing has been written to the file since the index was: whoever writes an archive writes its index last.
  bool is_older_than_index(const std::string& path) const {
    struct stat file {};
    struct stat index {};
    if (::stat(path.c_str(), &file) != 0 || ::fstat(index_, &index) != 0) return false;
    return std::pair(file.st_mtim.tv_sec, file.st_mtim.tv_nsec) <=
           std::pair(index.st_mtim.tv_sec, index.st_mtim.tv_nsec);
  }

  // From the last record that the index has; or all of it, as others may have changed it.
  Result<void> read_file(const std::string& name) {
    const std::string path = names_.folder() + name;
    File& file = files_[name];
    auto bytes = open_warc_bytes(path);
    if (!bytes) return std::unexpected(std::move(bytes.error()));
    WarcReader reader(std::move(*bytes), path, limits());
    file.is_read_whole = !is_older_than_index(path);
    if (!file.is_read_whole) reader.seek(file.last);
    WarcRecord record;
    for (bool has_last = false;;) {
      const auto read = reader.next(record);
      if (!read) return put_right(reader, read.error(), name);
      if (!*read && file.is_indexed && !has_last) return of_another_file(path);
      if (!*read) return {};
      if (const std::string_view wrong = what_is_wrong_with(record); !wrong.empty()) {
        reader.seek(record.offset);
        return put_right(reader, {Errc::corrupt, fmt::format("{}: byte {}: {}", path, record.offset, wrong)}, name);
      }
      const auto line = capture_of(record, name);
      has_last = has_last || (record.offset == file.last && (line || record.size == file.last_size));
      if (file.is_indexed && record.offset > file.last && !has_last) return of_another_file(path);
      if (!line || (file.is_indexed && record.offset <= file.last)) continue;
      remember(*line, file);
      append_cdxj(lines_, *line);
      if (lines_.size() < kIndexAtOnce) continue;
      if (auto written = write_lines(); !written) return written;
    }
  }

  std::unexpected<Error> of_another_file(std::string_view where) const {
    return fail(Errc::corrupt, fmt::format("{}; the index {} is of another file: remove it, and it is made anew", where,
                                           names_.index()));
  }
  static std::unexpected<Error> damaged(std::string_view what) {
    return fail(Errc::corrupt, fmt::format("{}; nothing is added to a damaged file: give another name", what));
  }

  // Of a record that is one by its form. A packed one is checked by its gzip member.
  std::string_view what_is_wrong_with(const WarcRecord& record) {
    if (record.head.has_zeros()) return "there are zeros in this record's head";
    const std::string_view digest = record.head.field("WARC-Block-Digest");
    const bool is_known = record.block.size() == record.head.content_length() && digest.starts_with("sha1:");
    if (names_.is_packed() || !is_known) return {};
    const std::string own = digest_name(sha1_.of({record.block}));
    if (digest == own || digest.size() != own.size()) return {};  // others write it in other letters
    return "this record's block is not that of its digest";
  }
  WarcReaderLimits limits() const {
    return names_.is_packed() ? WarcReaderLimits{} : WarcReaderLimits{.block_bytes = kMostDigested};
  }

  // Notes that the record that cannot be read is cut off, if that harms nothing.
  Result<void> put_right(WarcReader& reader, const Error& error, const std::string& name) {
    const std::string path = names_.folder() + name;
    const File& file = files_[name];
    if (error.code == Errc::io) return std::unexpected(error);
    const std::uint64_t left = *file.size - std::min(*file.size, reader.position());
    if (reader.position() == 0 && !(reader.ends_early() && (reader.has_begun() || left < kTooLittleToTell))) {
      return fail(Errc::wrong_format, fmt::format("{}: no WARC file; it is left as it is", path));
    }
    if (file.is_indexed && reader.position() <= file.last) {
      return file.is_read_whole ? damaged(error.message) : of_another_file(error.message);
    }
    if (!reader.ends_early()) {
      const auto more = reader.next_behind();
      if (!more) return std::unexpected(more.error());
      if (*more) return damaged(fmt::format("{}, and there are records behind it", error.message));
    }
    cuts_.emplace_back(path, reader.position());
    opened_.repairs.push_back({.file = path, .cut_bytes = left});
    return {};
  }

  // What was being written when the writer died.
  Result<void> cut_off() const {
    for (const auto& [path, end] : cuts_) {
      if (::truncate(path.c_str(), static_cast<off_t>(end)) != 0)
        return file_trouble(path, "cut off behind its last whole record");
    }
    if (opened_.index_size < index_end_ && ::ftruncate(index_, static_cast<off_t>(opened_.index_size)) != 0) {
      return file_trouble(names_.index(), "cut off behind its last whole line");
    }
    return {};
  }

  Result<void> write_lines() {
    auto written = write_at(index_, lines_, opened_.index_size, names_.index());
    if (!written) return written;
    opened_.index_size += lines_.size();
    lines_.clear();
    return {};
  }

  const WarcNames& names_;
  const int index_;
  std::vector<std::string> present_;
  std::map<std::string, File> files_;
  std::string lines_;
  Sha1 sha1_;
  std::uint64_t index_end_ = 0;    // when it was read
  bool is_dead_ = false;           // a line of it was
  std::size_t behind_good_ = 0;    // damaged lines behind the last good one: they are cut off, and made anew
  std::size_t damaged_ = 0;        // those before it, which stay
  std::vector<std::pair<std::string, std::uint64_t>> cuts_;  // files, and where they end then
  OpenedArchive opened_;
};

}  // namespace

Result<OpenedArchive> open_archive(const WarcNames& names, int index) { return ArchiveOpening(names, index).run(); }

Result<std::size_t> forget_lines(const std::string& path, std::string_view name) {
  const auto is_of_it = [&](const TextLine& text) {
    const auto line = text.is_too_long ? std::nullopt : parse_cdxj(text.text);
    return line && line->filename == name;
  };
  const auto each_line = [&](const std::function<bool(const TextLine&)>& each) -> Result<void> {
    auto read = read_lines(path, kMostCdxjLine, FileReading::again, each);
    return read ? std::move(read) : fail(read.error().code, fmt::format("{}: {}", path, read.error().message));
  };
  std::size_t count = 0;
  auto counted = each_line([&](const TextLine& text) {
    count += is_of_it(text) ? 1 : 0;
    return true;
  });
  if (!counted) return std::unexpected(std::move(counted.error()));
  if (count == 0) return 0;
  OutputFile kept("index", path);
  auto copied = each_line([&](const TextLine& text) {
    // A line that is too long is none of an index.
    if (is_of_it(text) || text.is_too_long) return true;
    kept.write(text.text);
    if (text.has_end) kept.write("\n");
    return kept.ok();
  });
  if (!copied) return std::unexpected(std::move(copied.error()));
  auto finished = kept.finish(OutputFile::Survives::machine);
  return finished ? Result<std::size_t>(count) : std::unexpected(std::move(finished.error()));
}

Result<void> touch_index(int index, const std::string& path) {
  return ::futimens(index, nullptr) == 0 ? Result<void>{} : file_trouble(path, "written");
}

Result<void> write_at(int descriptor, std::string_view bytes, std::uint64_t offset, const std::string& file) {
  auto written = write_all(descriptor, bytes, offset, file);
  if (!written) (void)::ftruncate(descriptor, static_cast<off_t>(offset));
  return written;
}

}  // namespace argiope
