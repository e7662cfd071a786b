// Where a command's projects are: in a database of this machine, or with a daemon, which is asked by its API.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "argiope/async/asio_backend.hpp"
#include "argiope/async/event_loop.hpp"
#include "argiope/base/clock.hpp"
#include "cli/daemon_store.hpp"
#include "remote/internal/api_client.hpp"

namespace argiope {

struct ProjectPlace {
  std::string database = "pages.db";
  std::string daemon;  // "http://host:7733"; empty: the database

  // -d and --store, one of them at a time.
  void add_to(CLI::App& command);
};

// Of a command that no daemon can do: --store is refused. `why` is a clause with what to do instead.
void refuse_daemon(CLI::App& command, std::string why);

// A daemon that a command asks, one request after the other, each of which is waited for.
class ProjectDaemon {
 public:
  // Errors: invalid_input for an address, or a token, that none can be.
  static Result<std::unique_ptr<ProjectDaemon>> open(const std::string& where);
  ProjectDaemon(const ProjectDaemon&) = delete;

  // "http://host:7733".
  const std::string& name() { return store_.client().name(); }
  // The body of the answer. Errors: those of ApiClient::tell().
  Result<std::string> ask(HttpMethod method, std::string path, std::string body = {});
  // The answer, as `read(const JsonValue&)` reads it. Errors: also protocol.
  template <class Read>
  auto get(std::string path, Read read) -> decltype(read_answer(std::string(), read)) {
    const auto body = ask(HttpMethod::get, std::move(path));
    if (!body) return std::unexpected(body.error());
    return read_answer(*body, read);
  }

 private:
  explicit ProjectDaemon(const DaemonAddress& address) : store_(address, backend_) {}

  SystemClock clock_;
  AsioBackend backend_{clock_};
  EventLoop loop_{backend_};
  DaemonStore store_;
};

// "/v1/projects/shop/pages"; `what` may be empty.
std::string path_of_project(std::string_view name, std::string_view what = {});

// Says it. The exit status: 2 for what is named wrongly or refused, 3 for the rest.
int complain_of_daemon(const Error& error);
// Asks a daemon for one thing, and prints what is said then.
int ask_daemon(const std::string& where, HttpMethod method, const std::string& path, const std::string& body,
               const std::string& said);

}  // namespace argiope
