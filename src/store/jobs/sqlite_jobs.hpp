// SqliteJobs: rows of jobs and schedules in one SQLite database, as one thread sees them. What is done to them is in
// jobs/internal/job_transitions.hpp; when it is committed is GroupCommit's business, and who waits for it that of
// AwaitedCalls.
//
// Jobs are one lean table. Which of them run is not in it: a row of `leases` holds the leases of one call, and this class
// a map of all. An entry of such a row is worth something only while its job waits and its token is above the job's
// `fence`, so a lease ends with its job, or with one number written beside what is written anyway.
//
// Inside, a statement that fails throws, so that nothing goes on after it; GroupCommit catches.
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
#include "store/jobs/gathered_rows.hpp"
#include "store/jobs/queue_list.hpp"
#include "store/jobs/sqlite_queries.hpp"
#include "store/jobs/store_driver.hpp"
#include "store/sqlite/internal/group_commit.hpp"
#include "store/sqlite/internal/lock_wait.hpp"
#include "store/sqlite/internal/sqlite.hpp"
#include "store/sqlite/internal/sqlite_file.hpp"
#include "store/sqlite/internal/sqlite_log.hpp"

namespace argiope {

class SqliteJobs final : public StoreDriver, public Transactions {
 public:
  static Result<std::unique_ptr<SqliteJobs>> open(const std::string& path, const StoreOptions& options);
  ~SqliteJobs() override;

  // --- transactions. All that follows happens in one.
  void begin(bool to_write) override;
  void commit() override;
  void roll_back() noexcept override;
  bool in_transaction() const noexcept override { return sqlite3_get_autocommit(database_.handle()) == 0; }
  Result<void> in_place() const override;
  void stop_waiting() override { lock_wait_.begin_hurry(); }
  // With SyncMode::full it is synced apart.
  SqliteLog& log() noexcept override { return log_; }
  bool others_changed_jobs();

  StoreAccess access() const noexcept { return options_.access; }
  // No lease has had a greater one; from any thread, and for longer than the jobs live.
  std::shared_ptr<const std::atomic<std::uint64_t>> last_token() const noexcept { return most_token_; }
  const std::string& path() const noexcept { return path_; }

  // --- rows
  void mark() override;
  void keep() override;
  void take_back() override;
  JobCounters& counters() override { return counters_; }
  const std::vector<StoredQueue>& all_queues() override { return queues_.all(); }
  QueueId find_queue(std::string_view name) override;
  QueueId add_queue(const std::string& name, const QueueConfig& config) override;
  void configure_queue(QueueId queue, const QueueConfig& config) override;
  bool is_empty(QueueId queue) override;
  void erase_queue(QueueId queue) override;
  std::optional<JobRow> load(JobId id) override;
  void insert(const JobRow& row, const NewJob& job, WallTime now) override;
  void save(const JobRow& before, const JobRow& after) override;
  void erase(const JobRow& row) override;
  std::optional<ErasedJob> erase_done(JobId id, std::uint64_t token) override;
  bool keep_done(JobId id, std::uint64_t token, std::int64_t ended_ms) override;
  std::vector<JobId> erase_ended(QueueId queue, JobState state, WallTime before, std::size_t limit) override;
  void write_work(JobId id, const NewJob& job) override;
  void write_attempt(JobId id, const Attempt& attempt, const std::string* result) override;
  void write_end(JobId id, const std::string& error, const std::string* result) override;
  void write_result(JobId id, const std::string& result) override;
  void write_error(JobId id, const std::string& error) override;
  std::string error_of(JobId id) override;
  JobId find_name(const std::string& name) override;
  JobId find_unique(QueueId queue, const std::string& unique) override;
  void link(JobId waited_for, JobId job) override;
  void unlink(JobId job) override;
  std::vector<JobId> take_dependants(JobId waited_for) override;
  std::vector<JobId> waits_for(JobId job, std::size_t limit) override;
  std::string_view failure_of(JobId id) override;
  void set_failure(JobId id, std::string_view how) override;

  std::optional<KeptRequest> find_request(const std::string& key) override;
  void write_request(const RequestKey& key, WallTime at, const std::string& reply) override;
  std::size_t prune_requests(WallTime before, std::size_t most, std::size_t limit) override;

