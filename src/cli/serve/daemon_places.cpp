#include "cli/serve/daemon_places.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/internal/file_writing.hpp"
#include "base/internal/output_file.hpp"
#include "base/internal/output_place.hpp"
#include "base/internal/printable.hpp"

namespace argiope {
namespace {

constexpr std::string_view kStoreInFile = "sqlite:";
constexpr std::string_view kSqliteBegin("SQLite format 3\0", 16);  // https://www.sqlite.org/fileformat.html

std::string file_of_store(const std::string& store) {
  return store.starts_with(kStoreInFile) ? store.substr(kStoreInFile.size()) : std::string();
}

std::unexpected<Error> place_trouble(std::string_view what, std::string_view path, int number) {
  return fail(Errc::io, fmt::format("{} {}: {}", what, printable(path), std::strerror(number)));
}

bool may(const std::string& path, int how) { return ::faccessat(AT_FDCWD, path.c_str(), how, AT_EACCESS) == 0; }

// A plain file that can be written, or room for one.
Result<void> check_kept_file(std::string_view what, const std::string& path) {
  const auto place = find_output_place(path);
  if (!place) return place_trouble(what, path, place.error());
  if (place->kind == OutputPlace::Kind::fresh) return OutputFile::check(what, path);
  if (!place->is_file) return fail(Errc::refused, fmt::format("{} {}: not a plain file", what, printable(path)));
  return may(path, R_OK | W_OK) ? Result<void>{} : place_trouble(what, path, errno);
}

// SQLite makes files beside it. It is not opened, as that makes them, too: who checks may be another user than the daemon.
Result<void> check_database(std::string_view what, const std::string& path) {
  if (path.empty() || path == ":memory:") return {};
  if (auto good = check_kept_file(what, path); !good) return good;
  const std::string folder = folder_holding(path);
  if (!may(folder, W_OK | X_OK)) return place_trouble(what, folder, errno);
  std::string begin(kSqliteBegin.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  if (file.gcount() == 0 || begin == kSqliteBegin) return {};  // what is empty is made
  return fail(Errc::wrong_format, fmt::format("{} {}: this file is no SQLite database", what, printable(path)));
}

Result<void> check_socket(std::string_view what, const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode)) {
    return fail(Errc::refused, fmt::format("{} unix:{}: there is another file, which is no socket", what, printable(path)));
  }
  if (!may(folder_holding(path), W_OK | X_OK)) return place_trouble(what, "unix:" + path, errno);
  return {};
}

Result<void> check_sockets(const std::vector<ListenAddress>& addresses, std::string_view what) {
  for (const ListenAddress& address : addresses) {
    if (!address.is_unix()) continue;
    if (auto good = check_socket(what, address.unix_path); !good) return good;
  }
  return {};
}

CommandFiles files_of_daemon(const ServeOptions& options, const std::vector<RunProject>& projects, const PlaceNames& names) {
  CommandFiles files;
  files.reads("FILE", names.file);
  files.reads(names.tokens, options.token_file);
  files.reads(names.certificate, options.tls.certificate);
  files.reads(names.key, options.tls.key);
  files.keeps_database(names.store, file_of_store(options.store));
  files.keeps_database(names.pages, options.pages);
  files.keeps(names.audit, options.audit_file());
  files.keeps(names.store + ", its history", options.history_file());
  files.keeps(names.store + ", whom it has told", options.notify_file());
  for (const auto& [addresses, name] : {std::pair{&options.http, &names.listen}, {&options.beanstalkd, &names.beanstalkd}}) {
    for (const ListenAddress& address : *addresses) files.keeps(*name, address.unix_path);
  }
  name_project_files(projects, files);
  return files;
}

}  // namespace

Result<void> check_places(const ServeOptions& options, const std::vector<RunProject>& projects, const PlaceNames& names) {
  if (auto good = files_of_daemon(options, projects, names).check(); !good) return good;
  if (auto good = check_database(names.store, file_of_store(options.store)); !good) return good;
  if (auto good = check_database(names.pages, options.pages); !good) return good;
  if (const std::string audit = options.audit_file(); !audit.empty()) {
    if (auto good = check_kept_file(names.audit, audit); !good) return good;
  }
  auto good = check_sockets(options.http, names.listen);
  return good ? check_sockets(options.beanstalkd, names.beanstalkd) : good;
}

}  // namespace argiope
