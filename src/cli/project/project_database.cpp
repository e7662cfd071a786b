#include "cli/project/project_database.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "argiope/store/store.hpp"
#include "base/internal/printable.hpp"
#include "cli/commands.hpp"
#include "cli/did_you_mean.hpp"
#include "cli/error_advice.hpp"
#include "cli/standard_output.hpp"

namespace argiope {
namespace {

std::string first_line_of(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// The process that holds a lock on the file, as the system tells everybody; 0: it does not.
long locking_process(const std::string& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return 0;
  const std::string wanted = fmt::format("{:02x}:{:02x}:{}", major(found.st_dev), minor(found.st_dev), found.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    // "7: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF"; who waits has "->" behind the number.
    std::istringstream words(line);
    std::string number, kind, mode, access, process, place;
    words >> number >> kind >> mode >> access >> process >> place;
    if (kind == "FLOCK" && access == "WRITE" && place == wanted) return std::atol(process.c_str());
  }
  return 0;
}

}  // namespace

int complain_of_project(const Error& error, int status) {
  say(fmt::format("argiope: {}\n", printable_lines(error.message)));
  return status;
}

CLI::Option* add_pages_database(CLI::App& command, std::string& database) {
  return command.add_option("-d,--db,--database", database, "SQLite database of the projects")
      ->type_name("FILE")
      ->capture_default_str();
}

Result<std::unique_ptr<PageStore>> look_at_pages(const std::string& database) {
  if (::access(database.c_str(), F_OK) != 0 && errno == ENOENT) {
    return fail(Errc::not_found,
                fmt::format("database {}: there is none; argiope project run makes it, --db names another",
                            printable(database)));
  }
  auto store = open_page_store_to_look(database);
  if (!store) return std::unexpected(with_database_option(std::move(store.error()), database));
  return store;
}

Result<std::unique_ptr<PageStore>> own_pages(const std::string& database, const PageStoreOptions& options) {
  PageStoreOptions own = options;
  own.is_private = true;  // what scripts say of pages may hold cookies and passwords
  auto store = open_page_store(database, own);
  if (store) return store;
  Error error = with_database_option(std::move(store.error()), database);
  if (error.code == Errc::busy) {
    const std::string owner = owner_of_pages(database);
    error.message += fmt::format("{}{}: stop it first (Ctrl-C there), or name another database by --db",
                                 owner.empty() ? "" : ", ", owner);
  }
  return std::unexpected(std::move(error));
}

Result<std::unique_ptr<PageStore>> change_pages(const std::string& database) {
  // A file that is no database of ours is told of before anything is opened to write.
  if (auto looked = look_at_pages(database); !looked) return std::unexpected(std::move(looked.error()));
  return own_pages(database);
}

std::string owner_of_pages(const std::string& database) {
  if (!has_owner("sqlite:" + database)) return {};
  const long process = locking_process(database);
  if (process <= 0) return "a process of this machine";
  const std::string name = first_line_of(fmt::format("/proc/{}/comm", process));
  return name.empty() ? fmt::format("process {}", process) : fmt::format("process {} ({})", process, printable(name));
}

Result<ProjectRecord> find_project(PageStore& store, std::string_view name, Deleted deleted) {
  auto projects = store.projects();
  if (!projects) return std::unexpected(std::move(projects.error()));
  std::vector<std::string> names;
  for (ProjectRecord& project : *projects) {
    const bool is_wanted = deleted == Deleted::included || !project.deleted_at;
    if (project.name == name && is_wanted) return std::move(project);
    if (project.name == name) {
      return fail(Errc::not_found, fmt::format("project {} was deleted; argiope project restore {} brings it back",
                                               in_quotes(name), printable(name)));
    }
    if (is_wanted) names.push_back(project.name);
  }
  if (names.empty())
    return fail(Errc::not_found, fmt::format("there is no project {}: the database has none", in_quotes(name)));
  return fail(Errc::not_found,
              fmt::format("there is no project {}{} argiope project status lists them", in_quotes(name),
                          did_you_mean(name, names).empty() ? ";" : did_you_mean(name, names)));
}

Result<ProjectVersion> version_of(PageStore& store, const ProjectRecord& project, std::int64_t number) {
  const std::int64_t wanted = number == 0 ? project.version : number;
  auto version = store.version(project.id, wanted);
  if (!version) return std::unexpected(std::move(version.error()));
  if (!*version)
    return fail(Errc::not_found, fmt::format("project {} has no version {}; the newest is {}", in_quotes(project.name),
                                             wanted, project.version));
  return std::move(**version);
}

Result<ProjectDefinition> definition_of(const ProjectVersion& version) { return parse_project_json(version.text); }

ProjectStatus status_of(const ProjectRecord& project) {
  for (const ProjectStatus status :
       {ProjectStatus::todo, ProjectStatus::stop, ProjectStatus::checking, ProjectStatus::debug}) {
    if (to_string(status) == project.status) return status;
  }
  return ProjectStatus::running;
}

int status_for(const Error& error) {
  return error.code == Errc::not_found || error.code == Errc::invalid_input ? kExitUsage : kExitNothing;
}

WallTime calendar_now() { return std::chrono::floor<std::chrono::milliseconds>(SystemClock().wall_now()); }

}  // namespace argiope
