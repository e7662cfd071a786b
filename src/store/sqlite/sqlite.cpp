#include "store/sqlite/internal/sqlite.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace argiope {
namespace {

// SQLite would count its memory under a lock at every allocation. Before main(), because it may be told so only while
// nobody uses it.
[[maybe_unused]] const int kStatisticsOff = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);

// SQLite takes a file that is smaller than a page for an empty database, and would write over it.
constexpr off_t kLeastPageBytes = 512;

// SQLite takes "file:x?mode=ro" for a URI, and opens another file than the one that was looked at.
std::string literal_name(const std::string& path) { return path.starts_with("file:") ? "./" + path : path; }

// An errno. Where SQLite may not make a file, it asks for one to read, and reports that there is none.
int why_not_made(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return ::faccessat(AT_FDCWD, folder.empty() ? "." : folder.c_str(), W_OK, AT_EACCESS) != 0 ? errno : ENOENT;
}

}  // namespace

Result<SqliteDatabase> SqliteDatabase::open(const std::string& path, int flags) {
  SqliteDatabase database;
  database.path_ = path;
  // SQLite would wait for whatever writes into a pipe.
  struct stat found {};
  const bool is_there = ::stat(path.c_str(), &found) == 0;
  if (is_there && !S_ISREG(found.st_mode)) {
    return fail(Errc::wrong_format, fmt::format("database {}: not a plain file", path));
  }
  if (is_there && found.st_size > 0 && found.st_size < kLeastPageBytes) {
    return std::unexpected(database.error(SQLITE_NOTADB));
  }
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(literal_name(path).c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  database.handle_.reset(handle);
  if (code != SQLITE_OK) return std::unexpected(database.error(code));
  sqlite3_extended_result_codes(handle, 1);
  return database;
}

Result<void> SqliteDatabase::execute(const char* sql) {
  const int code = sqlite3_exec(handle(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return std::unexpected(error(code));
  return {};
}

Result<SqliteStatement> SqliteDatabase::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                      &statement, nullptr);
  if (code != SQLITE_OK) return std::unexpected(error(code));
  return SqliteStatement{statement};
}

Result<std::int64_t> SqliteDatabase::query_number(const char* sql) {
  auto statement = prepare(sql);
  if (!statement) return std::unexpected(std::move(statement.error()));
  const int code = statement->step();
  if (code != SQLITE_ROW) return std::unexpected(error(code));
  return statement->number(0);
}

Error SqliteDatabase::error(int code) const {
  const auto says = [&](Errc errc, std::string_view text) {
    return Error{errc, fmt::format("database {}: {}", path_, text)};
  };
  const int os_error = handle_ != nullptr ? sqlite3_system_errno(handle()) : 0;
  switch (code & 0xff) {
    case SQLITE_FULL: return says(Errc::disk_full, "the disk is full");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL: return says(Errc::busy, "another process is writing it");
    case SQLITE_NOTADB: return says(Errc::wrong_format, "this file is no SQLite database");
    case SQLITE_CORRUPT: return says(Errc::corrupt, "the file is damaged (sqlite3 FILE .recover may save it)");
    case SQLITE_READONLY: return says(Errc::io, "it is read-only");
    case SQLITE_CANTOPEN: {
      const int why = os_error == ENOENT ? why_not_made(path_) : os_error;
      return says(Errc::io, fmt::format("cannot be opened: {}",
                                        why != 0 ? std::strerror(why) : "is it a directory, or its folder missing?"));
    }
    case SQLITE_IOERR:
      if (os_error == ENOSPC || os_error == EDQUOT || os_error == EFBIG)
        return says(Errc::disk_full, "the disk is full");
      return says(Errc::io, fmt::format("input/output error: {}",
                                        os_error != 0 ? std::strerror(os_error) : sqlite3_errmsg(handle())));
    default: return says(Errc::internal, handle_ != nullptr ? sqlite3_errmsg(handle()) : sqlite3_errstr(code));
  }
}

}  // namespace argiope
