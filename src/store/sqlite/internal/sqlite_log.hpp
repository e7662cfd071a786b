// The log (-wal) of a connection to a SQLite file: written anew by a new owner, synced by another thread than the one
// that commits, moved into the database when it is long.
#pragma once

#include <string>
#include <utility>

#include "store/sqlite/internal/sqlite.hpp"

namespace argiope {

// Writes the log onto itself and syncs it. When a sync fails, Linux goes on showing what was to be written and never
// tries again: after a death the next owner would find in the log a last commit that is not on the disk, and all it
// puts behind that would be lost with it in a power cut. To be called in a transaction that writes, before anything is
// written.
Result<void> write_log_anew(SqliteDatabase& database, const std::string& path);

// Takes syncs and checkpoints from SQLite, which would make its owner wait for the disk within each commit, and would
// not say that a checkpoint has failed. The log is opened a second time for that: Linux tells of a write that has
// failed once for each time a file is opened, and a descriptor of its own misses none of that.
//
// Threads: sync() from any, one at a time; the rest from the connection's.
class SqliteLog {
 public:
  // Of the connection that `database` has when it is used, which must outlive it. It is long with so many pages.
  SqliteLog(SqliteDatabase& database, std::string path, int long_pages)
      : database_(database), path_(std::move(path)), long_pages_(long_pages), checkpoint_at_(long_pages) {}
  ~SqliteLog();
  SqliteLog(const SqliteLog&) = delete;

  // After something has been read or written. From here on SQLite syncs the log only where the order of writes needs
  // it, and the committer syncs the commits. Changes nothing where there is no log: on a file system without shared
  // memory SQLite stays with its journal.
  Result<void> sync_apart();
  // Whether a commit is not on the disk before sync(). Where it is, there is nothing to sync, and SQLite makes
  // checkpoints.
  bool is_apart() const noexcept { return file_ != nullptr; }
  // Brings committed data to the disk.
  Result<void> sync() noexcept;
  // Whether it is time for checkpoint().
  bool is_long() const noexcept { return pages_ >= checkpoint_at_; }
  // Moves what it holds into the database; all of it must have been synced. Outside of transactions. One that others
  // keep from its end, or a full disk, is tried again when the log has grown by as much again. Errors: a sync that has
  // failed.
  Result<void> checkpoint();
  // It stays behind when the database is closed, for the next owner to write anew: what is in it may not be on the
  // disk, whatever a later sync says.
  void keep() noexcept;

 private:
  SqliteDatabase& database_;
  const std::string path_;
  sqlite3_file* file_ = nullptr;
  const int long_pages_;
  int pages_ = 0, checkpoint_at_;
};

}  // namespace argiope
