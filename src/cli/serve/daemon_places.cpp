#include "cli/serve/daemon_places.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/internal/file_writing.hpp"
#include "base/internal/null_device.hpp"
#include "base/internal/printable.hpp"
#include "cli/kept_file.hpp"
#include "project/store/internal/page_file.hpp"
#include "serve/base/internal/line_file_check.hpp"
#include "store/jobs/internal/job_file.hpp"

namespace argiope {
namespace {

constexpr std::string_view kStoreInFile = "sqlite:";

std::string file_of_store(const std::string& store) {
  return store.starts_with(kStoreInFile) ? store.substr(kStoreInFile.size()) : std::string();
}

// `name`: the option, or the member of the file.
std::unexpected<Error> with_name(std::string_view name, Error error) {
  return fail(error.code, fmt::format("{} {}", name, error.message));
}

Result<void> check_socket(std::string_view what, const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode)) {
    return fail(Errc::refused,
                fmt::format("{} unix:{}: there is another file, which is no socket", what, printable(path)));
  }
  if (!may_access(folder_holding(path), W_OK | X_OK)) return place_trouble(what, "unix:" + path, errno);
  return {};
}

// What keeps a socket from that place: an errno; 0 where nothing does.
int why_not_bound(const ListenAddress& address) {
  const addrinfo wanted{.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  const std::string host = address.host == "localhost" ? "127.0.0.1" : address.host;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(address.port).c_str(), &wanted, &found) != 0) return 0;
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (found->ai_family == AF_INET6) ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  const int trouble = ::bind(socket, found->ai_addr, found->ai_addrlen) == 0 ? 0 : errno;
  ::close(socket);
  ::freeaddrinfo(found);
  return trouble;
}

// Whether a server answers there.
bool is_answered(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof address.sun_path) return false;
  path.copy(address.sun_path, path.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool is_there = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return is_there;
}

// Names are not looked up: who listens says at which address. One that is taken, or for others to open, is no trouble:
// the daemon that runs may have it, and sockets may be handed over.
Result<void> check_host(std::string_view what, const ListenAddress& address) {
  const addrinfo numeric{.ai_flags = AI_NUMERICHOST};
  addrinfo* found = nullptr;
  const bool is_one =
      address.host == "localhost" || ::getaddrinfo(address.host.c_str(), nullptr, &numeric, &found) == 0;
  if (found != nullptr) ::freeaddrinfo(found);
  if (is_one && !address.host.empty()) {
    const bool is_elsewhere = why_not_bound(address) == EADDRNOTAVAIL && ::getenv("LISTEN_FDS") == nullptr;
    return is_elsewhere ? place_trouble(what, to_string(address), EADDRNOTAVAIL) : Result<void>{};
  }
  return fail(Errc::invalid_input,
              fmt::format("{} {}: {} is no address to listen at; all there are: \"0.0.0.0\", \"::\"", what,
                          to_string(address), in_quotes(address.host)));
}

Result<void> check_sockets(const std::vector<ListenAddress>& addresses, std::string_view what) {
  for (const ListenAddress& address : addresses) {
    if (auto good = address.is_unix() ? check_socket(what, address.unix_path) : check_host(what, address); !good)
      return good;
  }
  return {};
}

CommandFiles files_of_daemon(const ServeOptions& options, const std::vector<RunProject>& projects,
                             const PlaceNames& names) {
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
  for (const auto& [addresses, name] :
       {std::pair{&options.http, &names.listen}, {&options.beanstalkd, &names.beanstalkd}}) {
    for (const ListenAddress& address : *addresses) files.keeps(*name, address.unix_path);
  }
  name_project_files(projects, files);
  return files;
}

}  // namespace

std::vector<std::string> addresses_not_free(const ServeOptions& options, const PlaceNames& names) {
  std::vector<std::string> found;
  for (const auto& [addresses, name] :
       {std::pair{&options.http, &names.listen}, {&options.beanstalkd, &names.beanstalkd}}) {
    for (const ListenAddress& address : *addresses) {
      const int answered = address.is_unix() && is_answered(address.unix_path) ? EADDRINUSE : 0;
      const int trouble = address.is_unix() ? answered : why_not_bound(address);
      if (trouble != 0) found.push_back(place_trouble(*name, to_string(address), trouble).error().message);
    }
  }
  return found;
}

Result<void> check_places(const ServeOptions& options, const std::vector<RunProject>& projects,
                          const PlaceNames& names) {
  if (auto good = files_of_daemon(options, projects, names).check(); !good) return good;
  if (const std::string store = file_of_store(options.store); !store.empty()) {
    if (auto good = check_job_file(store); !good) return with_name(names.store, std::move(good.error()));
  }
  if (!options.pages.empty() && options.pages != ":memory:") {
    if (auto good = check_page_file(options.pages); !good) return with_name(names.pages, std::move(good.error()));
  }
  if (const std::string audit = options.audit_file(); !audit.empty() && !is_null_device(audit)) {
    if (auto good = check_kept_file(names.audit, audit); !good) return good;
    if (auto good = check_line_file(audit); !good) return with_name(names.audit, std::move(good.error()));
  }
  auto good = check_sockets(options.http, names.listen);
  return good ? check_sockets(options.beanstalkd, names.beanstalkd) : good;
}

}  // namespace argiope
