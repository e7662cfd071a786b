#include "store/sqlite/internal/sqlite_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

namespace argiope {
namespace {

// The connection's own; null where it has none.
sqlite3_file* log_of(SqliteDatabase& database) {
  sqlite3_file* log = nullptr;
  sqlite3_file_control(database.handle(), "main", SQLITE_FCNTL_JOURNAL_POINTER, static_cast<void*>(&log));
  return log == nullptr || log->pMethods == nullptr ? nullptr : log;
}

}  // namespace

Result<void> write_log_anew(SqliteDatabase& database, const std::string& path) {
  sqlite3_file* log = log_of(database);
  if (log == nullptr) return {};
  sqlite3_int64 size = 0;
  int code = log->pMethods->xFileSize(log, &size);
  // SQLite's own files take less than 128 KB in one call and say that the disk is full when given more.
  std::string part(static_cast<std::size_t>(std::min<sqlite3_int64>(size, 64 * 1024)), '\0');
  for (sqlite3_int64 at = 0; at < size && code == SQLITE_OK; at += std::ssize(part)) {
    const int bytes = static_cast<int>(std::min<sqlite3_int64>(std::ssize(part), size - at));
    code = log->pMethods->xRead(log, part.data(), bytes, at);
    if (code == SQLITE_OK) code = log->pMethods->xWrite(log, part.data(), bytes, at);
  }
  if (size > 0 && code == SQLITE_OK) code = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
  if (code == SQLITE_OK) return {};
  return fail((code & 0xff) == SQLITE_FULL ? Errc::disk_full : Errc::io,
              fmt::format("database {}: its log cannot be written anew: {}", path, sqlite3_errstr(code)));
}

SqliteLog::~SqliteLog() {
  if (file_ == nullptr) return;
  file_->pMethods->xClose(file_);
  sqlite3_free(file_);
}

Result<void> SqliteLog::sync_apart() {
  sqlite3* const connection = database_.handle();
  if (log_of(database_) == nullptr) return {};
  sqlite3_vfs* vfs = nullptr;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_VFS_POINTER, static_cast<void*>(&vfs));
  auto* file = static_cast<sqlite3_file*>(sqlite3_malloc(vfs->szOsFile));
  if (file == nullptr) throw std::bad_alloc();
  std::memset(file, 0, static_cast<std::size_t>(vfs->szOsFile));
  const char* name = sqlite3_filename_wal(sqlite3_db_filename(connection, "main"));
  const int code = vfs->xOpen(vfs, name, file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_WAL, nullptr);
  if (code != SQLITE_OK) {
    if (file->pMethods != nullptr) file->pMethods->xClose(file);
    sqlite3_free(file);
    return fail(Errc::io, fmt::format("database {}: its log cannot be opened: {}", path_, sqlite3_errstr(code)));
  }
  file_ = file;
  if (auto set = database_.execute("PRAGMA synchronous = NORMAL"); !set) return set;
  sqlite3_wal_hook(
      connection,
      [](void* self, sqlite3*, const char*, int pages) {
        auto& log = *static_cast<SqliteLog*>(self);
        if (pages < log.pages_) log.checkpoint_at_ = log.long_pages_;  // it has begun anew
        log.pages_ = pages;
        return SQLITE_OK;
      },
      this);
  return {};
}

Result<void> SqliteLog::sync() noexcept {
  const int code = file_->pMethods->xSync(file_, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
  if (code == SQLITE_OK) return {};
  return fail(Errc::io, fmt::format("database {}: what was written cannot be synced: {}", path_, sqlite3_errstr(code)));
}

Result<void> SqliteLog::checkpoint() {
  checkpoint_at_ = pages_ + long_pages_;
  const int code = sqlite3_wal_checkpoint_v2(database_.handle(), "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (code != SQLITE_IOERR_FSYNC) return {};
  return std::unexpected(database_.error(code));
}

void SqliteLog::keep() noexcept { sqlite3_db_config(database_.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr); }

}  // namespace argiope
