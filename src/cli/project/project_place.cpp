#include "cli/project/project_place.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "base/internal/printable.hpp"
#include "cli/commands.hpp"
#include "cli/error_advice.hpp"
#include "cli/project/project_database.hpp"
#include "remote/internal/api_path.hpp"

namespace argiope {
namespace {

// Where jobs are no projects are.
std::string why_no_daemon(const std::string& where) {
  if (!is_daemon(where))
    return fmt::format("{}: a daemon, http://HOST:7733; a database of projects is named by -d", in_quotes(where));
  const auto address = daemon_address(where);
  return address ? std::string() : address.error().message;
}

}  // namespace

void ProjectPlace::add_to(CLI::App& command) {
  CLI::Option* const file = add_pages_database(command, database);
  command
      .add_option("--store", daemon, "A daemon instead of a database: http://HOST:7733 (its token in ARGIOPE_TOKEN)")
      ->check(CLI::Validator([](std::string& where) { return why_no_daemon(where); }, ""))
      ->excludes(file)
      ->type_name("STORE");
}

void refuse_daemon(CLI::App& command, std::string why) {
  command.add_option_function<std::string>("--store", [](const std::string&) {})
      ->check(CLI::Validator(
          [why = std::move(why)](std::string& where) { return fmt::format("{}: {}", in_quotes(where), why); }, ""))
      ->group("");
}

Result<std::unique_ptr<ProjectDaemon>> ProjectDaemon::open(const std::string& where) {
  const auto address = daemon_address(where);
  if (!address) return std::unexpected(address.error());
  return std::unique_ptr<ProjectDaemon>(new ProjectDaemon(*address));
}

Result<std::string> ProjectDaemon::ask(HttpMethod method, std::string path, std::string body) {
  ApiRequest request{.method = method, .path = std::move(path), .body = std::move(body)};
  return loop_.run_until_complete([](ApiClient& client, ApiRequest asked) -> Coro<Result<std::string>> {
    co_return co_await client.tell(std::move(asked));
  }(store_.client(), std::move(request)));
}

std::string path_of_project(std::string_view name, std::string_view what) {
  return path_of("project", name, what).value_or(fmt::format("/v1/projects/{}", what));
}

int complain_of_daemon(const Error& error) {
  const Error told = with_store_option(error);
  return complain_of_project(told, told.code == Errc::too_large || told.code == Errc::refused
                                       ? static_cast<int>(kExitUsage)
                                       : status_for(told));
}

int ask_daemon(const std::string& where, HttpMethod method, const std::string& path, const std::string& body,
               const std::string& said) {
  auto daemon = ProjectDaemon::open(where);
  if (!daemon) return complain_of_daemon(daemon.error());
  if (const auto answered = (*daemon)->ask(method, path, body); !answered) return complain_of_daemon(answered.error());
  fmt::print("{}\n", said);
  return kExitFinished;
}

}  // namespace argiope
