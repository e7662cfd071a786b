// SqliteJobs: jobs and schedules in one SQLite database, as one thread sees them. What a call means is here; when it is committed, and
// who waits for it, is the store's thread's business (job_store_thread.hpp).
//
// Jobs are one lean table. Which of them run is not in it: a row of `leases` holds the leases of one call, and this class
// a map of all. An entry of such a row is worth something only while its job waits and its token is above the job's
// `fence`, so a lease ends with its job, or with one number written beside what is written anyway.
//
// Inside, a statement that fails throws, so that nothing goes on after it; the store's thread catches.
#pragma once

#include <array>
#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argiope/store/store.hpp"
#include "store/lock_wait.hpp"
#include "store/sqlite.hpp"
#include "store/sqlite_file.hpp"
#include "store/sqlite_queries.hpp"

namespace argiope {

// The request breaks its contract: nothing of it has been done.
struct RequestRefused {
  Error error;
};
struct DatabaseFailed {
  Error error;
};

class SqliteJobs {
 public:
  static Result<std::unique_ptr<SqliteJobs>> open(const std::string& path, const StoreOptions& options);
  ~SqliteJobs();

  // --- transactions. All that follows happens in one.
  void begin(bool to_write);
  void commit();
  // The transaction's changes are gone, and so is what was thought of them.
  void roll_back() noexcept;
  // False after begin() where SQLite has rolled back by itself because of a failure.
  bool in_transaction() const noexcept { return sqlite3_get_autocommit(database_.handle()) == 0; }
  bool others_changed_jobs();
  // From any thread: what waits for another process's lock, and will, is failed within StoreOptions::busy_limit.
  void give_up_waiting() { lock_wait_.give_up(); }
  // Whether the files that are open are still those under their names; and the error where they are not.
  bool in_place() const noexcept { return files_.in_place(); }
  Error not_in_place() const;

  // --- with SyncMode::full a commit is not on the disk before its log has been synced, which is not this class's business
  bool needs_sync() const noexcept { return static_cast<bool>(log_); }
  // From another thread than the rest, one at a time.
  Result<void> sync_log() noexcept { return log_.sync(path_); }
  // Whether it is time to move what the log holds into the database; everything in it must have been synced. Outside of
  // transactions.
  bool log_is_long() const noexcept { return log_pages_ >= checkpoint_at_; }
  Result<void> checkpoint();
  // The log stays behind when the database is closed, for the next owner to write anew: what is in it may not be on the
  // disk, whatever a later sync says.
  void keep_log() noexcept;

  StoreAccess access() const noexcept { return options_.access; }
  // From any thread: no lease has had a greater one.
  std::uint64_t last_token() const noexcept { return most_token_.load(std::memory_order_relaxed); }
  const std::string& path() const noexcept { return path_; }

  // --- the calls of Store
  StoredQueue open_queue(const std::string& name, const QueueConfig& config);
  void configure(QueueId queue, const QueueConfig& config);
  std::vector<StoredQueue> queues();

  std::vector<Result<PutReply>> put(const std::vector<PutRequest>& requests, WallTime now, Refusal refusal);
  std::vector<std::optional<JobRecord>> lease(const std::vector<LeaseRequest>& leases);
  void renew(const std::vector<LeaseRequest>& leases);
  std::vector<SettleReply> settle(const std::vector<Settlement>& settlements);
  std::vector<ChangeReply> change(const std::vector<Change>& changes);
  void shelve(const std::vector<JobId>& jobs, Shelf shelf);
  std::size_t prune(QueueId queue, JobState state, WallTime before, std::size_t limit);

  std::vector<PutScheduleReply> put_schedules(const std::vector<PutSchedule>& schedules);
  std::size_t erase_schedules(const std::vector<ScheduleId>& ids);
  std::vector<StoredSchedule> schedules(const ScheduleFilter& filter);
  std::vector<std::optional<StoredSchedule>> load_schedules(const std::vector<ScheduleId>& ids);
  std::optional<StoredSchedule> find_schedule(const std::string& name);
  std::vector<std::optional<ScheduleView>> look_at_schedules(const std::vector<ScheduleLook>& looks);
  std::optional<ScheduleRun> schedule_run(ScheduleId id, std::uint64_t number);
  std::vector<ScheduleRun> schedule_runs(ScheduleId id, std::size_t limit);
  std::optional<ScheduleOutput> schedule_output(ScheduleId id);
  std::vector<Result<FireReply>> fire(const std::vector<FireRequest>& requests, WallTime now);

  std::vector<WaitingJob> load_ready(QueueId queue, Rank after, std::size_t limit);
  std::vector<WaitingJob> load_set_aside(QueueId queue, const std::string& key, Rank after, std::size_t limit);
  std::vector<std::string> keys_set_aside(QueueId queue, const std::optional<std::string>& after, std::size_t limit);
  std::vector<WaitingJob> load_delayed(QueueId queue, WallTime after, JobId after_id, std::size_t limit);

