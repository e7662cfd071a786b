// What a transaction has changed of the rows of jobs, as statements: one for all rows of a kind.
#include <fmt/format.h>

#include <array>
#include <string>

#include "jobs/internal/job_rules.hpp"
#include "store/postgresql/postgres_jobs.hpp"

namespace argiope {

using namespace job_rules;

namespace {

// A server takes 1 GB at a time, and no array is larger; and libpq moves all that is still to be sent each time that it
// has sent some. What is larger by itself goes alone.
constexpr std::size_t kMostWrittenBytes = std::size_t{8} << 20;

}  // namespace

// Rows go before others take their names.
void PostgresJobs::write() {
  write_gone();
  write_changed();
  write_new();
  write_texts();
  write_links();
  write_failures();
  jobs_.each([](JobId, Job& job) {
    job.was_there = job.is_there;
    job.is_new = job.has_changed = job.has_work = job.had_attempts = false;
    job.result.reset();
    job.attempts.clear();
    job.payload.clear();
  });
  links_.each([](const Pair&, Link& link) { link.was_there = link.is_there; });
  failures_.each([](std::uint64_t, Failure& failure) { failure.has_changed = false; });
}

void PostgresJobs::write_gone() {
  PostgresColumn ids, with_attempts;
  for (const auto& [id, job] : jobs_.all()) {
    if (job.was_there && (!job.is_there || job.is_new)) ids.add(id);
    if (job.had_attempts) with_attempts.add(id);
  }
  if (!with_attempts.empty())
    work_.write("DELETE FROM attempts WHERE partition = 0 AND job_id = ANY($1::bigint[])",
                PostgresValues(with_attempts));
  if (!ids.empty())
    work_.write("DELETE FROM jobs WHERE partition = 0 AND job_id = ANY($1::bigint[])", PostgresValues(ids));
}

void PostgresJobs::write_changed() {
  PostgresColumn ids, states, ranks, priorities, dues, attempts, expiries, pendings, flags, fences, ends, keys, uniques,
      schedules, runs, tallies, errors;
  for (const auto& [id, job] : jobs_.all()) {
    if (!job.is_there || !job.has_changed || job.is_new) continue;
    const JobRow& row = job.row;
    ids.add(id);
    states.add(row.state);
    ranks.add(row.rank);
    priorities.add(row.priority);
    dues.add(row.due_ms);
    attempts.add(row.attempts);
    expiries.add(row.expiries);
    pendings.add(row.pending);
    flags.add(row.flags);
    fences.add(row.fence);
    ends.add(row.ended_ms);
    keys.add(row.key);
    uniques.add(row.unique);
    schedules.add(row.schedule);
    runs.add(row.run);
    tallies.add(row.tally);
    errors.add(job.error);
  }
  if (ids.empty()) return;
  work_.write(
      "UPDATE jobs j SET state = n.a, rank = n.b, priority = n.c, due_at = n.d, attempts = n.e, expiries = n.f, "
      "pending = n.g, "
      "flags = n.h, fence = n.i, ended_at = n.j, key = n.k, unique_name = n.l, schedule_id = n.m, run = n.n, tally = "
      "n.o, "
      "error = n.p FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], "
      "$7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bytea[], $13::bytea[], "
      "$14::bigint[], "
      "$15::bigint[], $16::bigint[], $17::bytea[]) AS n(id, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) WHERE "
      "j.partition "
      "= 0 AND j.job_id = n.id",
      PostgresValues(ids, states, ranks, priorities, dues, attempts, expiries, pendings, flags, fences, ends, keys,
                     uniques, schedules, runs, tallies, errors));
}

void PostgresJobs::write_new() {
  using Columns = std::array<PostgresColumn, 26>;
  static const std::string kInsert = [] {
    std::string arrays;
    for (int i = 1; i <= 26; ++i)
      arrays += fmt::format("{}${}::{}", i == 1 ? "" : ", ", i, i >= 16 && i <= 22 ? "bytea[]" : "bigint[]");
    return "INSERT INTO jobs SELECT 0, n.* FROM unnest(" + arrays + ") AS n";
  }();
  Columns columns;
  std::size_t bytes = 0;
  const auto write_all = [&] {
    if (!columns[0].empty()) work_.write(kInsert, PostgresValues(columns));
    columns = {};
    bytes = 0;
  };
  for (const auto& [id, job] : jobs_.all()) {
    if (!job.is_there || !job.is_new) continue;
    const std::size_t more = job.payload.size() + (job.result ? job.result->size() : 0);
    if (bytes + more > kMostWrittenBytes) write_all();
    bytes += more;
    std::size_t at = 0;
    const auto add = [&](const auto&... values) { (columns[at++].add(values), ...); };
    const JobRow& row = job.row;
    add(id, row.queue, row.state, row.rank, row.priority, row.due_ms, row.attempts, job.max_attempts, row.expiries,
        row.pending, row.cancelled_with_others ? 0 : 1, row.flags, row.fence, job.created_ms, row.ended_ms);
    add(std::string_view(row.key), std::string_view(row.unique), std::string_view(job.name),
        std::string_view(job.function), std::string_view(job.error),
        std::string_view(job.result ? *job.result : std::string_view()), std::string_view(job.payload));
    add(row.schedule, row.run, row.tally, job.lease_ms);
  }
  write_all();
}

void PostgresJobs::write_texts() {
  PostgresColumn ids, results, work_ids, functions, payloads, times;
  const auto write_results = [&] {
    if (ids.empty()) return;
    work_.write(
        "UPDATE jobs j SET result = n.r FROM unnest($1::bigint[], $2::bytea[]) AS n(id, r) WHERE j.partition = 0 AND "
        "j.job_id = n.id",
        PostgresValues(ids, results));
    ids = results = {};
  };
  const auto write_work = [&] {
    if (work_ids.empty()) return;
    work_.write(
        "UPDATE jobs j SET function = n.f, payload = n.p, lease_time = n.t FROM unnest($1::bigint[], $2::bytea[], "
        "$3::bytea[], $4::bigint[]) AS n(id, f, p, t) WHERE j.partition = 0 AND j.job_id = n.id",
        PostgresValues(work_ids, functions, payloads, times));
    work_ids = functions = payloads = times = {};
  };
  PostgresColumn jobs, numbers, ends, outcomes, errors, workers, with_attempts;
  for (const auto& [id, job] : jobs_.all()) {
    if (!job.is_there) continue;
    if (job.result && !job.is_new) {
      if (results.bytes() + job.result->size() > kMostWrittenBytes) write_results();
      ids.add(id);
      results.add(*job.result);
    }
    if (job.has_work && !job.is_new) {
      if (payloads.bytes() + job.payload.size() > kMostWrittenBytes) write_work();
      work_ids.add(id);
      functions.add(job.function);
      payloads.add(job.payload);
      times.add(job.lease_ms);
    }
    for (const Attempt& attempt : job.attempts) {
      jobs.add(id);
      numbers.add(attempt.number);
      ends.add(to_ms(attempt.ended_at));
      outcomes.add(attempt.outcome);
      errors.add(attempt.error);
      workers.add(attempt.worker);
    }
    if (!job.attempts.empty()) with_attempts.add(id);
  }
  write_results();
  write_work();
  if (jobs.empty()) return;
  work_.write(
      "INSERT INTO attempts (partition, job_id, number, ended_at, outcome, error, worker) SELECT 0, a, b, c, d, e, f "
      "FROM "
      "unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bytea[]) WITH ORDINALITY AS n(a, "
      "b, c, "
      "d, e, f, o) ORDER BY o",
      PostgresValues(jobs, numbers, ends, outcomes, errors, workers));
  work_.write(
      fmt::format(
          "DELETE FROM attempts a USING (SELECT job_id, n, row_number() OVER (PARTITION BY job_id ORDER BY n DESC) AS "
          "place FROM attempts WHERE partition = 0 AND job_id = ANY($1::bigint[])) AS o WHERE o.place > {} AND "
          "a.partition = 0 AND a.job_id = o.job_id AND a.n = o.n",
          kMostAttemptsKept),
      PostgresValues(with_attempts));
}

void PostgresJobs::write_links() {
  PostgresColumn gone_from, gone_to, from, to;
  for (const auto& [link, state] : links_.all()) {
    if (state.is_there == state.was_there) continue;
    (state.is_there ? from : gone_from).add(link.first);
    (state.is_there ? to : gone_to).add(link.second);
  }
  if (!gone_from.empty()) {
    work_.write(
        "DELETE FROM dependencies WHERE partition = 0 AND (waits_for, job_id) IN (SELECT a, b FROM "
        "unnest($1::bigint[], "
        "$2::bigint[]) AS n(a, b))",
        PostgresValues(gone_from, gone_to));
  }
  if (!from.empty()) {
    work_.write("INSERT INTO dependencies SELECT 0, a, b FROM unnest($1::bigint[], $2::bigint[]) AS n(a, b)",
                PostgresValues(from, to));
  }
}

void PostgresJobs::write_failures() {
  PostgresColumn gone, slots, ids, hows;
  for (const auto& [slot, failure] : failures_.all()) {
    if (!failure.has_changed) continue;
    if (failure.how.empty()) {
      gone.add(slot);
      continue;
    }
    slots.add(slot);
    ids.add(failure.id);
    hows.add(failure.how);
  }
  if (!gone.empty())
    work_.write("DELETE FROM failed_jobs WHERE partition = 0 AND slot = ANY($1::bigint[])", PostgresValues(gone));
  if (!slots.empty()) {
    work_.write(
        "INSERT INTO failed_jobs SELECT 0, a, b, c FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS n(a, b, c) "
        "ON "
        "CONFLICT (partition, slot) DO UPDATE SET job_id = excluded.job_id, how = excluded.how",
        PostgresValues(slots, ids, hows));
  }
}

}  // namespace argiope
