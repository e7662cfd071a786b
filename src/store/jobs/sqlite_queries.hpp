// Every statement the store runs on its one connection, prepared when first needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "argiope/jobs/detail/requests.hpp"
#include "store/sqlite/internal/sqlite.hpp"

namespace argiope {

enum class Query {
  savepoint,
  savepoint_release,
  savepoint_undo,
  begin_read,
  begin_write,
  commit,
  data_version,
  meta_get,
  meta_set,
  queues,
  queue_add,
  queue_configure,
  queue_erase,
  counts_add,
  counts_change,
  counts,
  job_insert,
  job_insert_4,
  job_insert_16,
  job_core,
  job_brief,
  job_update,
  job_set_flags,
  job_set_error,
  job_set_failure,
  job_set_result,
  job_set_end,
  job_set_output,
  job_set_work,
  job_delete,
  jobs_delete,
  jobs_keep_done,
  job_record,
  job_records,
  job_after,
  job_before,
  job_newest,
  job_error,
  job_names,
  name_add,
  name_find,
  name_delete,
  unique_add,
  unique_find,
  unique_delete,
  ended_add,
  ended_add_done,
  ended_delete,
  failed_add,
  failed_find,
  failed_delete,
  jobs_ended,
  dependency_add,
  dependants,
  dependants_delete,
  waits_for,
  waits_for_delete,
  history_last,
  history_add,
  history_trim,
  history_delete,
  history,
  leases,
  lease_add,
  lease_delete,
  touched_add,
  touched,
  touched_last,
  touched_delete,
  ready_equal,
  ready_below,
  ready_from,
  aside_equal,
  aside_below,
  aside_from,
  aside_keys,
  aside_keys_after,
  delayed,
  schedule_insert,
  schedule_update,
  schedule_delete,
  schedule_named,
  schedule,
  schedules,
  places,
  place_insert,
  place_update,
  place_fire,
  place_end_runs,
  place_delete,
  run_write,
  run_end,
  run_delete,
  run,
  output_write,
  output,
  output_delete,
  older_run_add,
  older_run_delete,
  older_run,
  older_jobs,
  older_runs_delete,
  touched_schedule_add,
  touched_schedules,
  touched_schedules_last,
  touched_schedules_delete,
  request_find,
  request_add,
  requests_oldest,
  requests_last,
  requests_delete,
};
inline constexpr std::size_t kQueries = static_cast<std::size_t>(Query::requests_delete) + 1;

const char* text_of(Query query) noexcept;
// So many rows job_insert_16 writes at most, each bound as job_insert's one.
inline constexpr std::size_t kRowsInserted = 16;
// The columns that Query::job_record and job_records select; and the same with NULL for result and payload.
extern const char* const kRecordColumns;
extern const char* const kBriefColumns;
inline constexpr int kAttemptsColumn = 10;
inline constexpr int kResultColumn = 18;
inline constexpr int kTallyColumn = 21;
inline constexpr int kLeaseTimeColumn = 22;
inline constexpr int kPayloadColumn = 23;
inline constexpr int kFlagsColumn = 24;
// Of such a row, but for what a lease adds. `queues`: by id.
JobRecord read_record(const SqliteStatement& row, const std::vector<StoredQueue>& queues);
// A number that was written as one of 32 bits.
constexpr std::int32_t narrow(std::int64_t number) noexcept { return static_cast<std::int32_t>(number); }

}  // namespace argiope
