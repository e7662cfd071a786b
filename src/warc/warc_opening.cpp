#include "warc/warc_opening.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "base/internal/file_writing.hpp"
#include "base/internal/output_file.hpp"
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
    if (opened_.odd_lines > 0) note_known();
    for (const std::string& name : present_) {
      // Another file of the archive was ended in order, and its lines were on the disk by then.
      if (files_[name].is_indexed && !may_be_written_on(name) && opened_.odd_lines == 0) continue;
      if (auto read = read_file(name); !read) return std::unexpected(std::move(read.error()));
    }
    // Files that are not ours were refused by now: until here nothing was cut off.
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
    std::uint64_t last = 0;  // the offset of the last record that the index has
    std::uint64_t last_size = 0;
    bool is_read_whole = false;          // not from there on alone
    std::vector<std::uint64_t> known{};  // offsets of the records that the index has, ascending, where it has odd lines

    // Whether the index has the record there. One without odd lines has all up to its last.
    bool is_known(std::uint64_t offset, bool has_odd_lines) const {
      return has_odd_lines ? std::ranges::binary_search(known, offset) : is_indexed && offset <= last;
    }
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
    std::ifstream in(names_.index(), std::ios::binary);
    bool is_first = true, is_dead = false;
    std::size_t odd = 0;  // since the last good line
    for (std::string line; std::getline(in, line); is_first = false) {
      const bool is_whole = !in.eof();
      index_end_ += line.size() + (is_whole ? 1 : 0);
      const LineKind kind = is_whole ? take_line(line) : LineKind::none;
      if (kind == LineKind::none && is_first && (is_whole || !may_begin_cdxj(line)) && !line.contains('\0'))
        return no_index();
      is_dead = is_dead || kind == LineKind::dead;
      odd += kind == LineKind::none ? 1 : 0;
      if (kind != LineKind::good) continue;
      if (is_dead) {
        return fail(
            Errc::corrupt,
            fmt::format("{}: it names records that are in no file: remove it, and it is made anew", names_.index()));
      }
      opened_.index_size = index_end_;
      opened_.odd_lines += std::exchange(odd, 0);
    }
    if (in.bad()) return file_trouble(names_.index(), "read");
    if (opened_.odd_lines > 0) opened_.repairs.push_back({.file = names_.index(), .odd_lines = opened_.odd_lines});
    // Records are written before their lines.
    return index_end_ > 0 && opened_.index_size == 0 && present_.empty() ? no_index() : Result<void>{};
  }
  std::unexpected<Error> no_index() const {
    return fail(Errc::wrong_format, fmt::format("{}: no index of WARC files; it is left as it is", names_.index()));
  }

  // The records of the odd lines may be anywhere.
  void note_known() {
    std::ifstream in(names_.index(), std::ios::binary);
    for (std::string text; std::getline(in, text);) {
      if (const auto line = parse_cdxj(text)) file_of(line->filename).known.push_back(line->offset);
    }
    for (auto& [name, file] : files_) std::ranges::sort(file.known);
  }

  enum class LineKind : std::uint8_t { good, none, dead };  // dead: of a record beyond the end of its file

  LineKind take_line(const std::string& text) {
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

  // Whether nothing has been written to the file since the index was: a writer of an archive writes its index last.
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
    const bool has_odd_lines = opened_.odd_lines > 0;
    file.is_read_whole = has_odd_lines || !is_older_than_index(path);
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
      if (!line || file.is_known(record.offset, has_odd_lines)) continue;
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
    // Only read for what the index may lack of it.
    if (file.is_indexed && !may_be_written_on(name)) return {};
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

  // Cuts off the record that was being written when the writer died.
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
  std::uint64_t index_end_ = 0;                              // when it was read
  std::vector<std::pair<std::string, std::uint64_t>> cuts_;  // files, and where they end then
  OpenedArchive opened_;
};

}  // namespace

Result<OpenedArchive> open_archive(const WarcNames& names, int index) { return ArchiveOpening(names, index).run(); }

namespace {

template <class Forgets>
Result<std::size_t> forget_lines_if(const std::string& path, Forgets&& forgets) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return file_trouble(path, "read");
  std::size_t count = 0;
  for (std::string text; std::getline(in, text);) count += forgets(text) ? 1 : 0;
  if (count == 0) return 0;
  in.clear();
  in.seekg(0);
  OutputFile kept("index", path);
  for (std::string text; kept.ok() && std::getline(in, text);) {
    if (forgets(text)) continue;
    kept.write(text);
    if (!in.eof()) kept.write("\n");
  }
  if (in.bad()) return file_trouble(path, "read");
  auto finished = kept.finish(OutputFile::Survives::machine);
  return finished ? Result<std::size_t>(count) : std::unexpected(std::move(finished.error()));
}

}  // namespace

Result<std::size_t> forget_lines(const std::string& path, std::string_view name) {
  return forget_lines_if(path, [name](const std::string& text) {
    const auto line = parse_cdxj(text);
    return line && line->filename == name;
  });
}

Result<std::size_t> forget_odd_lines(const std::string& path) {
  return forget_lines_if(path, [](const std::string& text) { return !parse_cdxj(text); });
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
