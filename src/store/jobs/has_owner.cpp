#include <string_view>

#include "argiope/store/store.hpp"
#include "store/sqlite/internal/sqlite_file.hpp"

namespace argiope {

bool has_owner(const std::string& where) {
  constexpr std::string_view kSqlite = "sqlite:";
  return where.starts_with(kSqlite) && is_locked(where.substr(kSqlite.size()));
}

}  // namespace argiope
