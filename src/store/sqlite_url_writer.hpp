// SqliteUrlWriter: the connection that writes a SQLite file of URLs, as one thread sees it. When its transactions are
// committed is GroupCommit's business.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "argiope/store/url_store.hpp"
#include "store/group_commit.hpp"
#include "store/lock_wait.hpp"
#include "store/sqlite.hpp"
#include "store/sqlite_file.hpp"
#include "store/sqlite_log.hpp"

namespace argiope {

class SqliteUrlWriter final : public Transactions {
 public:
  // Opens or creates the file, and keeps other writers from it. Errors: as open_url_store.
  static Result<std::unique_ptr<SqliteUrlWriter>> open(const std::string& path, const UrlStoreOptions& options);

  // --- transactions
  void begin(bool to_write) override;
  void commit() override;
  void roll_back() noexcept override;
  bool in_transaction() const noexcept override { return sqlite3_get_autocommit(database_.handle()) == 0; }
  // From any thread.
  Result<void> in_place() const override { return lock_.still_names(path_); }
  void stop_waiting() override { lock_wait_.begin_hurry(); }
  // With SyncMode::full it is synced apart.
  SqliteLog& log() noexcept override { return log_; }

  // From any thread: while a caller waits for a write, it waits for a foreign lock no longer than busy_limit.
  LockWait& lock_wait() noexcept { return lock_wait_; }

  // In a transaction.
  void write(const UrlBatch& batch);

 private:
  SqliteUrlWriter(const std::string& path, const UrlStoreOptions& options);

  Result<void> open_file(const UrlStoreOptions& options);
  Result<void> prepare();
  void run(SqliteStatement& statement);
  void insert(const NewUrl& found);
  void update(const UrlOutcome& outcome);
  void store_depth(const UrlDepth& nearer);
  void store_links(const UrlLinks& links);
  void store_move(const UrlMove& move);
  void store_note(const UrlNote& note);
  void store_kept(const KeptLinks& page);
  void store_facts(const PageFacts& facts);

  const std::string path_;
  const std::function<Result<void>()> before_commit_;
  bool writes_ = false;
  // Destroyed from the last to the first: statements before the connection, that before the lock and who waits for others'.
  FileLock lock_;
  LockWait lock_wait_;
  SqliteDatabase database_;
  SqliteLog log_;
  SqliteStatement begin_write_, begin_read_, commit_;
  SqliteStatement insert_, insert_excluded_, update_, touch_, move_, nearer_, put_links_;
  SqliteStatement forget_kept_, put_kept_, put_facts_, note_linked_, put_note_, forget_note_;
  std::string bytes_;  // of the links or anchors being stored
};

}  // namespace argiope
