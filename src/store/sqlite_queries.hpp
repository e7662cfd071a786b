// Every statement the job store runs on its one connection, prepared when first needed.
#pragma once

#include <cstddef>

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
  counts_add,
  counts_change,
  counts,
  job_insert,
  job_core,
  job_brief,
  job_update,
  job_set_flags,
  job_set_error,
  job_set_result,
  job_set_work,
  job_delete,
  job_record,
  job_names,
  name_add,
  name_find,
  name_delete,
  unique_add,
  unique_find,
  unique_delete,
  ended_add,
  ended_delete,
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
};
inline constexpr std::size_t kQueries = static_cast<std::size_t>(Query::delayed) + 1;

const char* text_of(Query query) noexcept;
// What Query::job_record selects, but for the payload and the flags, which are last.
extern const char* const kRecordColumns;
inline constexpr int kFlagsColumn = 20;

}  // namespace argiope
