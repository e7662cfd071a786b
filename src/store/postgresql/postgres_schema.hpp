#pragma once

#include <cstdint>
#include <string>

namespace argiope {

std::int64_t newest_postgres_version();
// Statements that make of version `version` the newest, 0 being none; in one transaction, under a lock.
std::string postgres_migration(const std::string& schema, std::int64_t version);

}  // namespace argiope