  // --- leases
  std::vector<std::optional<JobRecord>> lease(std::span<const LeaseRequest> leases) override;
  void renew(std::span<const LeaseRequest> leases) override;

  // --- shelves and looks
  std::vector<WaitingJob> load_ranked(QueueId queue, const std::string* key, Rank after, std::size_t limit) override;
  std::uint64_t count_ranked(QueueId queue, const std::string* key, Rank before, std::uint64_t most) override;
  std::vector<std::string> keys_set_aside(QueueId queue, const std::optional<std::string>& after,
                                          std::size_t limit) override;
  std::vector<WaitingJob> load_delayed(QueueId queue, DueRank after, std::size_t limit) override;
  std::optional<JobRecord> record(JobId id) override;
  std::vector<Attempt> attempts(JobId id) override;
  JobSlice list(const JobFilter& filter) override;
  std::vector<QueueCounts> counts() override;

  // --- schedules
  bool advance(const FireRequest& step, std::uint64_t entries, std::uint32_t started) override;
  void write_runs(const FireRequest& step, const std::vector<ScheduleRun>& runs) override;
  void take_off_started(ScheduleId id, std::uint32_t count) override;
  std::optional<ScheduleRun> schedule_run(ScheduleId id, std::uint64_t number) override;
  void end_run(const EndedRun& run, WallTime at, std::string_view error, std::string_view result) override;
  std::vector<PutScheduleReply> put_schedules(const std::vector<PutSchedule>& schedules) override;
  bool erase_schedule(ScheduleId id) override;
  std::vector<StoredSchedule> schedules(const ScheduleFilter& filter) override;
  std::optional<StoredSchedule> schedule(ScheduleId id) override;
  std::optional<StoredSchedule> find_schedule(const std::string& name) override;
  std::optional<ScheduleView> look_at_schedule(const ScheduleLook& look) override;
  std::vector<ScheduleRun> schedule_runs(ScheduleId id, std::size_t limit) override;
  std::optional<ScheduleOutput> schedule_output(ScheduleId id) override;

  // --- ownership
  std::vector<OldLease> old_leases() override;
  ChangedElsewhere changed_elsewhere() override;
  void remember(const std::string& name, std::int64_t value) override;
  std::optional<std::int64_t> recall(const std::string& name) override;

 private:
  struct Lease {
    std::uint64_t token = 0;
    std::int64_t until = 0;
    std::int64_t batch = 0;
    bool old = false;
    QueueId queue = 0;  // of the job, and its flags; 0: to be looked up
    std::int64_t flags = 0;
    bool is_first_run = false;  // and nothing has been counted of the job
  };
  struct LeaseBatch {
    std::string worker;
    std::size_t remaining = 0;
    bool remote = false;
  };
  // Whose leases are written as one batch.
  struct Holder {
    std::string_view worker;
    bool remote = false;
    friend bool operator==(const Holder&, const Holder&) = default;
  };
  struct LeaseEntry {
    JobId id;
    std::uint64_t token;
    std::int64_t until;
  };
  struct Counts {
    std::int64_t of[6] = {};  // by JobState
    std::int64_t ended = 0;
    bool touched = false;
  };
  // Where a request begins that may be refused when half of it is done.
  struct Mark {
    std::size_t undo;
    JobCounters counters;
    std::vector<Counts> counts;
  };

  // What others leave for an owner to hear is checked for one once it has so many rows.
  static constexpr std::int64_t kMostTouched = 10'000;
  // The log is moved into the database when it has 32 MB, because nearly all of it is the same few pages over and over.
  static constexpr int kCheckpointPages = 8192;

  SqliteJobs(std::string path, const StoreOptions& options)
      : path_(std::move(path)),
        options_(options),
        lock_wait_(path_, options.busy_limit,
                   options.access == StoreAccess::own ? options.busy_warning : Duration::max()) {}

  // --- statements
  class Use;
  Use use(Query query);
  [[noreturn]] void failed(int code);
  static std::int32_t narrow(std::int64_t number) noexcept { return static_cast<std::int32_t>(number); }

