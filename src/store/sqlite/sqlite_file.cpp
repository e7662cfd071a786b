#include "store/sqlite/internal/sqlite_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>

#include "base/internal/file_reading.hpp"

namespace argiope {
namespace {

constexpr int kMigrationWaitMs = 5000;  // for other programs that write

}  // namespace

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<FileLock> FileLock::take(const std::string& path) {
  FileLock lock;
  lock.descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0644);
  if (lock.descriptor_ < 0) {
    return fail(Errc::io, fmt::format("database {}: cannot be opened for writing: {}", path, std::strerror(errno)));
  }
  // A device or a pipe stays what it is, and keeps its mode.
  struct stat found {};
  if (::fstat(lock.descriptor_, &found) != 0 || !S_ISREG(found.st_mode)) {
    return fail(Errc::wrong_format, fmt::format("database {}: not a plain file", path));
  }
  // A process that only looks whether there is an owner holds the lock too, shared and for a moment.
  while (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (::flock(lock.descriptor_, LOCK_SH | LOCK_NB) != 0) {
      return fail(Errc::busy, fmt::format("database {}: another argiope is using it", path));
    }
    lock.release();
    std::this_thread::yield();
  }
  return lock;
}

Result<void> FileLock::close_to_others(const std::string& path) const {
  constexpr ::mode_t kOwnerAlone = 0600;
  // SQLite gives the files beside the database its mode when it makes them.
  if (::fchmod(descriptor_, kOwnerAlone) == 0) {
    for (const char* const beside : {"-wal", "-shm"}) (void)::chmod((path + beside).c_str(), kOwnerAlone);
    return {};
  }
  return fail(Errc::io, fmt::format("database {}: it will hold secrets, and cannot be closed to others (chmod 600): {}",
                                    path, std::strerror(errno)));
}

void FileLock::release() noexcept {
  if (descriptor_ >= 0) ::flock(descriptor_, LOCK_UN);
}

bool is_locked(const std::string& path) {
  struct Looked {
    FileNumber file;
    int descriptor;
  };
  // To close one would give up the locks that other connections of this process have on the file.
  static std::mutex mutex;
  static std::vector<Looked> kept;
  std::lock_guard lock(mutex);
  const auto there = file_number_of(path);
  if (!there) return false;
  auto known = std::ranges::find(kept, *there, &Looked::file);
  if (known == kept.end()) {
    // Not blocking: it may be a named pipe, which the opening of the database refuses.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    const auto opened = file_number_of(descriptor);
    if (!opened) return false;
    kept.push_back({*opened, descriptor});
    known = std::prev(kept.end());
  }
  if (::flock(known->descriptor, LOCK_SH | LOCK_NB) != 0) return true;
  ::flock(known->descriptor, LOCK_UN);
  return false;
}

FileWatch::FileWatch(SqliteDatabase& database, const FileLock& lock) {
  const char* name = sqlite3_db_filename(database.handle(), "main");
  if (name == nullptr) return;
  const auto file = lock.descriptor() >= 0 ? file_number_of(lock.descriptor()) : file_number_of(std::string(name));
  if (file) files_.push_back({name, *file});
  const std::string log = sqlite3_filename_wal(name);
  if (const auto found = file_number_of(log)) files_.push_back({log, *found});
}

bool FileWatch::in_place() const noexcept {
  return std::ranges::all_of(files_, [](const File& file) { return file_number_of(file.name) == file.identity; });
}

Result<void> FileLock::still_names(const std::string& path) const {
  return expect_in_place(descriptor_, path, "database " + path);
}

