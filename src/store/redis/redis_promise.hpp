// What a server promises of the writes that it has acknowledged, as its version and its settings say.
#pragma once

#include <string>

#include "argiope/base/error.hpp"
#include "store/redis/redis_connection.hpp"

namespace argiope {

struct RedisPromise {
  std::string version;
  std::string durability;  // for people: "appendonly yes, appendfsync always: each write is on the disk …"
  std::string warning;     // what may lose jobs besides; empty: nothing
};

// Errors: unsupported for a version below 7.0; refused for a server that keeps nothing, or deletes what it likes when
// its memory is full, unless the address says that this is good enough. Throws DatabaseFailed.
Result<RedisPromise> promise_of(RedisConnection& connection);

}  // namespace argiope
