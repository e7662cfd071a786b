// Opening: the tables, whose file it is, who owns it.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "store/jobs/internal/job_file.hpp"
#include "store/jobs/sqlite_driver.hpp"

namespace argiope {
namespace {

constexpr std::int64_t kApplicationId = 0x4172676a;  // "Argj"
constexpr std::int64_t kCacheKib = 32 * 1024;

// Times are milliseconds since 1970. NULL stands for 0 and for an empty text where that is the rule.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE queues (
  queue_id INTEGER PRIMARY KEY,
  name     TEXT NOT NULL UNIQUE,
  config   TEXT NOT NULL             -- JSON
);
CREATE TABLE counts (                -- how many jobs of each queue are in which state
  queue_id  INTEGER PRIMARY KEY,
  delayed   INTEGER NOT NULL DEFAULT 0,
  ready     INTEGER NOT NULL DEFAULT 0,
  running   INTEGER NOT NULL DEFAULT 0,
  done      INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  buried    INTEGER NOT NULL DEFAULT 0,
  ended     INTEGER NOT NULL DEFAULT 0  -- done since the store was made
);
CREATE TABLE jobs (
  job_id       INTEGER PRIMARY KEY,
  queue_id     INTEGER NOT NULL,
  state        INTEGER NOT NULL,  -- 0 ready, 1 ready and set aside, 2 delayed, 3 waiting for jobs, 4 done, 5 cancelled, 6 buried
  rank         INTEGER NOT NULL,  -- priority and age: higher first
  priority     INTEGER NOT NULL,
  due_at       INTEGER,
  attempts     INTEGER,
  max_attempts INTEGER,
  expiries     INTEGER,           -- leases that ran out
  pending      INTEGER,           -- jobs it still waits for
  if_failed    INTEGER,           -- 1: runs although one of them failed
  flags        INTEGER,           -- 1: others have waited for it, 2: it has rows in attempts, 4: it has names,
                                  -- 8: it is a run of a schedule, 16: it is to be cancelled when its run ends
  fence        INTEGER,           -- leases with tokens up to this one are over
  created_at   INTEGER NOT NULL,
  ended_at     INTEGER,
  key          TEXT NOT NULL,
  unique_name  TEXT,
  name         TEXT,
  function     TEXT,
  error        TEXT,
  result       BLOB,
  payload      BLOB
);
CREATE INDEX jobs_ready ON jobs (queue_id, rank DESC, job_id) WHERE state = 0;
CREATE INDEX jobs_set_aside ON jobs (queue_id, key, rank DESC, job_id) WHERE state = 1;
CREATE INDEX jobs_delayed ON jobs (queue_id, due_at, job_id) WHERE state = 2;
CREATE UNIQUE INDEX jobs_unique ON jobs (queue_id, unique_name) WHERE unique_name IS NOT NULL AND state < 4;
CREATE UNIQUE INDEX jobs_name ON jobs (name) WHERE name IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (queue_id, state, ended_at) WHERE state >= 4;
CREATE TABLE dependencies (waits_for INTEGER NOT NULL, job_id INTEGER NOT NULL, PRIMARY KEY (waits_for, job_id))
  WITHOUT ROWID;
CREATE INDEX dependencies_of ON dependencies (job_id, waits_for);
CREATE TABLE attempts (              -- those that failed
  job_id   INTEGER NOT NULL,
  entry    INTEGER NOT NULL,
  number   INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  outcome  TEXT NOT NULL,
  error    TEXT,
  worker   TEXT,
  PRIMARY KEY (job_id, entry)
) WITHOUT ROWID;
CREATE TABLE leases (                -- which jobs run; void for jobs that have ended or whose fence is not below the token
  batch   INTEGER PRIMARY KEY,
  worker  TEXT NOT NULL,
  entries BLOB NOT NULL              -- job_id, token, until: 8 bytes each, lowest byte first
);
CREATE TABLE touched (n INTEGER PRIMARY KEY, job_id INTEGER NOT NULL);  -- changed by others than the owner
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('epoch', 0), ('last_id', 0), ('last_token', 0);
CREATE VIEW job_list AS              -- jobs that run show as ready here
  SELECT j.job_id, q.name AS queue,
         CASE j.state WHEN 0 THEN 'ready' WHEN 1 THEN 'ready' WHEN 2 THEN 'delayed' WHEN 3 THEN 'delayed'
                      WHEN 4 THEN 'done' WHEN 5 THEN 'cancelled' ELSE 'buried' END AS state,
         j.key, j.priority, j.name, j.unique_name, j.function, coalesce(j.attempts, 0) AS attempts,
         strftime('%Y-%m-%dT%H:%M:%fZ', j.due_at / 1000.0, 'unixepoch') AS due_at,
         strftime('%Y-%m-%dT%H:%M:%fZ', j.created_at / 1000.0, 'unixepoch') AS created_at,
         strftime('%Y-%m-%dT%H:%M:%fZ', j.ended_at / 1000.0, 'unixepoch') AS ended_at,
         coalesce(j.pending, 0) AS waits_for, j.error, j.result, j.payload
  FROM jobs j JOIN queues q USING (queue_id);
)sql";

