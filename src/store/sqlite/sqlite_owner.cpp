#include "store/sqlite/internal/sqlite_owner.hpp"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace argiope {
namespace {

constexpr Duration kTellAfter = std::chrono::seconds{3};  // of a foreign lock

}  // namespace

SqliteOwner::SqliteOwner(const std::string& path, const Rules& rules)
    : path_(path),
      rules_(rules),
      lock_wait_(path, rules.busy_limit, kTellAfter),
      log_(database_, path, rules.log_pages) {}

Result<void> SqliteOwner::open_file(const SqliteFormat& format) {
  auto lock = FileLock::take(path_);
  if (!lock) return std::unexpected(std::move(lock.error()));
  lock_ = std::move(*lock);
  // A file that is no database of ours keeps its mode.
  std::error_code unknown;
  const bool is_fresh = std::filesystem::file_size(path_, unknown) == 0;
  if (rules_.is_private && is_fresh) {
    if (auto closed = lock_.close_to_others(path_); !closed) return closed;
  }
  auto opened = SqliteDatabase::open(path_, SQLITE_OPEN_READWRITE);
  if (!opened) return std::unexpected(std::move(opened.error()));
  database_ = std::move(*opened);
  lock_wait_.serve(database_);
  if (auto set = set_up(format); !set) return set;
  if (rules_.is_private && !is_fresh) {
    if (auto closed = lock_.close_to_others(path_); !closed) return closed;
  }
  auto begun = rules_.sync == SyncMode::off ? Result<void>{} : begin_log();
  if (begun) files_ = FileWatch(database_, lock_);
  return begun;
}

Result<void> SqliteOwner::begin_log() {
  auto anew = database_.execute("BEGIN IMMEDIATE");
  if (anew) anew = write_log_anew(database_, path_);
  if (anew) anew = database_.execute("COMMIT");
  if (!anew || rules_.sync != SyncMode::full) return anew;
  return log_.sync_apart();
}

Result<void> SqliteOwner::open_in_memory(const SqliteFormat& format) {
  auto opened = SqliteDatabase::open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY);
  if (!opened) return std::unexpected(std::move(opened.error()));
  database_ = std::move(*opened);
  return set_up(format);
}

Result<void> SqliteOwner::set_up(const SqliteFormat& format) {
  // There are some for other programs, which write without knowing better.
  sqlite3_db_config(database_.handle(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  if (auto ours = require_format(database_, path_, format); !ours) return ours;
  if (auto set = configure_writer(database_, rules_.sync, rules_.max_bytes, rules_.cache_kib); !set) return set;
  const std::pair<SqliteStatement&, const char*> statements[] = {
      {begin_write_, "BEGIN IMMEDIATE"}, {begin_read_, "BEGIN"}, {commit_, "COMMIT"}};
  return database_.prepare_each(statements);
}

void SqliteOwner::keep_to_owner() {
  if (std::exchange(is_kept_to_owner_, true) || rules_.is_private || lock_.descriptor() < 0) return;
  if (auto closed = lock_.close_to_others(path_); !closed) spdlog::warn("{}", closed.error().message);
}

// A log without a name is lost with this process, however whole the database is.
Result<void> SqliteOwner::in_place() const {
  if (auto there = lock_.still_names(path_); !there || files_.in_place()) return there;
  return fail(Errc::io,
              "database " + path_ + ": its log " + path_ + "-wal was deleted or replaced while it was in use");
}

void SqliteOwner::be_patient() {
  lock_wait_.over();
  lock_wait_.be_patient();
}

void SqliteOwner::begin(bool to_write) {
  run(to_write ? begin_write_ : begin_read_);
  writes_ = to_write;
  lock_wait_.over();
}

void SqliteOwner::commit() {
  run(commit_);
  lock_wait_.over();
}

void SqliteOwner::roll_back() noexcept {
  (void)database_.execute("ROLLBACK");  // SQLite may have done it already
}

void SqliteOwner::run(SqliteStatement& statement) {
  const int code = statement.step();
  Error error;
  if (code != SQLITE_DONE) error = database_.error(code);
  statement.reset();
  if (code != SQLITE_DONE) throw DatabaseFailed{std::move(error)};
}

}  // namespace argiope