  // --- rows that are written together: before the next statement of another kind, whatever it is
  void gather(const JobRow& row, const NewJob& job, WallTime now);
  void gather_done(JobId id);
  void gather_kept(const GatheredRows::Kept& job);
  void forestall(JobId id);
  void write_gathered();
  void drop_gathered() noexcept;
  void insert_gathered();
  void delete_gathered();
  void keep_gathered();

  // --- opening
  Result<void> open_file();
  Result<void> migrate_alone();
  void take_over();
  void renumber_leases();
  void note_token() noexcept {
    if (counters_.last_token > *most_token_) *most_token_ = counters_.last_token;
  }
  void refresh();
  std::optional<std::int64_t> meta(std::string_view name);
  void set_meta(std::string_view name, std::int64_t value);

  // --- rows
  // But for its row in ended_jobs.
  void erase_row(JobId id, std::int64_t flags);
  void add_flags(JobId id, std::int64_t flags);
  void count(QueueId queue, JobState state, int by);
  Counts& counts_of(QueueId queue);
  void touch(JobId id);
  void bound_touched();
  void flush();

  // --- schedules
  PutScheduleReply put_schedule(const PutSchedule& wanted);
  void write_run(ScheduleId id, const ScheduleRun& run);
  void keep_older(ScheduleId id, const ScheduleRun& run);
  std::optional<ScheduleRun> kept_at(std::uint64_t entry);
  std::optional<ScheduleRun> kept_run(ScheduleId id, std::uint64_t number);
  static StoredSchedule read_schedule(const SqliteStatement& row, bool texts);
  void touch_schedule(ScheduleId id);

  // --- leases
  void load_leases();
  // The token of its lease; 0: it does not run.
  std::uint64_t token_of(JobId id, std::int64_t fence);
  bool runs(JobId id, std::int64_t fence) { return token_of(id, fence) != 0; }
  const Lease* find_lease(JobId id);
  void set_lease(JobId id, std::optional<Lease> lease);
  JobRecord lease_row(const SqliteStatement& row, const LeaseRequest& request);
  void write_leases(std::span<const LeaseEntry> entries, Holder holder);
  void undo_leases(std::size_t down_to) noexcept;

  // --- reads
  JobRecord read_record(const SqliteStatement& row);
  void add_lease(JobRecord& record, std::int64_t fence, std::int64_t flags);
  static WaitingJob read_waiting(const SqliteStatement& row, QueueId queue, Shelf shelf);
  JobSlice list_running(const JobFilter& filter);
  JobSlice list_others(const JobFilter& filter, QueueId queue);
  JobId nth_after(JobId id, std::size_t n);
  JobId nth_before(JobId id, std::size_t n);
  JobId newest();
  bool are_few_ended(JobState state, QueueId queue);

  const std::string path_;
  const StoreOptions options_;
  // Destroyed from the last to the first: statements before the connection, that before the lock and who waits for others'.
  FileLock lock_;
  LockWait lock_wait_;
  SqliteDatabase database_;
  FileWatch files_;
  SqliteLog log_{database_, path_, kCheckpointPages};
  std::array<SqliteStatement, kQueries> statements_;
  const std::shared_ptr<std::atomic<std::uint64_t>> most_token_ = std::make_shared<std::atomic<std::uint64_t>>(0);

  // What is known of the file, good until another process changes it.
  std::int64_t data_version_ = -1;
  bool leases_known_ = false;
  bool touched_ = true;       // for the owner: others may have written
  bool has_touched_ = false;  // for others, in this transaction
  bool writing_ = false;
  QueueList queues_;
  JobCounters counters_, counters_stored_;
  ScheduleId last_schedule_ = 0, last_schedule_stored_ = 0;

  boost::unordered_flat_map<JobId, Lease> leases_;
  boost::unordered_flat_map<std::int64_t, LeaseBatch> batches_;
  std::int64_t next_batch_ = 1;

  // Of the present transaction.
  GatheredRows gathered_;
  bool has_gathered_ = false;
  Mark mark_{};
  std::vector<Counts> changed_counts_;  // by QueueId - 1
  std::vector<std::pair<JobId, std::optional<Lease>>> undo_;
  std::vector<std::int64_t> emptied_;
};

}  // namespace argiope
