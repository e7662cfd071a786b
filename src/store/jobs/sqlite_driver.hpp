// SqliteDriver: the store of jobs and schedules in one SQLite database, as one thread sees it: its groups of rows, its
// transactions, and whose file it is. When they are committed is GroupCommit's business, and who waits for it that of
// AwaitedCalls.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/jobs/internal/store_driver.hpp"
#include "store/jobs/sqlite_counters.hpp"
#include "store/jobs/sqlite_history.hpp"
#include "store/jobs/sqlite_jobs.hpp"
#include "store/jobs/sqlite_keys.hpp"
#include "store/jobs/sqlite_leases.hpp"
#include "store/jobs/sqlite_looks.hpp"
#include "store/jobs/sqlite_news.hpp"
#include "store/jobs/sqlite_queues.hpp"
#include "store/jobs/sqlite_schedules.hpp"
#include "store/jobs/sqlite_statements.hpp"
#include "store/sqlite/internal/group_commit.hpp"
#include "store/sqlite/internal/lock_wait.hpp"
#include "store/sqlite/internal/sqlite.hpp"
#include "store/sqlite/internal/sqlite_file.hpp"
#include "store/sqlite/internal/sqlite_log.hpp"

namespace argiope {

class SqliteDriver final : public DriverInThread, public Transaction, public OwnerRows {
 public:
  static Result<std::unique_ptr<SqliteDriver>> open(const std::string& path, const StoreOptions& options);
  ~SqliteDriver() override;

  StoreDriver& driver() noexcept override { return driver_; }
  StoreAccess access() const noexcept override { return options_.access; }
  const std::string& name() const noexcept override { return name_; }
  std::shared_ptr<const std::atomic<std::uint64_t>> last_token() const noexcept override {
    return counters_.most_token();
  }

  // All else happens in a transaction.
  void begin(bool to_write) override;
  void commit() override;
  void roll_back() noexcept override;
  bool in_transaction() const noexcept override { return sqlite3_get_autocommit(database_.handle()) == 0; }
  Result<void> in_place() const override;
  void stop_waiting() override { lock_wait_.begin_hurry(); }
  // With SyncMode::full it is synced apart.
  SqliteLog* log() noexcept override { return &log_; }
  bool others_changed_jobs() override;

  JobCounters& counters() override { return counters_.now(); }
  void mark() override;
  void keep() override;
  void take_back() override;

  std::vector<OldLease> old_leases() override;
  ChangedElsewhere changed_elsewhere() override;
  void remember(const std::string& name, std::int64_t value) override;
  std::optional<std::int64_t> recall(const std::string& name) override;

 private:
  // The log is moved into the database when it has 32 MB, because nearly all of it is the same few pages over and over.
  static constexpr int kCheckpointPages = 8192;

  SqliteDriver(std::string path, const StoreOptions& options)
      : path_(std::move(path)),
        options_(options),
        lock_wait_(path_, options.busy_limit,
                   options.access == StoreAccess::own ? options.busy_warning : Duration::max()) {}

  bool owns() const noexcept { return access() == StoreAccess::own; }
  Result<void> open_file();
  Result<void> migrate_alone();
  void take_over();
  std::int64_t data_version();
  void refresh();

  const std::string path_;
  const std::string name_ = "database " + path_;
  const StoreOptions options_;
  // Destroyed from the last to the first: statements before the connection, that before the lock and who waits for
  // others'.
  FileLock lock_;
  LockWait lock_wait_;
  SqliteDatabase database_;
  FileWatch files_;
  SqliteLog log_{database_, path_, kCheckpointPages};
  SqliteStatements sql_{database_};

  std::int64_t data_version_ = -1;  // what is known of the file is good until another process changes it
  bool writing_ = false;
  SqliteNews news_{sql_, path_, options_.access};
  SqliteCounters counters_{sql_};
  SqliteQueues queues_{sql_, news_, path_, options_.access};
  SqliteLeases leases_{sql_, queues_, counters_};
  SqliteJobs jobs_{sql_, queues_, leases_, news_, owns()};
  SqliteHistory history_{sql_, leases_};
  SqliteSchedules schedules_{sql_, news_};
  SqliteKeys keys_{sql_};
  SqliteLooks looks_{sql_, queues_, leases_};
  StoreDriver driver_{{*this, queues_, jobs_, leases_, history_, schedules_, keys_}, looks_, *this};
};

}  // namespace argiope
