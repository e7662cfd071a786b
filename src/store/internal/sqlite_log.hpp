// The log (-wal) of a connection to a SQLite file: written anew by a new owner, synced by another thread than the one that
// commits, moved into the database by a third when it is long.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "store/internal/log_mover.hpp"
#include "store/internal/sqlite.hpp"

namespace argiope {

// Writes the log onto itself and syncs it. When a sync fails, Linux goes on showing what was to be written and never tries
// again: after a death the next owner would find in the log a last commit that is not on the disk, and all it puts behind
// that would be lost with it in a power cut. To be called in a transaction that writes, before anything is written.
Result<void> write_log_anew(SqliteDatabase& database, const std::string& path);

// Takes syncs and checkpoints from SQLite, which would make its owner wait for the disk within each commit, and would not
// say that a checkpoint has failed. The log is opened a second time for that: Linux tells of a write that has failed once
// for each time a file is opened, and a descriptor of its own misses none of that.
//
// Threads: sync() from any, one at a time; the rest from the connection's.
class SqliteLog {
 public:
  // Of the connection that `database` has when it is used, which must outlive it. It is long with so many pages.
  SqliteLog(SqliteDatabase& database, std::string path, int long_pages)
      : database_(database), path_(std::move(path)), long_pages_(long_pages), move_at_(long_pages) {}
  ~SqliteLog();
  SqliteLog(const SqliteLog&) = delete;

  // After something has been read or written. From here on SQLite syncs the log only where the order of writes needs it,
  // and whoever commits syncs the commits. Changes nothing where there is no log: on a file system without shared memory
  // SQLite stays with its journal.
  Result<void> sync_apart();
  // Whether a commit is not on the disk before sync(). Where it is, there is nothing to sync, and SQLite makes checkpoints.
  bool is_apart() const noexcept { return file_ != nullptr; }
  // What has been committed is on the disk.
  Result<void> sync() noexcept;
  // Another thread moves a log that is long into the database, while commits go on; nobody moves the log of one that has
  // not been synced apart. To be asked after each commit. Errors: a sync of an earlier move that has failed.
  Result<void> move_when_long();
  // Whether so little has come to the log since a move began that move_rest() takes no longer than a commit or two.
  bool has_rest() const noexcept { return has_rest_; }
  // Moves that, so that the log begins anew; all of it must have been synced. Outside of transactions. One that others
  // keep from its end, or a full disk, is tried again when the log has grown by as much again. Errors: a sync that has failed.
  Result<void> move_rest();
  // Waits for a move that is under way. Errors: as move_when_long().
  Result<void> stop_moving();
  // It stays behind when the database is closed, for the next owner to write anew: what is in it may not be on the disk,
  // whatever a later sync says.
  void keep() noexcept;

 private:
  void begin_move();

  SqliteDatabase& database_;
  const std::string path_;
  sqlite3_file* file_ = nullptr;
  const int long_pages_;
  int pages_ = 0, move_at_;
  int moved_pages_ = 0;  // that were there when the last move began
  bool is_moving_ = false, has_rest_ = false;
  std::unique_ptr<LogMover> mover_;
};

}  // namespace argiope
