// The tables of a store in PostgreSQL, by versions. Texts of users are bytea, so that neither the character set of the
// database nor a NUL in them matters; times are milliseconds since 1970.
#include "store/postgresql/postgres_schema.hpp"

#include <fmt/format.h>

#include <iterator>

#include "store/postgresql/internal/postgres_place.hpp"

namespace argiope {
namespace {

// So that two that open a new store do not both make it.
constexpr std::int64_t kMigrationLock = 0x6172'6769'6f70'6501;

// The lease of a job is a row of its own, so that neither a lease nor its end writes the job, with its payload and its
// places in the indexes.
constexpr const char* kFirst = R"sql(
CREATE TABLE meta (name text PRIMARY KEY, value bigint NOT NULL);
CREATE TABLE partitions (
  partition      bigint PRIMARY KEY,
  node           text,              -- who owns it; NULL: nobody
  pid            bigint,            -- of the owner's connection
  epoch          bigint NOT NULL DEFAULT 0,  -- the owner's number, drawn at random
  since          timestamptz,
  until          timestamptz,       -- the owner's lease; renewed while it lives
  version        bigint NOT NULL DEFAULT 0,  -- one more with each transaction that writes
  last_id        bigint NOT NULL DEFAULT 0,
  last_chosen_id bigint NOT NULL DEFAULT 0,
  last_token     bigint NOT NULL DEFAULT 0,
  last_schedule  bigint NOT NULL DEFAULT 0,
  last_request   bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO partitions (partition) VALUES (0);
CREATE TABLE writers (               -- the last transaction of each, which says whether one was committed
  partition bigint, writer bigint, version bigint NOT NULL, at timestamptz NOT NULL,
  PRIMARY KEY (partition, writer)
) WITH (fillfactor = 50);
CREATE TABLE queues (
  partition bigint, queue_id bigint, name bytea NOT NULL, config bytea NOT NULL, erased bigint NOT NULL DEFAULT 0,
  delayed bigint NOT NULL DEFAULT 0, ready bigint NOT NULL DEFAULT 0, running bigint NOT NULL DEFAULT 0,
  done bigint NOT NULL DEFAULT 0, cancelled bigint NOT NULL DEFAULT 0, buried bigint NOT NULL DEFAULT 0,
  ended bigint NOT NULL DEFAULT 0,   -- done since the store was made
  PRIMARY KEY (partition, queue_id)
) WITH (fillfactor = 50);
CREATE TABLE jobs (
  partition    bigint,
  job_id       bigint,
  queue_id     bigint NOT NULL,
  state        bigint NOT NULL,      -- 0 ready, 1 ready and set aside, 2 delayed, 3 waiting for jobs, 4 done, 5 cancelled, 6 buried
  rank         bigint NOT NULL,      -- priority and age: higher first
  priority     bigint NOT NULL,
  due_at       bigint NOT NULL,
  attempts     bigint NOT NULL,
  max_attempts bigint NOT NULL,
  expiries     bigint NOT NULL,
  pending      bigint NOT NULL,      -- jobs it still waits for
  if_failed    bigint NOT NULL,      -- 1: runs although one of them failed
  flags        bigint NOT NULL,
  fence        bigint NOT NULL,
  created_at   bigint NOT NULL,
  ended_at     bigint NOT NULL,
  key          bytea NOT NULL,
  unique_name  bytea NOT NULL,
  name         bytea NOT NULL,
  function     bytea NOT NULL,
  error        bytea NOT NULL,
  result       bytea NOT NULL,
  payload      bytea NOT NULL,
  schedule_id  bigint NOT NULL,
  run          bigint NOT NULL,
  tally        bigint NOT NULL,
  lease_time   bigint NOT NULL,
  PRIMARY KEY (partition, job_id)
) WITH (fillfactor = 85);
CREATE INDEX jobs_ready ON jobs (partition, queue_id, rank DESC, job_id) WHERE state = 0;
CREATE INDEX jobs_set_aside ON jobs (partition, queue_id, key, rank DESC, job_id) WHERE state = 1;
CREATE INDEX jobs_delayed ON jobs (partition, queue_id, due_at, job_id) WHERE state = 2;
CREATE INDEX jobs_ended ON jobs (partition, queue_id, state, ended_at, job_id) WHERE state >= 4;
CREATE INDEX jobs_unique ON jobs (partition, queue_id, unique_name) WHERE unique_name <> '' AND state < 4;
CREATE UNIQUE INDEX jobs_name ON jobs (partition, name) WHERE name <> '';
CREATE TABLE leases (                -- the jobs that run
  partition bigint, job_id bigint, token bigint NOT NULL, until bigint NOT NULL, worker bytea NOT NULL, remote bigint NOT NULL,
  PRIMARY KEY (partition, job_id)
) WITH (fillfactor = 70);
CREATE TABLE dependencies (partition bigint, waits_for bigint, job_id bigint, PRIMARY KEY (partition, waits_for, job_id));
CREATE INDEX dependencies_of ON dependencies (partition, job_id, waits_for);
CREATE TABLE attempts (              -- those that failed, the last 20 of each job
  partition bigint, job_id bigint, n bigint GENERATED ALWAYS AS IDENTITY, number bigint NOT NULL, ended_at bigint NOT NULL,
  outcome bytea NOT NULL, error bytea NOT NULL, worker bytea NOT NULL,
  PRIMARY KEY (partition, job_id, n)
);
CREATE TABLE failed_jobs (           -- of jobs whose records are gone
  partition bigint, slot bigint, job_id bigint NOT NULL, how bytea NOT NULL, PRIMARY KEY (partition, slot)
) WITH (fillfactor = 70);
CREATE TABLE schedules (
  partition bigint, schedule_id bigint, name bytea NOT NULL, trigger bytea NOT NULL, definition bytea NOT NULL,
  PRIMARY KEY (partition, schedule_id)
);
CREATE UNIQUE INDEX schedules_name ON schedules (partition, name);
CREATE TABLE places (                -- where schedules stand; times by the calendar
  partition bigint, schedule_id bigint, version bigint NOT NULL, next bigint NOT NULL, last bigint NOT NULL, fired bigint NOT NULL,
  missed bigint NOT NULL, entries bigint NOT NULL, paused bigint NOT NULL, active bigint NOT NULL,
  PRIMARY KEY (partition, schedule_id)
) WITH (fillfactor = 50);
CREATE TABLE schedule_runs (         -- the last 20 entries of each history, and older runs that go on
  partition bigint, schedule_id bigint, number bigint, planned bigint NOT NULL, last_planned bigint NOT NULL, count bigint NOT NULL,
  fired_at bigint NOT NULL, ended_at bigint NOT NULL, outcome bigint NOT NULL, job_id bigint NOT NULL, error bytea NOT NULL,
  PRIMARY KEY (partition, schedule_id, number)
) WITH (fillfactor = 70);
CREATE TABLE schedule_outputs (
  partition bigint, schedule_id bigint, number bigint NOT NULL, job_id bigint NOT NULL, ended_at bigint NOT NULL,
  outcome bigint NOT NULL, error bytea NOT NULL, output bytea NOT NULL, PRIMARY KEY (partition, schedule_id)
);
CREATE TABLE requests (              -- that came under a key, in the order they came
  partition bigint, n bigint, request_key bytea NOT NULL, at bigint NOT NULL, digest bytea NOT NULL, reply bytea NOT NULL,
  PRIMARY KEY (partition, n)
);
CREATE UNIQUE INDEX requests_key ON requests (partition, request_key);
CREATE TABLE remembered (partition bigint, name bytea, value bigint NOT NULL, PRIMARY KEY (partition, name))
  WITH (fillfactor = 50);
CREATE TABLE touched (               -- changed by others than the owner
  partition bigint, n bigint GENERATED ALWAYS AS IDENTITY, is_schedule bigint NOT NULL, id bigint NOT NULL,
  PRIMARY KEY (partition, n)
);
CREATE TABLE inbox (                 -- put by SQL; the owner makes jobs of them
  partition bigint NOT NULL DEFAULT 0, n bigint GENERATED ALWAYS AS IDENTITY, at bigint NOT NULL, queue bytea NOT NULL,
  payload bytea NOT NULL, name bytea NOT NULL, key bytea NOT NULL, unique_name bytea NOT NULL, function bytea NOT NULL,
  priority bigint NOT NULL, due_at bigint NOT NULL, max_attempts bigint NOT NULL,
  PRIMARY KEY (partition, n)
);
-- Begins the writes of a transaction that was made from version `known`; an owner is one only in its own epoch, and
-- each is known by the connection that it has set up.
CREATE FUNCTION argiope_begin(known bigint, made bigint, my_epoch bigint, writer_id bigint, ids bigint[],
    process bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF process <> pg_backend_pid() THEN RAISE EXCEPTION 'another connection' USING ERRCODE = 'AR002'; END IF;
  UPDATE partitions SET version = made, last_id = ids[1], last_chosen_id = ids[2], last_token = ids[3],
      last_schedule = ids[4], last_request = ids[5],
      until = CASE WHEN my_epoch = 0 THEN until ELSE clock_timestamp() + interval '10 s' END
    WHERE partition = 0 AND version = known AND (my_epoch = 0 OR epoch = my_epoch);
  IF NOT FOUND THEN RAISE EXCEPTION 'others have written' USING ERRCODE = 'AR001'; END IF;
  INSERT INTO writers VALUES (0, writer_id, made, clock_timestamp())
    ON CONFLICT (partition, writer) DO UPDATE SET version = excluded.version, at = excluded.at;
  RETURN made;
END $$;
-- Text as people read it, whatever bytes there are.
CREATE FUNCTION argiope_text(bytes bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS $$
BEGIN
  RETURN convert_from(bytes, 'UTF8');
EXCEPTION WHEN OTHERS THEN
  RETURN encode(bytes, 'escape');
END $$;
CREATE FUNCTION argiope_time(ms bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS
  'SELECT CASE WHEN ms <> 0 THEN to_timestamp(ms / 1000.0) END';
-- Puts in the transaction of who calls it, who needs no right to the tables. Gives how many there are.
CREATE FUNCTION argiope_put_many(queue text, payloads bytea[], name text DEFAULT '', key text DEFAULT '',
    unique_name text DEFAULT '', function text DEFAULT '', priority integer DEFAULT 0, due_at timestamptz DEFAULT NULL,
    delay interval DEFAULT NULL, max_attempts integer DEFAULT 0) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  names bytea[] := ARRAY[convert_to(queue, 'UTF8'), convert_to(name, 'UTF8'), convert_to(key, 'UTF8'),
      convert_to(unique_name, 'UTF8'), convert_to(function, 'UTF8')];
  due timestamptz := CASE WHEN delay IS NOT NULL THEN clock_timestamp() + delay ELSE due_at END;
BEGIN
  IF queue = '' OR queue IS NULL THEN RAISE EXCEPTION 'a queue needs a name' USING ERRCODE = '22023'; END IF;
  IF array_position(names, NULL) IS NOT NULL OR priority IS NULL OR max_attempts IS NULL OR payloads IS NULL
      OR array_position(payloads, NULL) IS NOT NULL THEN
    RAISE EXCEPTION 'a job has no NULL but for due_at and delay' USING ERRCODE = '22004';
  END IF;
  IF (SELECT max(octet_length(n)) FROM unnest(names) AS n) > 512 THEN
    RAISE EXCEPTION 'names have at most 512 bytes' USING ERRCODE = '22023';
  END IF;
  IF (SELECT max(octet_length(p)) FROM unnest(payloads) AS p) > 67108864 THEN
    RAISE EXCEPTION 'a payload has at most 64 MiB' USING ERRCODE = '22023';
  END IF;
  IF max_attempts < 0 THEN RAISE EXCEPTION 'max_attempts: 0 or more' USING ERRCODE = '22023'; END IF;
  IF cardinality(payloads) > 1 AND (name <> '' OR unique_name <> '') THEN
    RAISE EXCEPTION 'several jobs cannot have one name' USING ERRCODE = '22023';
  END IF;
  INSERT INTO inbox (at, queue, payload, name, key, unique_name, function, priority, due_at, max_attempts)
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, names[1], p.payload, names[2], names[3], names[4], names[5],
        argiope_put_many.priority,
        CASE WHEN due IS NULL THEN 0 ELSE greatest(least(extract(epoch FROM due) * 1000, 9223372036854), 1)::bigint END,
        argiope_put_many.max_attempts
      FROM unnest(payloads) WITH ORDINALITY AS p(payload, place) ORDER BY place;
  PERFORM pg_notify('argiope_' || (SELECT oid FROM pg_namespace WHERE nspname = current_schema()), '');
  RETURN cardinality(payloads);
END $$;
CREATE FUNCTION argiope_put_many(queue text, payloads text[], name text DEFAULT '', key text DEFAULT '',
    unique_name text DEFAULT '', function text DEFAULT '', priority integer DEFAULT 0, due_at timestamptz DEFAULT NULL,
    delay interval DEFAULT NULL, max_attempts integer DEFAULT 0) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT argiope_put_many($1, ARRAY(SELECT convert_to(p, 'UTF8') FROM unnest($2) WITH ORDINALITY AS t(p, place) ORDER BY place),
      $3, $4, $5, $6, $7, $8, $9, $10)
$$;
CREATE FUNCTION argiope_put(queue text, payload text, name text DEFAULT '', key text DEFAULT '',
    unique_name text DEFAULT '', function text DEFAULT '', priority integer DEFAULT 0, due_at timestamptz DEFAULT NULL,
    delay interval DEFAULT NULL, max_attempts integer DEFAULT 0) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS
  $$ SELECT argiope_put_many($1, ARRAY[convert_to($2, 'UTF8')], $3, $4, $5, $6, $7, $8, $9, $10) $$;
CREATE FUNCTION argiope_put(queue text, payload bytea, name text DEFAULT '', key text DEFAULT '',
    unique_name text DEFAULT '', function text DEFAULT '', priority integer DEFAULT 0, due_at timestamptz DEFAULT NULL,
    delay interval DEFAULT NULL, max_attempts integer DEFAULT 0) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS
  $$ SELECT argiope_put_many($1, ARRAY[$2], $3, $4, $5, $6, $7, $8, $9, $10) $$;
CREATE VIEW job_list AS
  SELECT j.job_id, argiope_text(q.name) AS queue,
         CASE WHEN l.token IS NOT NULL THEN 'running' WHEN j.state < 2 THEN 'ready' WHEN j.state < 4 THEN 'delayed'
              WHEN j.state = 4 THEN 'done' WHEN j.state = 5 THEN 'cancelled' ELSE 'buried' END AS state,
         argiope_text(j.key) AS key, j.priority, argiope_text(j.name) AS name, argiope_text(j.unique_name) AS unique_name,
         argiope_text(j.function) AS function, j.attempts, argiope_time(j.due_at) AS due_at,
         argiope_time(j.created_at) AS created_at, argiope_time(j.ended_at) AS ended_at, j.pending AS waits_for,
         argiope_text(j.error) AS error, argiope_text(l.worker) AS worker, j.result, j.payload
  FROM jobs j JOIN queues q USING (partition, queue_id) LEFT JOIN leases l USING (partition, job_id);
CREATE VIEW queue_list AS
  SELECT argiope_text(name) AS queue, ready, delayed, running, done, cancelled, buried, ended, argiope_text(config) AS config
  FROM queues WHERE erased = 0;
CREATE VIEW schedule_list AS
  SELECT s.schedule_id, argiope_text(s.name) AS name, argiope_text(s.trigger) AS trigger, p.paused <> 0 AS paused,
         CASE WHEN p.next < 9223372036854 THEN argiope_time(p.next) END AS next, argiope_time(p.last) AS last, p.fired, p.missed,
         p.active
  FROM schedules s JOIN places p USING (partition, schedule_id);
)sql";

constexpr const char* kPostgresMigrations[] = {kFirst};

}  // namespace

std::int64_t newest_postgres_version() { return std::ssize(kPostgresMigrations); }

// Functions take over the search path. It says pg_temp, for where it does not that is looked into first, and a caller's
// temporary table would stand before the store's own.
std::string postgres_migration(const std::string& schema, bool has_schema, std::int64_t version) {
  std::string statements = fmt::format(
      "BEGIN; SELECT pg_advisory_xact_lock({}); {}SET LOCAL search_path TO {}, pg_temp;", kMigrationLock,
      has_schema ? std::string() : fmt::format("CREATE SCHEMA IF NOT EXISTS {};", quoted_identifier(schema)),
      quoted_identifier(schema));
  for (std::int64_t from = version; from < newest_postgres_version(); ++from) statements += kPostgresMigrations[from];
  statements +=
      fmt::format("INSERT INTO meta VALUES ('version', {0}) ON CONFLICT (name) DO UPDATE SET value = {0}; COMMIT",
                  newest_postgres_version());
  return statements;
}

}  // namespace argiope