namespace {

struct Identity {
  std::int64_t version = 0;
  bool empty = false;
};

std::unexpected<Error> not_ours(const std::string& path) {
  return fail(Errc::wrong_format, fmt::format("database {}: not made by argiope for this; it is left as it is", path));
}

Result<void> check_version(std::int64_t version, const std::string& path, const SqliteFormat& format) {
  if (version <= std::ssize(format.migrations)) return {};
  return fail(Errc::newer_version, fmt::format("database {}: made by a newer argiope (schema {}, this one knows {})",
                                               path, version, format.migrations.size()));
}

Result<Identity> identify(SqliteDatabase& database, const std::string& path, const SqliteFormat& format) {
  const auto id = database.query_number("PRAGMA application_id");
  if (!id) return std::unexpected(id.error());
  const auto objects = database.query_number("SELECT count(*) FROM sqlite_master");
  if (!objects) return std::unexpected(objects.error());
  if (*id == 0 && *objects == 0) return Identity{0, true};
  if (*id != format.application_id) return not_ours(path);
  const auto version = database.query_number("PRAGMA user_version");
  if (!version) return std::unexpected(version.error());
  if (auto good = check_version(*version, path, format); !good) return std::unexpected(std::move(good.error()));
  return Identity{*version, false};
}

Result<void> migrate(SqliteDatabase& database, const std::string& path, const SqliteFormat& format) {
  // Again, now that nobody else writes.
  const auto found = identify(database, path, format);
  if (!found) return std::unexpected(found.error());
  for (std::int64_t version = found->version; version < std::ssize(format.migrations); ++version) {
    if (auto done = database.execute(format.migrations[static_cast<std::size_t>(version)]); !done) return done;
    const std::string stamp =
        fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", format.application_id, version + 1);
    if (auto done = database.execute(stamp.c_str()); !done) return done;
  }
  return {};
}

// The head of a file of SQLite: https://www.sqlite.org/fileformat.html#the_database_header
constexpr std::size_t kHeadBytes = 100;
constexpr std::size_t kPagesAt = 28, kFreePagesAt = 36, kVersionAt = 60, kApplicationIdAt = 68;

std::int64_t head_number(std::string_view head, std::size_t place) {
  std::int64_t number = 0;
  for (const char byte : head.substr(place, 4)) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

}  // namespace

Result<void> check_sqlite_head(const std::string& path, const SqliteFormat& format) {
  const auto file = InputFile::open(path, FileReading::again);
  if (!file && file.error().code == Errc::not_found) return {};
  std::string head(kHeadBytes, '\0');
  const auto read = file ? file->read(head) : std::unexpected(file.error());
  if (!read) return fail(read.error().code, fmt::format("database {}: {}", path, read.error().message));
  if (*read == 0) return {};
  if (*read < kHeadBytes || !head.starts_with(kSqliteBegin)) {
    return fail(Errc::wrong_format, fmt::format("database {}: this file is no SQLite database", path));
  }
  if (file_number_of(path + "-wal")) return {};
  const std::int64_t id = head_number(head, kApplicationIdAt);
  const bool has_tables = head_number(head, kPagesAt) - head_number(head, kFreePagesAt) > 1;
  if (id == 0 && !has_tables) return {};
  return id == format.application_id ? check_version(head_number(head, kVersionAt), path, format) : not_ours(path);
}

Result<bool> is_older(SqliteDatabase& database, const std::string& path, const SqliteFormat& format) {
  const auto found = identify(database, path, format);
  if (!found) return std::unexpected(found.error());
  return !found->empty && found->version < std::ssize(format.migrations);
}

Result<void> require_format(SqliteDatabase& database, const std::string& path, const SqliteFormat& format) {
  const auto found = identify(database, path, format);
  if (!found) return std::unexpected(found.error());
  if (found->version == std::ssize(format.migrations)) return {};
  if (auto begun = database.execute("BEGIN IMMEDIATE"); !begun) return begun;
  auto done = migrate(database, path, format);
  if (done) done = database.execute("COMMIT");
  if (!done) (void)database.execute("ROLLBACK");
  return done;
}

Result<void> require_format_to_read(SqliteDatabase& database, const std::string& path, const SqliteFormat& format) {
  const auto found = identify(database, path, format);
  if (!found) return std::unexpected(found.error());
  if (found->empty) {
    return fail(Errc::wrong_format, fmt::format("database {}: it is empty", path));
  }
  if (found->version != std::ssize(format.migrations)) {
    return fail(
        Errc::older_version,
        fmt::format("database {}: made by an older argiope; open it once for writing to bring it up to date", path));
  }
  return {};
}

Result<void> bring_up_to_date(const std::string& path, const SqliteFormat& format) {
  const auto told = [](Error error) {
    if (error.code == Errc::busy)
      error.message += "; an older argiope made it: it is brought up to date once that other process has ended";
    if (error.code == Errc::io) {
      error.message +=
          "; an older argiope made it: a user who may write it and its folder brings it up to date by looking at it, "
          "or look at a copy";
    }
    return std::unexpected(std::move(error));
  };
  // Closed after the database.
  const auto lock = FileLock::take(path);
  if (!lock) return told(lock.error());
  auto database = SqliteDatabase::open(path, SQLITE_OPEN_READWRITE);
  if (!database) return told(std::move(database.error()));
  sqlite3_busy_timeout(database->handle(), kMigrationWaitMs);
  // Triggers are other programs'.
  sqlite3_db_config(database->handle(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  if (auto done = require_format(*database, path, format); !done) return told(std::move(done.error()));
  return {};
}

Result<void> configure_writer(SqliteDatabase& database, SyncMode sync, std::int64_t max_bytes, std::int64_t cache_kib) {
  const char* synchronous = sync == SyncMode::full     ? "PRAGMA synchronous = FULL"
                            : sync == SyncMode::normal ? "PRAGMA synchronous = NORMAL"
                                                       : "PRAGMA synchronous = OFF";
  const std::string cache = fmt::format("PRAGMA cache_size = -{}", cache_kib);
  for (const char* sql : {"PRAGMA journal_mode = WAL", synchronous, cache.c_str(), "PRAGMA temp_store = MEMORY"}) {
    if (auto set = database.execute(sql); !set) return set;
  }
  if (max_bytes > 0) {
    const auto page = database.query_number("PRAGMA page_size");
    if (!page) return std::unexpected(page.error());
    return database.execute(
        fmt::format("PRAGMA max_page_count = {}", std::max<std::int64_t>(max_bytes / *page, 1)).c_str());
  }
  return {};
}

}  // namespace argiope
