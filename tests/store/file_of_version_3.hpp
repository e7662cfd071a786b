// A store of the third version, as `argiope` 0.1.0 of 2026-11-22 left it when it was killed, written down in SQL: a job
// that is done, one that is delayed and has names, one that runs, one that is ready, one that is buried, one that waits
// for the one that runs, and a schedule. It had been opened 8,388,605 times.
#pragma once

namespace argiope {

inline constexpr const char* kFileOfVersion3 = R"sql(
PRAGMA application_id = 1098016618; PRAGMA user_version = 3;
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
                                  -- 8: it is a run of a schedule
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
, schedule_id INTEGER, run INTEGER);
CREATE INDEX jobs_ready ON jobs (queue_id, rank DESC, job_id) WHERE state = 0;
CREATE INDEX jobs_set_aside ON jobs (queue_id, key, rank DESC, job_id) WHERE state = 1;
CREATE INDEX jobs_delayed ON jobs (queue_id, due_at, job_id) WHERE state = 2;
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
CREATE TABLE touched (n INTEGER PRIMARY KEY, job_id INTEGER NOT NULL);
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
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
INSERT INTO queues VALUES (1, 'mail', '{"rate":"unlimited","burst":1E0,"concurrency":"unlimited","paused":false,"key_rate":"unlimited","key_burst":1E0,"key_concurrency":"unlimited","key_delay_ms":0,"max_attempts":3,"retry_first_ms":1000,"retry_factor":4E0,"retry_longest_ms":3600000,"retry_jitter":2.5E-1,"retry_table_ms":[],"lease_time_ms":60000,"max_lease_expiries":3,"capacity":"unlimited","at_capacity":"refuse","max_payload_bytes":1048576,"keep_done_ms":86400000,"keep_cancelled_ms":604800000,"keep_buried_ms":"unlimited","ageing_ms":0,"weight":1}');
INSERT INTO queues VALUES (2, 'slow', '{"rate":"unlimited","burst":1E0,"concurrency":"unlimited","paused":false,"key_rate":"unlimited","key_burst":1E0,"key_concurrency":"unlimited","key_delay_ms":0,"max_attempts":3,"retry_first_ms":1000,"retry_factor":4E0,"retry_longest_ms":3600000,"retry_jitter":2.5E-1,"retry_table_ms":[],"lease_time_ms":60000,"max_lease_expiries":3,"capacity":"unlimited","at_capacity":"refuse","max_payload_bytes":1048576,"keep_done_ms":86400000,"keep_cancelled_ms":604800000,"keep_buried_ms":"unlimited","ageing_ms":0,"weight":1}');
INSERT INTO queues VALUES (3, 'fail', '{"rate":"unlimited","burst":1E0,"concurrency":"unlimited","paused":false,"key_rate":"unlimited","key_burst":1E0,"key_concurrency":"unlimited","key_delay_ms":0,"max_attempts":3,"retry_first_ms":1000,"retry_factor":4E0,"retry_longest_ms":3600000,"retry_jitter":2.5E-1,"retry_table_ms":[],"lease_time_ms":60000,"max_lease_expiries":3,"capacity":"unlimited","at_capacity":"refuse","max_payload_bytes":1048576,"keep_done_ms":86400000,"keep_cancelled_ms":604800000,"keep_buried_ms":"unlimited","ageing_ms":0,"weight":1}');
INSERT INTO queues VALUES (4, 'next', '{"rate":"unlimited","burst":1E0,"concurrency":"unlimited","paused":false,"key_rate":"unlimited","key_burst":1E0,"key_concurrency":"unlimited","key_delay_ms":0,"max_attempts":3,"retry_first_ms":1000,"retry_factor":4E0,"retry_longest_ms":3600000,"retry_jitter":2.5E-1,"retry_table_ms":[],"lease_time_ms":60000,"max_lease_expiries":3,"capacity":"unlimited","at_capacity":"refuse","max_payload_bytes":1048576,"keep_done_ms":86400000,"keep_cancelled_ms":604800000,"keep_buried_ms":"unlimited","ageing_ms":0,"weight":1}');
INSERT INTO counts VALUES (1, 1, 0, 0, 1, 0, 0, 1);
INSERT INTO counts VALUES (2, 0, 1, 1, 0, 0, 0, 0);
INSERT INTO counts VALUES (3, 0, 0, 0, 0, 0, 1, 0);
INSERT INTO counts VALUES (4, 1, 0, 0, 0, 0, 0, 0);
INSERT INTO jobs VALUES (1, 1, 4, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2199023255553, 1795316267049, 1795316267119, '', NULL, NULL, NULL, NULL, NULL, 'done-soon', NULL, NULL);
INSERT INTO jobs VALUES (2, 1, 2, 0, 0, 1795319867337, NULL, NULL, NULL, NULL, NULL, 4, NULL, 1795316267339, NULL, '', 'u', 'n', NULL, NULL, NULL, 'waits', NULL, NULL);
INSERT INTO jobs VALUES (3, 2, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 1, NULL, 1795316267419, NULL, '', NULL, NULL, NULL, NULL, NULL, 'runs', NULL, NULL);
INSERT INTO jobs VALUES (4, 2, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795316267495, NULL, '', NULL, NULL, NULL, NULL, NULL, 'later', NULL, NULL);
INSERT INTO jobs VALUES (5, 3, 6, 0, 0, NULL, 1, 1, NULL, NULL, NULL, 2, 7696581394433, 1795316267583, 1795316267694, '', NULL, NULL, NULL, 'exit status 1', NULL, 'x', NULL, NULL);
INSERT INTO jobs VALUES (6, 4, 3, 0, 0, NULL, NULL, NULL, NULL, 1, NULL, NULL, NULL, 1795316267954, NULL, '', NULL, NULL, NULL, NULL, NULL, 'y', NULL, NULL);
INSERT INTO dependencies VALUES (3, 6);
INSERT INTO attempts VALUES (5, 1, 1, 1795316267694, 'buried', 'exit status 1', 'vm:4621');
INSERT INTO leases VALUES (1, 'vm:4675', CAST(x'03000000000000000100000000fdff7f19283101a2010000' AS TEXT));
INSERT INTO meta VALUES ('epoch', 8388605);
INSERT INTO meta VALUES ('last_id', 6);
INSERT INTO meta VALUES ('last_schedule', 1);
INSERT INTO meta VALUES ('last_token', 9223368738319892481);
INSERT INTO schedules VALUES (1, 'nightly', '{"type":"cron","expression":"0 3 * * *","zone":"UTC"}', '{"job":{"function":"command","payload":"{\"args\":[\"true\"],\"input\":\"\",\"environment\":{\"ARGIOPE_SCHEDULE_NAME\":\"{name}\",\"ARGIOPE_SCHEDULE_PLANNED_AT\":\"{planned_at}\",\"ARGIOPE_SCHEDULE_RUN\":\"{run}\"}}","fill_in":true}}');
INSERT INTO places VALUES (1, 1, 1795316400000, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO unique_names VALUES (1, 'u', 2);
INSERT INTO names VALUES ('n', 2);
INSERT INTO ended_jobs VALUES (1, 4, 1795316267119, 1);
INSERT INTO ended_jobs VALUES (3, 6, 1795316267694, 5);
)sql";

}  // namespace argiope
