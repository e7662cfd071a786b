// The basis that the SQLite stores share: whose file it is, which version, who owns it, how it is set up.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/store/detail/sync_mode.hpp"
#include "base/internal/file_writing.hpp"
#include "store/sqlite/internal/sqlite.hpp"

namespace argiope {

// Keeps a second writer away without keeping readers out. Closed after SQLite has closed the file, because closing any
// descriptor of a file gives up the process's POSIX locks on it.
class FileLock {
 public:
  FileLock() = default;
  FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileLock();
  // Makes an empty file if there is none.
  static Result<FileLock> take(const std::string& path);
  // Lets others take it; the file stays open.
  void release() noexcept;
  int descriptor() const noexcept { return descriptor_; }
  // Nobody but its owner reads or writes the file from now on; nor what SQLite keeps beside it.
  Result<void> close_to_others(const std::string& path) const;
  // Whether `path` is still the file that is locked. Errors: io, when it was deleted or replaced.
  Result<void> still_names(const std::string& path) const;

 private:
  int descriptor_ = -1;
};
// Whether a process has taken the lock. The descriptor it looks through is kept until the process ends, one a file.
bool is_locked(const std::string& path);

// The files that a connection has open, to find out when others lie under their names: whatever is written then is
// lost.
//
// Threads: in_place() from any.
class FileWatch {
 public:
  FileWatch() = default;
  // Once the database has been read. `lock` is on the very file that is open, where there is one.
  FileWatch(SqliteDatabase& database, const FileLock& lock);
  bool in_place() const noexcept;

 private:
  struct File {
    std::string name;
    FileNumber identity;
  };
  // The database and its log; those that are not files of this system's are passed over.
  std::vector<File> files_;
};

// Of every file of SQLite: https://www.sqlite.org/fileformat.html
inline constexpr std::string_view kSqliteBegin("SQLite format 3\0", 16);

// The signs that a file is one of ours. Version n is what the first n migrations make of an empty one.
struct SqliteFormat {
  std::int64_t application_id;
  std::span<const char* const> migrations;
};

// Whether the first bytes of the file say that require_format() would refuse it. Opens no database, and so makes no
// files beside it. A file that is not there or is empty is good; of one with a log beside it, which may know better,
// only what is no database is told.
// Errors: wrong_format, newer_version; io where it cannot be read.
Result<void> check_sqlite_head(const std::string& path, const SqliteFormat& format);
// Whether it is one of ours and of a version before the newest.
Result<bool> is_older(SqliteDatabase& database, const std::string& path, const SqliteFormat& format);
// Brings `database` to the newest version. An empty file becomes one of ours; anything else that is not is left as it
// is.
Result<void> require_format(SqliteDatabase& database, const std::string& path, const SqliteFormat& format);
// The same for who may not write: it must be there already, and of the newest version.
Result<void> require_format_to_read(SqliteDatabase& database, const std::string& path, const SqliteFormat& format);
// For who wants to look, and was told older_version: owns the file for the moment that its migrations take. Nothing
// else of it is changed.
// Errors: busy while another process owns or writes it, io where it cannot be written, each with what to do; those of
// require_format().
Result<void> bring_up_to_date(const std::string& path, const SqliteFormat& format);

Result<void> configure_writer(SqliteDatabase& database, SyncMode sync, std::int64_t max_bytes, std::int64_t cache_kib);

}  // namespace argiope
