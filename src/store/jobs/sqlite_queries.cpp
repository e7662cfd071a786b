#include "store/jobs/sqlite_queries.hpp"

#include <iterator>

#include "jobs/internal/job_row.hpp"
#include "jobs/internal/job_rules.hpp"
#include "jobs/internal/job_tally.hpp"

namespace argiope {
namespace {

// Conditions like "state = 0" stand in the text because that is how SQLite finds the partial index that fits.
#define ARGIOPE_CORE                                                                                          \
  "queue_id, state, rank, priority, due_at, attempts, expiries, pending, if_failed, flags, fence, ended_at, " \
  "key, unique_name, schedule_id, run, tally"
#define ARGIOPE_RECORD_WITH(result)                                                                              \
  "job_id, queue_id, state, fence, name, key, unique_name, priority, due_at, function, attempts, max_attempts, " \
  "expiries, pending, if_failed, created_at, ended_at, error, " result ", schedule_id, run, tally, lease_time"
#define ARGIOPE_RECORD ARGIOPE_RECORD_WITH("result")
#define ARGIOPE_PLACE "version, next, last, fired, missed, entries, paused, active"
// A row that breaks a constraint ends the transaction: else SQLite would keep a copy of each page that a statement of
// many rows changes, to take back those before the one that fails.
#define ARGIOPE_INSERT_JOBS                                                                                           \
  "INSERT OR ROLLBACK INTO jobs (job_id, queue_id, state, rank, priority, due_at, max_attempts, pending, if_failed, " \
  "flags, fence, created_at, key, unique_name, name, function, payload, schedule_id, run, lease_time) VALUES "
#define ARGIOPE_ROW "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
#define ARGIOPE_4_ROWS ARGIOPE_ROW ", " ARGIOPE_ROW ", " ARGIOPE_ROW ", " ARGIOPE_ROW
#define ARGIOPE_WINDOW "job_id, fence, rank, due_at, attempts, expiries, key"

struct Text {
  Query query;
  const char* sql;
};
constexpr Text kTexts[] = {
    {Query::savepoint, "SAVEPOINT request"},
    {Query::savepoint_release, "RELEASE request"},
    {Query::savepoint_undo, "ROLLBACK TO request"},
    {Query::begin_read, "BEGIN"},
    {Query::begin_write, "BEGIN IMMEDIATE"},
    {Query::commit, "COMMIT"},
    {Query::data_version, "PRAGMA data_version"},
    {Query::meta_get, "SELECT value FROM meta WHERE name = ?"},
    {Query::meta_set, "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)"},
    {Query::queues, "SELECT queue_id, name, config, erased FROM queues ORDER BY queue_id"},
    {Query::queue_add, "INSERT INTO queues (queue_id, name, config) VALUES (?, ?, ?)"},
    {Query::queue_configure, "UPDATE queues SET config = ?2, erased = NULL WHERE queue_id = ?1"},
    {Query::queue_erase, "UPDATE queues SET erased = 1 WHERE queue_id = ?"},
    {Query::counts_add, "INSERT INTO counts (queue_id) VALUES (?)"},
    {Query::counts_change,
     "UPDATE counts SET delayed = delayed + ?2, ready = ready + ?3, running = running + ?4, done = "
     "done + ?5, cancelled = cancelled + ?6, buried = buried + ?7, ended = ended + ?8 WHERE queue_id = "
     "?1"},
    {Query::counts,
     "SELECT queue_id, delayed, ready, running, done, cancelled, buried, ended FROM counts ORDER BY "
     "queue_id"},
    {Query::job_insert, ARGIOPE_INSERT_JOBS ARGIOPE_ROW},
    {Query::job_insert_4, ARGIOPE_INSERT_JOBS ARGIOPE_4_ROWS},
    {Query::job_insert_16,
     ARGIOPE_INSERT_JOBS ARGIOPE_4_ROWS ", " ARGIOPE_4_ROWS ", " ARGIOPE_4_ROWS ", " ARGIOPE_4_ROWS},
    {Query::job_core, "SELECT " ARGIOPE_CORE " FROM jobs WHERE job_id = ?"},
    {Query::job_brief, "SELECT queue_id, flags, schedule_id, run FROM jobs WHERE job_id = ?"},
    {Query::job_update,
     "UPDATE jobs SET state = ?2, rank = ?3, priority = ?4, due_at = ?5, attempts = ?6, expiries = ?7, "
     "pending = ?8, flags = ?9, fence = ?10, ended_at = ?11, key = ?12, unique_name = ?13, tally = ?14 WHERE job_id "
     "= ?1"},
    {Query::job_set_flags, "UPDATE jobs SET flags = coalesce(flags, 0) | ?2 WHERE job_id = ?1"},
    {Query::job_set_error, "UPDATE jobs SET error = ?2 WHERE job_id = ?1"},
    {Query::job_set_failure, "UPDATE jobs SET error = ?2, result = ?3 WHERE job_id = ?1"},
    {Query::job_set_result,
     "UPDATE jobs SET error = ?2, result = ?3, schedule_id = NULL, run = NULL WHERE job_id = ?1"},
    {Query::job_set_end, "UPDATE jobs SET error = ?2, schedule_id = NULL, run = NULL WHERE job_id = ?1"},
    {Query::job_set_output, "UPDATE jobs SET result = ?2 WHERE job_id = ?1"},
    {Query::job_set_work, "UPDATE jobs SET function = ?2, payload = ?3, lease_time = ?4 WHERE job_id = ?1"},
    {Query::job_delete, "DELETE FROM jobs WHERE job_id = ?"},
    {Query::jobs_delete, "DELETE FROM jobs WHERE job_id BETWEEN ? AND ?"},
    {Query::jobs_keep_done,
     "UPDATE OR ROLLBACK jobs SET state = 4, ended_at = ?3, fence = ?4, tally = ?5 WHERE job_id BETWEEN ?1 AND ?2"},
    {Query::job_record, "SELECT " ARGIOPE_RECORD ", payload, flags FROM jobs WHERE job_id = ?"},
    {Query::job_records,
     "SELECT " ARGIOPE_RECORD ", payload, flags FROM jobs WHERE job_id BETWEEN ? AND ? ORDER BY job_id"},
    {Query::job_after, "SELECT job_id FROM jobs WHERE job_id > ? ORDER BY job_id LIMIT 1 OFFSET ?"},
    {Query::job_before, "SELECT job_id FROM jobs WHERE job_id < ? ORDER BY job_id DESC LIMIT 1 OFFSET ?"},
    {Query::job_newest, "SELECT job_id FROM jobs ORDER BY job_id DESC LIMIT 1"},
    {Query::job_error, "SELECT error FROM jobs WHERE job_id = ?"},
    {Query::job_names, "SELECT name, queue_id, unique_name FROM jobs WHERE job_id = ?"},
    {Query::name_add, "INSERT INTO names (name, job_id) VALUES (?, ?)"},
    {Query::name_find, "SELECT job_id FROM names WHERE name = ?"},
    {Query::name_delete, "DELETE FROM names WHERE name = ?"},
    {Query::unique_add, "INSERT INTO unique_names (queue_id, unique_name, job_id) VALUES (?, ?, ?)"},
    {Query::unique_find, "SELECT job_id FROM unique_names WHERE queue_id = ? AND unique_name = ?"},
    {Query::unique_delete, "DELETE FROM unique_names WHERE queue_id = ? AND unique_name = ? AND job_id = ?"},
    {Query::ended_add, "INSERT INTO ended_jobs (queue_id, state, ended_at, job_id) VALUES (?, ?, ?, ?)"},
    {Query::ended_add_done,
     "INSERT OR ROLLBACK INTO ended_jobs (queue_id, state, ended_at, job_id) SELECT queue_id, state, ended_at, job_id "
     "FROM "
     "jobs WHERE job_id BETWEEN ? AND ?"},
    {Query::ended_delete, "DELETE FROM ended_jobs WHERE queue_id = ? AND state = ? AND ended_at = ? AND job_id = ?"},
    {Query::failed_add, "INSERT OR REPLACE INTO failed_jobs (slot, job_id, how) VALUES (?, ?, ?)"},
    {Query::failed_find, "SELECT how FROM failed_jobs WHERE slot = ? AND job_id = ?"},
    {Query::failed_delete, "DELETE FROM failed_jobs WHERE slot = ? AND job_id = ?"},
    {Query::jobs_ended,
     "SELECT job_id, ended_jobs.ended_at, flags FROM ended_jobs JOIN jobs USING (job_id) WHERE ended_jobs.queue_id = ? "
     "AND ended_jobs.state = ? AND ended_jobs.ended_at < ? ORDER BY ended_jobs.ended_at, job_id LIMIT ?"},
    {Query::dependency_add, "INSERT INTO dependencies (waits_for, job_id) VALUES (?, ?)"},
    {Query::dependants, "SELECT job_id FROM dependencies WHERE waits_for = ? ORDER BY job_id"},
    {Query::dependants_delete, "DELETE FROM dependencies WHERE waits_for = ?"},
    {Query::waits_for, "SELECT waits_for FROM dependencies WHERE job_id = ? ORDER BY waits_for LIMIT ?"},
    {Query::waits_for_delete, "DELETE FROM dependencies WHERE job_id = ?"},
    {Query::history_last, "SELECT coalesce(max(entry), 0) FROM attempts WHERE job_id = ?"},
    {Query::history_add,
     "INSERT INTO attempts (job_id, entry, number, ended_at, outcome, error, worker) VALUES (?, ?, ?, "
     "?, ?, ?, ?)"},
    {Query::history_trim, "DELETE FROM attempts WHERE job_id = ? AND entry <= ?"},
    {Query::history_delete, "DELETE FROM attempts WHERE job_id = ?"},
    {Query::history, "SELECT number, ended_at, outcome, error, worker FROM attempts WHERE job_id = ? ORDER BY entry"},
    {Query::leases, "SELECT batch, worker, entries, remote FROM leases ORDER BY batch"},
    {Query::lease_add, "INSERT INTO leases (batch, worker, entries, remote) VALUES (?, ?, ?, ?)"},
    {Query::lease_delete, "DELETE FROM leases WHERE batch = ?"},
    {Query::touched_add, "INSERT INTO touched (job_id) VALUES (?)"},
    {Query::touched, "SELECT DISTINCT job_id FROM touched ORDER BY job_id"},
    {Query::touched_last, "SELECT max(n) FROM touched"},
    {Query::touched_delete, "DELETE FROM touched"},
    {Query::ready_equal, "SELECT " ARGIOPE_WINDOW
                         " FROM jobs WHERE state = 0 AND queue_id = ?1 AND rank = ?2 AND job_id > ?3 ORDER BY job_id"},
    {Query::ready_below,
     "SELECT " ARGIOPE_WINDOW " FROM jobs WHERE state = 0 AND queue_id = ?1 AND rank < ?2 ORDER BY rank DESC, job_id"},
    {Query::ready_from,
     "SELECT rank, job_id, fence FROM jobs WHERE state = 0 AND queue_id = ?1 ORDER BY rank DESC, "
     "job_id"},
    {Query::aside_equal,
     "SELECT " ARGIOPE_WINDOW
     " FROM jobs WHERE state = 1 AND queue_id = ?1 AND key = ?4 AND rank = ?2 AND job_id > ?3 ORDER BY "
     "job_id"},
    {Query::aside_below, "SELECT " ARGIOPE_WINDOW
                         " FROM jobs WHERE state = 1 AND queue_id = ?1 AND key = ?4 AND rank < ?2 ORDER BY rank DESC, "
                         "job_id"},
    {Query::aside_from,
     "SELECT rank, job_id, fence FROM jobs WHERE state = 1 AND queue_id = ?1 AND key = ?2 ORDER BY "
     "rank DESC, job_id"},
    {Query::aside_keys,
     "SELECT key, job_id, fence FROM jobs WHERE state = 1 AND queue_id = ?1 AND key >= ?2 ORDER BY "
     "key, rank DESC, job_id"},
    {Query::aside_keys_after,
     "SELECT key, job_id, fence FROM jobs WHERE state = 1 AND queue_id = ?1 AND key > ?2 ORDER BY key, "
     "rank DESC, job_id"},
    {Query::delayed, "SELECT " ARGIOPE_WINDOW
                     " FROM jobs WHERE state = 2 AND queue_id = ?1 AND (due_at, job_id) > (?2, ?3) ORDER BY due_at, "
                     "job_id"},
    {Query::schedule_insert,
     "INSERT INTO schedules (schedule_id, name, trigger, definition) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO "
     "NOTHING"},
    {Query::schedule_update, "UPDATE schedules SET trigger = ?2, definition = ?3 WHERE schedule_id = ?1"},
    {Query::schedule_delete, "DELETE FROM schedules WHERE schedule_id = ?"},
    {Query::schedule_named, "SELECT schedule_id FROM schedules WHERE name = ?"},
    {Query::schedule,
     "SELECT schedule_id, " ARGIOPE_PLACE ", name, trigger, definition FROM schedules JOIN places USING "
     "(schedule_id) WHERE schedule_id = ?"},
    {Query::schedules,
     "SELECT schedule_id, " ARGIOPE_PLACE ", name, trigger, definition FROM schedules JOIN places USING "
     "(schedule_id) WHERE schedule_id > ? ORDER BY schedule_id LIMIT ?"},
    {Query::places,
     "SELECT schedule_id, " ARGIOPE_PLACE " FROM places WHERE schedule_id > ? ORDER BY schedule_id LIMIT ?"},
    {Query::place_insert,
     "INSERT INTO places (schedule_id, version, next, last, fired, missed, paused) VALUES (?, ?, ?, ?, ?, ?, "
     "?)"},
    {Query::place_update,
     "UPDATE places SET version = version + 1, next = ?2, last = ?3, fired = ?4, missed = ?5, paused = ?6 WHERE "
     "schedule_id = ?1"},
    {Query::place_fire,
     "UPDATE places SET version = version + 1, next = ?4, last = ?5, fired = ?6, missed = ?7, entries = ?8, paused "
     "= ?9, active = coalesce(active, 0) + ?10 WHERE schedule_id = ?1 AND version = ?2 AND coalesce(entries, 0) = ?3"},
    {Query::place_end_runs, "UPDATE places SET active = active - ?2 WHERE schedule_id = ?1"},
    {Query::place_delete, "DELETE FROM places WHERE schedule_id = ? RETURNING entries"},
    {Query::run_write,
     "INSERT OR REPLACE INTO schedule_runs (entry, number, planned, last_planned, count, fired_at, ended_at, "
     "outcome, job_id, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
    {Query::run_end,
     "UPDATE schedule_runs SET outcome = ?3, ended_at = ?4, error = ?5 WHERE entry = ?1 AND number = ?2"},
    {Query::run_delete, "DELETE FROM schedule_runs WHERE entry = ?"},
    {Query::run,
     "SELECT number, planned, last_planned, count, fired_at, ended_at, outcome, job_id, error FROM schedule_runs "
     "WHERE entry = ?"},
    {Query::output_write,
     "INSERT OR REPLACE INTO schedule_outputs (schedule_id, number, job_id, outcome, ended_at, error, output) "
     "VALUES (?, ?, ?, ?, ?, ?, ?)"},
    {Query::output,
     "SELECT number, job_id, ended_at, outcome, error, output FROM schedule_outputs WHERE schedule_id = ?"},
    {Query::output_delete, "DELETE FROM schedule_outputs WHERE schedule_id = ?"},
    {Query::older_run_add,
     "INSERT OR REPLACE INTO older_runs (schedule_id, number, planned, fired_at, job_id) VALUES (?, ?, ?, ?, ?)"},
    {Query::older_run_delete, "DELETE FROM older_runs WHERE schedule_id = ? AND number = ?"},
    {Query::older_run, "SELECT planned, fired_at, job_id FROM older_runs WHERE schedule_id = ? AND number = ?"},
    {Query::older_jobs, "SELECT job_id FROM older_runs WHERE schedule_id = ? ORDER BY number DESC LIMIT ? OFFSET ?"},
    {Query::older_runs_delete, "DELETE FROM older_runs WHERE schedule_id = ?"},
    {Query::touched_schedule_add, "INSERT INTO touched_schedules (schedule_id) VALUES (?)"},
    {Query::touched_schedules, "SELECT DISTINCT schedule_id FROM touched_schedules ORDER BY schedule_id"},
    {Query::touched_schedules_last, "SELECT max(n) FROM touched_schedules"},
    {Query::touched_schedules_delete, "DELETE FROM touched_schedules"},
    {Query::request_find, "SELECT digest, reply FROM requests WHERE request_key = ?"},
    {Query::request_add, "INSERT INTO requests (request_key, at, digest, reply) VALUES (?, ?, ?, ?)"},
    {Query::requests_oldest, "SELECT n, at FROM requests ORDER BY n LIMIT ?"},
    {Query::requests_last, "SELECT coalesce(max(n), 0) FROM requests"},
    {Query::requests_delete, "DELETE FROM requests WHERE n <= ?"},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kTexts); ++i) {
    if (kTexts[i].query != static_cast<Query>(i)) return false;
  }
  return std::size(kTexts) == kQueries;
}
static_assert(in_order());

}  // namespace

