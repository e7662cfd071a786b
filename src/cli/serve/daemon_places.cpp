#include "cli/serve/daemon_places.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/internal/file_writing.hpp"
#include "base/internal/printable.hpp"
#include "cli/kept_file.hpp"

namespace argiope {
namespace {

constexpr std::string_view kStoreInFile = "sqlite:";

std::string file_of_store(const std::string& store) {
  return store.starts_with(kStoreInFile) ? store.substr(kStoreInFile.size()) : std::string();
}

Result<void> check_socket(std::string_view what, const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode)) {
    return fail(Errc::refused, fmt::format("{} unix:{}: there is another file, which is no socket", what, printable(path)));
  }
  if (!may_access(folder_holding(path), W_OK | X_OK)) return place_trouble(what, "unix:" + path, errno);
  return {};
}

// Names are not looked up: who listens says at which address.
Result<void> check_host(std::string_view what, const ListenAddress& address) {
  const addrinfo numeric{.ai_flags = AI_NUMERICHOST};
  addrinfo* found = nullptr;
  const bool is_one = address.host == "localhost" || ::getaddrinfo(address.host.c_str(), nullptr, &numeric, &found) == 0;
  if (found != nullptr) ::freeaddrinfo(found);
  if (is_one && !address.host.empty()) return {};
  return fail(Errc::invalid_input, fmt::format("{} {}: {} is no address to listen at; all there are: \"0.0.0.0\", \"::\"", what, to_string(address),
                                               in_quotes(address.host)));
}

Result<void> check_sockets(const std::vector<ListenAddress>& addresses, std::string_view what) {
  for (const ListenAddress& address : addresses) {
    if (auto good = address.is_unix() ? check_socket(what, address.unix_path) : check_host(what, address); !good) return good;
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
  if (const std::string audit = options.audit_file(); !audit.empty()) {
    if (auto good = check_kept_file(names.audit, audit); !good) return good;
  }
  auto good = check_sockets(options.http, names.listen);
  return good ? check_sockets(options.beanstalkd, names.beanstalkd) : good;
}

}  // namespace argiope
