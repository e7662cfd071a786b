#pragma once

#include <string>

#include "store/postgresql/postgres_leases.hpp"
#include "store/postgresql/postgres_queues.hpp"
#include "store/postgresql/postgres_session.hpp"

namespace argiope {

// What is selected of a job `j` for a record, but for its result and payload, which follow as two more columns; then
// those of its lease `l`.
inline constexpr const char* kPostgresRecord =
    "j.job_id, j.queue_id, j.state, j.name, j.key, j.unique_name, j.priority, j.due_at, j.function, j.attempts, "
    "j.max_attempts, j.expiries, j.pending, j.if_failed, j.created_at, j.ended_at, j.error, j.schedule_id, j.run, "
    "j.tally, "
    "j.lease_time, j.flags";
inline constexpr int kPostgresQueueColumn = 1;
inline constexpr int kPostgresLeaseTimeColumn = 20;
inline constexpr int kPostgresFlagsColumn = 21;
inline constexpr int kPostgresResultColumn = 22;
inline constexpr int kPostgresPayloadColumn = 23;
inline constexpr int kPostgresTokenColumn = 24;  // token, until, worker
JobRecord read_postgres_record(const PostgresRows& rows, int row, const std::vector<StoredQueue>& queues,
                               bool with_lease);

}  // namespace argiope
