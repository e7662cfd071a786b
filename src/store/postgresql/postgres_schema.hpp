#pragma once

#include <cstdint>
#include <string>

namespace argiope {

std::int64_t newest_postgres_version();
// Statements that make of version `version` the newest, 0 being none; in one transaction, under a lock. `has_schema`:
// it is not made, which takes a right to the database even where it is there.
std::string postgres_migration(const std::string& schema, bool has_schema, std::int64_t version);

}  // namespace argiope
