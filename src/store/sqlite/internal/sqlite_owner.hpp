// SqliteOwner: the connection of the one process that writes a SQLite file, as one thread sees it. It opens the file,
// keeps other writers from it, and makes its transactions; what is written in them is its heir's business, and when
// they are committed GroupCommit's.
#pragma once

#include <string>

#include "store/sqlite/internal/group_commit.hpp"
#include "store/sqlite/internal/lock_wait.hpp"
#include "store/sqlite/internal/sqlite.hpp"
#include "store/sqlite/internal/sqlite_file.hpp"
#include "store/sqlite/internal/sqlite_log.hpp"

namespace argiope {

class SqliteOwner : public Transactions {
 public:
  struct Rules {
    SyncMode sync = SyncMode::full;
    Duration busy_limit{};       // of waits for other processes' locks; see lock_wait()
    bool is_private = false;     // the file is for its owner alone
    std::int64_t max_bytes = 0;  // the largest size of the database; 0: what the disk holds
    std::int64_t cache_kib = 4096;
    int log_pages = 1000;  // so long a log is moved into the database: 4 MB, as SQLite itself would
  };
  SqliteOwner(const std::string& path, const Rules& rules);

  // --- transactions
  void begin(bool to_write) override;
  void commit() override;
  void roll_back() noexcept override;
  bool in_transaction() const noexcept override { return sqlite3_get_autocommit(database_.handle()) == 0; }
  // Of the database and its log. From any thread.
  Result<void> in_place() const override;
  void stop_waiting() override { lock_wait_.begin_hurry(); }
  // With SyncMode::full it is synced apart.
  SqliteLog* log() noexcept override { return &log_; }

  // From any thread: while a caller waits for a write, it waits for a foreign lock no longer than busy_limit.
  LockWait& lock_wait() noexcept { return lock_wait_; }
  const std::string& path() const noexcept { return path_; }

 protected:
  // Opens or creates the file, brings it to `format`, and keeps other writers from it.
  Result<void> open_file(const SqliteFormat& format);
  // The same in memory, for this connection alone.
  Result<void> open_in_memory(const SqliteFormat& format);
  // Before something secret is written: nobody but its owner reads the file from now on. Where that cannot be, it is
  // told once.
  void keep_to_owner();
  // Opening has ended: from now on foreign locks are waited for as long as it takes.
  void be_patient();
  Result<SqliteStatement> prepare(std::string_view sql) { return database_.prepare(sql); }
  // Runs a statement that gives no rows. Throws DatabaseFailed.
  void run(SqliteStatement& statement);
  SqliteDatabase& database() noexcept { return database_; }
  bool writes() const noexcept { return writes_; }  // in this transaction

 private:
  Result<void> set_up(const SqliteFormat& format);
  Result<void> begin_log();

  const std::string path_;
  const Rules rules_;
  bool writes_ = false;
  bool is_kept_to_owner_ = false;  // or cannot be
  // Destroyed from the last to the first: statements before the connection, that before the lock and who waits for
  // others'.
  FileLock lock_;
  LockWait lock_wait_;
  SqliteDatabase database_;
  SqliteLog log_;
  FileWatch files_;
  SqliteStatement begin_write_, begin_read_, commit_;
};

}  // namespace argiope
