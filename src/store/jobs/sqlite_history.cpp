#include "store/jobs/sqlite_history.hpp"

#include "jobs/internal/job_rules.hpp"

namespace argiope {

using namespace job_rules;

void SqliteHistory::write_attempt(JobId id, const Attempt& attempt, const std::string* result) {
  std::int64_t last = 0;
  {
    SqliteUse found = sql_.use(Query::history_last);
    if (found.with(id).next()) last = found.number(0);
  }
  sql_.use(Query::history_add)
      .with(id, last + 1, attempt.number, to_ms(attempt.ended_at), attempt.outcome)
      .with_or_null(attempt.error, attempt.worker)
      .run();
  if (last >= static_cast<std::int64_t>(kMostAttemptsKept)) {
    sql_.use(Query::history_trim).with(id, last + 1 - static_cast<std::int64_t>(kMostAttemptsKept)).run();
  }
  if (result == nullptr) return write_error(id, attempt.error);
  sql_.use(Query::job_set_failure).with(id).with_or_null(attempt.error, *result).run();
}

void SqliteHistory::write_end(JobId id, const std::string& error, const std::string* result) {
  if (result == nullptr) return sql_.use(Query::job_set_end).with(id).with_or_null(error).run();
  sql_.use(Query::job_set_result).with(id).with_or_null(error, *result).run();
}

void SqliteHistory::write_result(JobId id, const std::string& result) {
  sql_.use(Query::job_set_output).with(id).with_or_null(result).run();
  leases_.note_result(id);
}

void SqliteHistory::write_error(JobId id, const std::string& error) {
  sql_.use(Query::job_set_error).with(id).with_or_null(error).run();
}

std::string SqliteHistory::error_of(JobId id) {
  SqliteUse found = sql_.use(Query::job_error);
  return found.with(id).next() ? std::string(found.text(0)) : std::string{};
}

std::vector<Attempt> SqliteHistory::attempts(JobId id) {
  std::vector<Attempt> attempts;
  SqliteUse rows = sql_.use(Query::history);
  rows.with(id);
  while (rows.next()) {
    attempts.push_back({static_cast<std::uint32_t>(rows.number(0)), from_ms(rows.number(1)), std::string(rows.text(2)),
                        std::string(rows.text(3)), std::string(rows.text(4))});
  }
  return attempts;
}

std::string_view SqliteHistory::failure_of(JobId id) {
  SqliteUse found = sql_.use(Query::failed_find);
  if (!found.with(id % kFailuresRemembered, id).next()) return {};
  return how_failed(found.text(0));
}

void SqliteHistory::set_failure(JobId id, std::string_view how) {
  if (how.empty()) {
    sql_.use(Query::failed_delete).with(id % kFailuresRemembered, id).run();
  } else {
    sql_.use(Query::failed_add).with(id % kFailuresRemembered, id, how).run();
  }
}

}  // namespace argiope