// Schedules. The values that a step changes are in rows of their own, small and many to a page; and the entries of one
// number of many schedules lie side by side, because it is they that are written together.
constexpr const char* kVersion2 = R"sql(
CREATE TABLE schedules (
  schedule_id INTEGER PRIMARY KEY,
  name        TEXT NOT NULL UNIQUE,
  trigger     TEXT NOT NULL,
  definition  TEXT NOT NULL
);
CREATE TABLE places (                -- where schedules stand; times by the calendar
  schedule_id INTEGER PRIMARY KEY,
  version     INTEGER NOT NULL,
  next        INTEGER,               -- 9223372036854: none will come
  last        INTEGER,
  fired       INTEGER,
  missed      INTEGER,
  entries     INTEGER,               -- of its history that have been written
  paused      INTEGER,
  active      INTEGER                -- runs whose jobs have not ended
);
CREATE TABLE schedule_runs (         -- the last 20 entries of each history
  entry        INTEGER PRIMARY KEY,  -- number % 20 * 2^48 + schedule_id
  number       INTEGER NOT NULL,
  planned      INTEGER,
  last_planned INTEGER,
  count        INTEGER,
  fired_at     INTEGER,
  ended_at     INTEGER,
  outcome      INTEGER NOT NULL,     -- 0 running, 1 done, 2 failed, 3 cancelled, 4 missed, 5 skipped
  job_id       INTEGER,
  error        TEXT
);
CREATE TABLE touched_schedules (n INTEGER PRIMARY KEY, schedule_id INTEGER NOT NULL);
ALTER TABLE jobs ADD COLUMN schedule_id INTEGER;  -- whose run it is, until it has ended
ALTER TABLE jobs ADD COLUMN run INTEGER;
INSERT INTO meta VALUES ('last_schedule', 0);
CREATE VIEW schedule_list AS
  SELECT schedule_id, name, trigger, definition, coalesce(paused, 0) AS paused,
         strftime('%Y-%m-%dT%H:%M:%fZ', nullif(next, 9223372036854) / 1000.0, 'unixepoch') AS next,
         strftime('%Y-%m-%dT%H:%M:%fZ', last / 1000.0, 'unixepoch') AS last,
         coalesce(fired, 0) AS fired, coalesce(missed, 0) AS missed, coalesce(active, 0) AS active
  FROM schedules JOIN places USING (schedule_id);
CREATE VIEW schedule_history AS
  SELECT s.name, r.number,
         CASE r.outcome WHEN 0 THEN 'running' WHEN 1 THEN 'done' WHEN 2 THEN 'failed' WHEN 3 THEN 'cancelled'
                        WHEN 4 THEN 'missed' ELSE 'skipped' END AS outcome,
         strftime('%Y-%m-%dT%H:%M:%fZ', r.planned / 1000.0, 'unixepoch') AS planned,
         strftime('%Y-%m-%dT%H:%M:%fZ', r.last_planned / 1000.0, 'unixepoch') AS last_planned, r.count,
         strftime('%Y-%m-%dT%H:%M:%fZ', r.fired_at / 1000.0, 'unixepoch') AS fired_at,
         strftime('%Y-%m-%dT%H:%M:%fZ', r.ended_at / 1000.0, 'unixepoch') AS ended_at, r.job_id, r.error
  FROM schedule_runs r JOIN schedules s ON s.schedule_id = r.entry & 0xffffffffffff
  ORDER BY s.name, r.number;
)sql";

