#include "cli/kept_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/internal/file_writing.hpp"
#include "base/internal/output_file.hpp"
#include "base/internal/output_place.hpp"
#include "base/internal/printable.hpp"
#include "store/sqlite/internal/sqlite_file.hpp"

namespace argiope {
std::unexpected<Error> place_trouble(std::string_view what, std::string_view path, int number) {
  return fail(Errc::io, fmt::format("{} {}: {}", what, printable(path), std::strerror(number)));
}

bool may_access(const std::string& path, int how) { return ::faccessat(AT_FDCWD, path.c_str(), how, AT_EACCESS) == 0; }

Result<void> check_kept_file(std::string_view what, const std::string& path) {
  const auto place = find_output_place(path);
  if (!place) return place_trouble(what, path, place.error());
  if (place->kind == OutputPlace::Kind::fresh) return OutputFile::check(what, path);
  if (!place->is_file) return fail(Errc::refused, fmt::format("{} {}: not a plain file", what, printable(path)));
  return may_access(path, R_OK | W_OK) ? Result<void>{} : place_trouble(what, path, errno);
}

Result<void> check_kept_database(std::string_view what, const std::string& path) {
  if (path.empty() || path == ":memory:") return {};
  if (auto good = check_kept_file(what, path); !good) return good;
  const std::string folder = folder_holding(path);
  if (!may_access(folder, W_OK | X_OK)) return place_trouble(what, folder, errno);
  std::string begin(kSqliteBegin.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  if (file.gcount() == 0 || begin == kSqliteBegin) return {};  // what is empty is made
  return fail(Errc::wrong_format, fmt::format("{} {}: this file is no SQLite database", what, printable(path)));
}

}  // namespace argiope