  std::vector<std::optional<WaitingJob>> find_waiting(const std::vector<JobId>& ids);
  std::optional<JobRecord> get(JobId id);
  std::optional<JobId> find_name(const std::string& name);
  std::vector<Attempt> history(JobId id);
  std::vector<JobRecord> list(const JobFilter& filter);
  std::vector<QueueCounts> counts();
  std::uint64_t count_before(QueueId queue, Rank rank, std::uint64_t most, const std::optional<std::string>& key);
  std::vector<JobId> waits_for(JobId id, std::size_t limit);

  std::vector<OldLease> old_leases();
  ChangedElsewhere changed_elsewhere();
  void remember(const std::string& name, std::int64_t value);
  std::optional<std::int64_t> recall(const std::string& name);

 private:
  // As `state` says in the table: the shelves, then the ends.
  enum class Stored : std::uint8_t { ready, set_aside, delayed, waiting, done, cancelled, buried };
  static bool waits(Stored state) noexcept { return state <= Stored::waiting; }
  static bool leasable(Stored state) noexcept { return state <= Stored::delayed; }

  // What decides about a job, without what it carries.
  struct Row {
    JobId id = 0;
    QueueId queue = 0;
    Stored state = Stored::ready;
    std::int32_t rank = 0;
    std::int32_t priority = 0;
    std::int64_t due_at = 0;
    std::uint32_t attempts = 0;
    std::uint32_t expiries = 0;
    std::uint32_t pending = 0;
    bool cancelled_with_others = true;
    std::int64_t flags = 0;
    std::int64_t fence = 0;  // leases with tokens up to this one are over
    std::int64_t ended_at = 0;
    std::string key;
    std::string unique;
    ScheduleId schedule = 0;
    std::uint64_t run = 0;
  };
  // When a job ends, and whose runs have ended by that.
  struct Ending {
    std::int64_t at;
    std::int64_t calendar_at;
    std::vector<EndedRun>& runs;
  };
  static constexpr std::int64_t kHasDependants = 1;
  static constexpr std::int64_t kHasHistory = 2;
  static constexpr std::int64_t kHasNames = 4;  // a name, a unique one, or both
  static constexpr std::int64_t kIsRun = 8;     // of a schedule
  static constexpr std::int64_t kCancelAsked = 16;

  struct Lease {
    std::int64_t token = 0;
    std::int64_t until = 0;
    std::int64_t batch = 0;
    bool old = false;
    QueueId queue = 0;  // of the job, and its flags; 0: to be looked up
    std::int64_t flags = 0;
  };
  struct LeaseBatch {
    std::string worker;
    std::size_t remaining = 0;
  };
  struct LeaseEntry {
    JobId id;
    std::int64_t token;
    std::int64_t until;
  };
  struct Counts {
    std::int64_t of[6] = {};  // by JobState
    std::int64_t ended = 0;
    bool touched = false;
  };
  // Where a call begins that may be refused midway.
  struct Mark {
    std::size_t undo;
    JobId last_id;
    JobId last_chosen_id;
    std::vector<Counts> counts;
    std::size_t queues;
  };

  // What others leave for an owner to hear is checked for one once it has so many rows.
  static constexpr std::int64_t kMostTouched = 10'000;
  // The log is moved into the database when it has 32 MB, because nearly all of it is the same few pages over and over.
  static constexpr int kCheckpointPages = 8192;

  SqliteJobs(std::string path, const StoreOptions& options)
      : path_(std::move(path)), options_(options), lock_wait_(path_, options.busy_limit, options.busy_warning) {}

  // --- statements
  class Use;
  Use use(Query query);
  [[noreturn]] void failed(int code);
  static std::int32_t narrow(std::int64_t number) noexcept { return static_cast<std::int32_t>(number); }

  // --- opening
  Result<void> open_file();
  Result<void> migrate_alone();
  Result<void> sync_apart();
  void take_over();
  void renumber_leases();
  void note_token() noexcept {
    const auto token = static_cast<std::uint64_t>(last_token_);
    if (token > last_token()) most_token_.store(token, std::memory_order_relaxed);
  }
  void refresh();
  std::optional<std::int64_t> meta(std::string_view name);
  void set_meta(std::string_view name, std::int64_t value);

  // --- rows
  std::optional<Row> load(JobId id);
  void store(const Row& before, const Row& after);
  void erase_row(JobId id, std::int64_t flags);
  void add_flags(JobId id, std::int64_t flags);
  static bool holds_unique(const Row& row) noexcept { return !row.unique.empty() && waits(row.state); }
  void count(QueueId queue, JobState state, int by);
  static JobState state_of(Stored state) noexcept;
  WaitingJob waiting(const Row& row) const;
  void touch(JobId id);
  void bound_touched();
  void flush();

