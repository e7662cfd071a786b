// Opening a store by its URL: which drivers there are.
#include <fmt/format.h>

#include <string_view>

#include "argiope/store/store.hpp"
#include "base/internal/printable.hpp"
#include "store/jobs/internal/store_driver.hpp"
#include "store/redis/redis_driver.hpp"
#include "store/sqlite/internal/sqlite_file.hpp"

namespace argiope {
namespace {

constexpr std::string_view kSqlite = "sqlite:";

bool is_on_redis(std::string_view where) { return where.starts_with("redis://") || where.starts_with("rediss://"); }

}  // namespace

Result<std::unique_ptr<Store>> open_store(const std::string& where, const StoreOptions& options) {
  if (where == "memory:") return make_memory_store();
  if (where.starts_with(kSqlite) && where.size() > kSqlite.size()) {
    return open_sqlite_store(where.substr(kSqlite.size()), options);
  }
  if (is_on_redis(where)) {
    auto driver = RedisDriver::open(where, options);
    if (!driver) return std::unexpected(std::move(driver.error()));
    return make_store(std::move(*driver));
  }
  return fail(Errc::invalid_input,
              fmt::format("store {}: give \"sqlite:FILE\", \"redis://HOST/DB\" or \"memory:\" (nothing is kept)",
                          in_quotes(where)));
}

bool has_owner(const std::string& where) {
  if (is_on_redis(where)) return redis_has_owner(where);
  return where.starts_with(kSqlite) && is_locked(where.substr(kSqlite.size()));
}

}  // namespace argiope