// An index is opened and closed by every statement that writes a row, whether or not the row is in it. The fields that
// few jobs have are in tables of their own, which cost the others nothing.
constexpr const char* kVersion3 = R"sql(
DROP INDEX jobs_unique;
DROP INDEX jobs_name;
DROP INDEX jobs_ended;
CREATE TABLE unique_names (          -- of jobs that have not ended
  queue_id    INTEGER NOT NULL,
  unique_name TEXT NOT NULL,
  job_id      INTEGER NOT NULL,
  PRIMARY KEY (queue_id, unique_name)
) WITHOUT ROWID;
CREATE TABLE names (name TEXT PRIMARY KEY, job_id INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE ended_jobs (
  queue_id INTEGER NOT NULL,
  state    INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  job_id   INTEGER NOT NULL,
  PRIMARY KEY (queue_id, state, ended_at, job_id)
) WITHOUT ROWID;
INSERT INTO unique_names SELECT queue_id, unique_name, job_id FROM jobs WHERE unique_name IS NOT NULL AND state < 4;
INSERT INTO names SELECT name, job_id FROM jobs WHERE name IS NOT NULL;
INSERT INTO ended_jobs SELECT queue_id, state, coalesce(ended_at, 0), job_id FROM jobs WHERE state >= 4;
UPDATE jobs SET flags = coalesce(flags, 0) | 4 WHERE name IS NOT NULL OR unique_name IS NOT NULL;
UPDATE jobs SET flags = coalesce(flags, 0) | 8 WHERE schedule_id IS NOT NULL;
)sql";

// Runs that had not ended when later entries of the history took their places: a step may have to wait for them, or to
// cancel them. Of those there are their planned time is not known any more. How many runs are active is counted anew.
constexpr const char* kVersion4 = R"sql(
CREATE TABLE older_runs (
  schedule_id INTEGER NOT NULL,
  number      INTEGER NOT NULL,
  planned     INTEGER,
  fired_at    INTEGER,
  job_id      INTEGER NOT NULL,
  PRIMARY KEY (schedule_id, number)
) WITHOUT ROWID;
INSERT INTO older_runs
  SELECT j.schedule_id, j.run, j.created_at, j.created_at, j.job_id FROM jobs j JOIN places p USING (schedule_id)
  WHERE NOT EXISTS (SELECT 1 FROM schedule_runs r WHERE r.entry = (j.run % 20) << 48 | j.schedule_id AND r.number = j.run);
UPDATE places SET active = NULL WHERE active IS NOT NULL;
UPDATE places SET active = found.runs
  FROM (SELECT schedule_id AS id, count(*) AS runs FROM jobs WHERE schedule_id IS NOT NULL GROUP BY schedule_id) AS found
  WHERE schedule_id = found.id;
)sql";

// Tokens go on from the last one, so openings are counted no more. A job that has failed is known to have done so when
// its record is gone, by the last of those whose id leaves the same rest.
constexpr const char* kVersion5 = R"sql(
DELETE FROM meta WHERE name = 'epoch';
CREATE TABLE failed_jobs (
  slot   INTEGER PRIMARY KEY,        -- job_id % 2^18
  job_id INTEGER NOT NULL,
  how    TEXT NOT NULL               -- buried, cancelled, deleted
);
INSERT INTO meta SELECT 'last_chosen_id', value FROM meta WHERE name = 'last_id' AND value > 4503599627370496;
UPDATE meta SET value = 4503599627370496 WHERE name = 'last_id' AND value > 4503599627370496;
)sql";

// The output of the last run of each schedule, however long its job is kept.
constexpr const char* kVersion6 = R"sql(
CREATE TABLE schedule_outputs (
  schedule_id INTEGER PRIMARY KEY,
  number      INTEGER NOT NULL,
  job_id      INTEGER NOT NULL,
  ended_at    INTEGER,
  outcome     INTEGER NOT NULL,
  error       TEXT,
  output      BLOB NOT NULL
);
)sql";

// Jobs may have a lease time of their own; what is counted of their runs; leases of workers that may outlive the owner.
constexpr const char* kVersion7 = R"sql(
ALTER TABLE jobs ADD COLUMN lease_time INTEGER;
ALTER TABLE jobs ADD COLUMN tally INTEGER;    -- src/jobs/internal/job_tally.hpp
ALTER TABLE leases ADD COLUMN remote INTEGER;
ALTER TABLE queues ADD COLUMN erased INTEGER;
CREATE TABLE requests (              -- that came under a key, in the order they came
  n           INTEGER PRIMARY KEY,
  request_key TEXT NOT NULL UNIQUE,
  at          INTEGER NOT NULL,
  digest      BLOB NOT NULL,
  reply       BLOB NOT NULL          -- src/jobs/request_memory.cpp
);
)sql";