  // --- writes
  QueueId queue_of(const std::string& name, const QueueConfig& config);
  const StoredQueue& queue(QueueId id);
  // `before`: the jobs of those put before it in the same call.
  PutReply put_one(const PutRequest& request, std::int64_t now, std::span<const JobId> before = {},
                   ScheduleId schedule = 0);
  void insert(const PutRequest& request, const Row& row, std::int64_t now);
  PutReply put_on(const Row& holder, const PutRequest& request, std::int64_t now);
  JobId next_id();
  bool was_given(JobId id) const noexcept;
  struct Failed {
    JobId id = 0;  // 0: none has
    std::string_view how;
  };
  Failed failure_of(JobId id);
  void remember_failed(JobId id, std::string_view how);
  std::vector<JobId> not_ended(const std::vector<JobId>& ids, Failed& failed);
  std::shared_ptr<const CancelledAtPut> cancel_at_put(const Row& row, Failed because_of, std::int64_t now);
  void join_batch(JobId batch, const Row& job, const std::vector<JobId>& waits_for);
  SettleReply settle_one(const Settlement& settlement);
  std::optional<Settlement> cancellation_of(const Settlement& asked, const Row& row);
  std::vector<JobId> settle_done(const Settlement& settlement, const Ending& ending);
  void give_back(const Row& row, const Settlement& settlement, std::int64_t at, SettleReply& reply);
  void failed_attempt(Row& row, const Settlement& settlement, const char* outcome, std::int64_t at);
  ChangeReply change_one(const Change& change);
  void ask_to_cancel(const Change& change);
  // `how`: in a word, for who waits for it; empty: it is done.
  std::vector<JobId> end(const Row& row, Stored state, const Ending& ending, bool keep, std::string_view how,
                         const std::string& result, const std::string& error);
  std::vector<JobId> take_dependants(JobId id);
  void tell_dependants(JobId ended, std::vector<JobId> dependants, bool badly, std::string_view how,
                       const Ending& ending, std::vector<WaitingJob>& released, std::vector<JobId>& cancelled);
  void place_now(Row& row, std::int64_t at);
  template <class Act>
  auto undone_if_refused(bool may_be, Act act) -> decltype(act());
  Mark mark();
  void take_back(const Mark& mark);

  // --- schedules
  PutScheduleReply put_schedule(const PutSchedule& wanted);
  FireReply fire_one(const FireRequest& request, std::int64_t now);
  void write_run(ScheduleId id, const ScheduleRun& run);
  void write_runs(ScheduleId id, const std::vector<ScheduleRun>& runs);
  void keep_older(ScheduleId id, const ScheduleRun& run);
  std::optional<ScheduleRun> kept_at(std::uint64_t entry);
  std::optional<ScheduleRun> kept_run(ScheduleId id, std::uint64_t number);
  ScheduleView look_at_schedule(StoredSchedule schedule, const ScheduleLook& look);
  void end_run(const EndedRun& run, const Ending& ending, std::string_view error, std::string_view result);
  static StoredSchedule read_schedule(const SqliteStatement& row, bool texts);
  void touch_schedule(ScheduleId id);

  // --- leases
  void load_leases();
  bool runs(JobId id, std::int64_t fence);
  const Lease* find_lease(JobId id);
  void set_lease(JobId id, std::optional<Lease> lease);
  void write_leases(std::span<const LeaseEntry> entries, std::string_view worker);
  void undo_leases(std::size_t down_to) noexcept;

  // --- reads
  JobRecord read_record(const SqliteStatement& row);
  void add_lease(JobRecord& record, std::int64_t fence, std::int64_t flags);
  static WaitingJob read_waiting(const SqliteStatement& row, QueueId queue, Shelf shelf);
  std::vector<WaitingJob> load_ranked(Query equal, Query below, QueueId queue, const std::string* key, Rank after,
                                      std::size_t limit);
  std::vector<JobRecord> list_running(const JobFilter& filter, std::size_t limit);

  const std::string path_;
  const StoreOptions options_;
  // Destroyed from the last to the first: statements before the connection, that before the lock and who waits for others'.
  FileLock lock_;
  LockWait lock_wait_;
  SqliteDatabase database_;
  FileWatch files_;
  LogSync log_;
  std::array<SqliteStatement, kQueries> statements_;
  std::atomic<std::uint64_t> most_token_ = 0;

  // What is known of the file, good until another process changes it.
  std::int64_t data_version_ = -1;
  bool leases_known_ = false;
  bool touched_ = true;       // for the owner: others may have written
  bool has_touched_ = false;  // for others, in this transaction
  bool writing_ = false;
  int log_pages_ = 0, checkpoint_at_ = kCheckpointPages;
  std::vector<StoredQueue> queues_;
  std::map<std::string, QueueId, std::less<>> queue_ids_;
  JobId last_id_ = 0, last_id_stored_ = 0;
  JobId last_chosen_id_ = 0, last_chosen_id_stored_ = 0;  // the largest above kMostCountedId that a caller has chosen
  std::int64_t last_token_ = 0, last_token_stored_ = 0;
  ScheduleId last_schedule_ = 0, last_schedule_stored_ = 0;

  boost::unordered_flat_map<JobId, Lease> leases_;
  boost::unordered_flat_map<std::int64_t, LeaseBatch> batches_;
  std::int64_t next_batch_ = 1;

  // Of the present transaction.
  std::vector<Counts> changed_counts_;  // by QueueId - 1
  std::vector<std::pair<JobId, std::optional<Lease>>> undo_;
  std::vector<std::int64_t> emptied_;
};

}  // namespace argiope