const char* const kRecordColumns = ARGIOPE_RECORD ", payload, flags";
const char* const kBriefColumns = ARGIOPE_RECORD_WITH("NULL") ", NULL, flags";

const char* text_of(Query query) noexcept { return kTexts[static_cast<std::size_t>(query)].sql; }

JobRecord read_record(const SqliteStatement& row, const std::vector<StoredQueue>& queues) {
  JobRecord record;
  record.id = static_cast<JobId>(row.number(0));
  record.queue = queues[static_cast<std::size_t>(row.number(1)) - 1].name;
  record.state = state_of(static_cast<RowState>(row.number(2)));
  record.name = row.text(4);
  record.key = row.text(5);
  record.unique = row.text(6);
  record.priority = narrow(row.number(7));
  record.due_at = job_rules::from_ms(row.number(8));
  record.function = row.text(9);
  record.attempts = static_cast<std::uint32_t>(row.number(10));
  record.max_attempts = static_cast<std::uint32_t>(row.number(11));
  record.expiries = static_cast<std::uint32_t>(row.number(12));
  record.pending = static_cast<std::uint32_t>(row.number(13));
  record.if_failed = row.number(14) == 0 ? DependencyPolicy::cancel : DependencyPolicy::run;
  record.created_at = job_rules::from_ms(row.number(15));
  record.ended_at = job_rules::from_ms(row.number(16));
  record.error = row.text(17);
  record.result = row.text(kResultColumn);
  record.schedule = static_cast<ScheduleId>(row.number(19));
  record.run = static_cast<std::uint64_t>(row.number(20));
  record.tally =
      job_tally::tally_of(static_cast<std::uint64_t>(row.number(21)), record.attempts, record.expiries, false);
  record.lease_time = std::chrono::milliseconds{row.number(22)};
  record.payload = row.text(kPayloadColumn);
  return record;
}

}  // namespace argiope