constexpr const char* kMigrations[] = {kVersion1, kVersion2, kVersion3, kVersion4, kVersion5, kVersion6, kVersion7};
constexpr SqliteFormat kJobsFormat{kApplicationId, kMigrations};

}  // namespace

Result<void> check_job_file(const std::string& path) { return check_sqlite_head(path, kJobsFormat); }

Result<std::unique_ptr<SqliteDriver>> SqliteDriver::open(const std::string& path, const StoreOptions& options) {
  std::unique_ptr<SqliteDriver> driver(new SqliteDriver(path, options));
  const bool owns = options.access == StoreAccess::own;
  const bool reads_only = options.access == StoreAccess::read;
  if (owns) {
    auto lock = FileLock::take(path);
    if (!lock) return std::unexpected(std::move(lock.error()));
    driver->lock_ = std::move(*lock);
  } else if (reads_only && ::access(path.c_str(), F_OK) != 0) {
    return fail(Errc::not_found, fmt::format("database {}: {}", path, std::strerror(errno)));
  }
  if (auto opened = driver->open_file(); !opened) return std::unexpected(std::move(opened.error()));
  SqliteDatabase& file = driver->database_;
  if (reads_only) {
    if (auto ours = require_format_to_read(file, path, kJobsFormat); !ours) return std::unexpected(ours.error());
  } else {
    if (options.access == StoreAccess::share) {
      if (auto migrated = driver->migrate_alone(); !migrated) return std::unexpected(std::move(migrated.error()));
    }
    if (auto ours = require_format(file, path, kJobsFormat); !ours) return std::unexpected(ours.error());
    if (auto set = configure_writer(file, options.sync, options.max_bytes, kCacheKib); !set) {
      return std::unexpected(set.error());
    }
    const std::string checkpoints = fmt::format("PRAGMA wal_autocheckpoint = {}", kCheckpointPages);
    if (auto set = file.execute(checkpoints.c_str()); !set) return std::unexpected(set.error());
  }
  try {
    driver->begin(owns);
    // Those who share do not: what they find is the owner's, or moved into the database when they close.
    if (owns && options.sync != SyncMode::off) {
      if (auto anew = write_log_anew(file, path); !anew) throw DatabaseFailed{std::move(anew.error())};
    }
    if (owns) driver->take_over();
    driver->files_ = FileWatch(file, driver->lock_);
    driver->commit();
    if (auto there = driver->in_place(); !there) return std::unexpected(std::move(there.error()));
  } catch (DatabaseFailed& error) {
    driver->roll_back();
    return std::unexpected(std::move(error.error));
  }
  if (!reads_only && options.sync == SyncMode::full) {
    if (auto apart = driver->log_.sync_apart(); !apart) return std::unexpected(std::move(apart.error()));
  }
  if (owns) driver->lock_wait_.be_patient();
  return driver;
}

Result<void> SqliteDriver::open_file() {
  const int flags = access() == StoreAccess::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  auto opened = SqliteDatabase::open(path_, flags);
  if (!opened) return std::unexpected(std::move(opened.error()));
  database_ = std::move(*opened);
  lock_wait_.serve(database_);
  return {};
}

// An older Argiope that owns the file knows nothing of the newer tables: it must have ended before they are made. The
// lock is taken while SQLite has the file closed; see FileLock.
Result<void> SqliteDriver::migrate_alone() {
  auto older = is_older(database_, path_, kJobsFormat);
  if (!older) return std::unexpected(std::move(older.error()));
  if (!*older) return {};
  database_ = {};
  auto lock = FileLock::take(path_);
  if (!lock && lock.error().code == Errc::busy) {
    return fail(Errc::busy, fmt::format("database {}: made by an older argiope that is still using it; stop that one "
                                        "first, and it will be brought up to date",
                                        path_));
  }
  if (!lock) return std::unexpected(std::move(lock.error()));
  lock_ = std::move(*lock);
  if (auto opened = open_file(); !opened) return opened;
  auto done = require_format(database_, path_, kJobsFormat);
  lock_.release();
  return done;
}

SqliteDriver::~SqliteDriver() = default;

void SqliteDriver::take_over() {
  news_.forget();
  leases_.take_over([this](JobId id) {
    const auto row = jobs_.load(id);
    return row && row->runs();
  });
}

}  // namespace argiope
