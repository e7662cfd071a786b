#include "store/internal/log_mover.hpp"

#include <utility>

namespace argiope {

Result<void> move_log(SqliteDatabase& database) {
  const int code = sqlite3_wal_checkpoint_v2(database.handle(), "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (code != SQLITE_IOERR_FSYNC) return {};
  return std::unexpected(database.error(code));
}

Result<std::unique_ptr<LogMover>> LogMover::make(const std::string& path) {
  auto database = SqliteDatabase::open(path, SQLITE_OPEN_READWRITE);
  if (!database) return std::unexpected(std::move(database.error()));
  // Its owner decides what becomes of the log when the file is closed.
  sqlite3_db_config(database->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  // SQLite opens files at the first use: later the path may name another one.
  if (auto used = database->query_number("PRAGMA schema_version"); !used) return std::unexpected(std::move(used.error()));
  return std::make_unique<LogMover>(std::move(*database));
}

LogMover::LogMover(SqliteDatabase database) : database_(std::move(database)), thread_([this] { work(); }) {}

LogMover::~LogMover() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  thread_.join();
}

void LogMover::begin() {
  const std::lock_guard lock(mutex_);
  moving_ = true;
  wake_.notify_one();
}

bool LogMover::is_moving() const {
  const std::lock_guard lock(mutex_);
  return moving_;
}

std::optional<Result<void>> LogMover::take_moved() {
  const std::lock_guard lock(mutex_);
  return std::exchange(moved_, std::nullopt);
}

std::optional<Result<void>> LogMover::wait() {
  std::unique_lock lock(mutex_);
  over_.wait(lock, [this] { return !moving_; });
  return std::exchange(moved_, std::nullopt);
}

void LogMover::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return moving_ || stopping_; });
    if (!moving_) return;
    lock.unlock();
    auto moved = move_log(database_);
    lock.lock();
    moved_ = std::move(moved);
    moving_ = false;
    over_.notify_one();
  }
}

}  // namespace argiope
