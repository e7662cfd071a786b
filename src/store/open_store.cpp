// Which driver a store has, by the URL that names it.
#include <fmt/format.h>

#include <string_view>

#include "argiope/store/store.hpp"
#include "base/internal/printable.hpp"
#include "store/internal/store_url.hpp"
#include "store/jobs/internal/store_driver.hpp"
#include "store/postgresql/internal/postgres_driver.hpp"
#include "store/postgresql/internal/postgres_place.hpp"
#include "store/redis/redis_driver.hpp"
#include "store/sqlite/internal/sqlite_file.hpp"

namespace argiope {
namespace {

constexpr std::string_view kSqliteScheme = "sqlite:";

}  // namespace

std::optional<std::string> why_no_store(std::string_view where) {
  const std::string_view file = where.starts_with(kSqliteScheme) ? where.substr(kSqliteScheme.size()) : "";
  if (where == "memory:" || (!file.empty() && file != ":memory:")) return std::nullopt;
  if (is_redis(where)) {
    const auto address = parse_redis_url(where);
    return address ? std::nullopt : std::optional(address.error().message);
  }
  if (!is_postgresql(where)) {
    return R"("sqlite:FILE", "postgresql://USER@HOST/DATABASE", "redis://HOST/DB" or "memory:" (nothing is kept))";
  }
  const auto place = parse_postgres_place(where);
  return place ? std::nullopt : std::optional(place.error().message);
}

std::string shown_store(const std::string& where) {
  return is_postgresql(where) ? without_password(where) : is_redis(where) ? redis_url_without_password(where) : where;
}

Result<std::unique_ptr<Store>> open_store(const std::string& where, const StoreOptions& options) {
  if (where == "memory:") return make_memory_store();
  if (is_postgresql(where)) {
    auto driver = open_postgres_driver(where, options);
    if (!driver) return std::unexpected(std::move(driver.error()));
    return make_store(std::move(*driver));
  }
  if (is_redis(where)) {
    auto driver = RedisDriver::open(where, options);
    if (!driver) return std::unexpected(std::move(driver.error()));
    return make_store(std::move(*driver));
  }
  if (const auto why = why_no_store(where)) {
    return fail(Errc::invalid_input, fmt::format("store {}: give {}", in_quotes(shown_store(where)), *why));
  }
  return open_sqlite_store(where.substr(kSqliteScheme.size()), options);
}

bool has_owner(const std::string& where) {
  if (is_postgresql(where)) return has_postgres_owner(where);
  if (is_redis(where)) return has_redis_owner(where);
  return where.starts_with(kSqliteScheme) && is_locked(where.substr(kSqliteScheme.size()));
}

}  // namespace argiope
