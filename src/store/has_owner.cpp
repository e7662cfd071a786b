#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <string_view>

#include "argiope/store/store.hpp"

namespace argiope {

bool has_owner(const std::string& where) {
  constexpr std::string_view kSqlite = "sqlite:";
  if (!where.starts_with(kSqlite)) return false;
  const int file = ::open(where.c_str() + kSqlite.size(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  // Owners hold it exclusively. Whoever wants to become one at this very moment is turned away, and should try again.
  const bool owned = ::flock(file, LOCK_SH | LOCK_NB) != 0;
  ::close(file);
  return owned;
}

}  // namespace argiope
