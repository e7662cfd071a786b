// PostgresDriver: the store of jobs and schedules in a database of PostgreSQL.
#pragma once

#include <memory>
#include <string>

#include "store/jobs/internal/store_driver.hpp"

namespace argiope {

// `where`: as parse_postgres_place() has it. Errors: invalid_input; network where there is no server, or it refuses;
// busy while another owns the store; refused, newer_version, older_version, not_found as of files.
Result<std::unique_ptr<DriverInThread>> open_postgres_driver(const std::string& where, const StoreOptions& options);
// Whether a process owns the store; false where that cannot be told.
bool has_postgres_owner(const std::string& where);

}  // namespace argiope
