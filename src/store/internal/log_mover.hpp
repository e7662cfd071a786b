// LogMover: a thread with a connection of its own that moves the log of a SQLite file into its database, while the file's
// owner goes on committing. A long log takes some 10 ms to move, in which no commit could be made.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "store/internal/sqlite.hpp"

namespace argiope {

// What is committed while a move is under way stays in the log.
// Threads: one at a time. Destroying it waits for a move that is under way.
class LogMover {
 public:
  // Opens `path` once more. Errors: as of a database that cannot be opened. Throws std::system_error where the system
  // refuses a thread.
  static Result<std::unique_ptr<LogMover>> make(const std::string& path);
  explicit LogMover(SqliteDatabase database);
  ~LogMover();
  LogMover(const LogMover&) = delete;

  // Begins to move what has been committed so far. Not before the last move's result has been taken.
  void begin();
  bool is_moving() const;
  // The result of a move that is over, once; nullopt before. What others keep in the log, or for what the disk has no
  // room, has no error: it stays there. Errors: a sync that has failed.
  std::optional<Result<void>> take_moved();
  // Waits for a move that is under way, and takes its result.
  std::optional<Result<void>> wait();

 private:
  void work();

  SqliteDatabase database_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, over_;
  bool moving_ = false, stopping_ = false;
  std::optional<Result<void>> moved_;
  std::thread thread_;
};

// Moves what no other process keeps in the log, and waits for none. Errors: a sync that has failed.
Result<void> move_log(SqliteDatabase& database);

}  // namespace argiope
