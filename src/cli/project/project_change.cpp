#include "cli/project/project_change.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "base/internal/json_writer.hpp"
#include "base/internal/printable.hpp"
#include "base/internal/rfc3339.hpp"
#include "cli/commands.hpp"
#include "cli/project/project_database.hpp"
#include "cli/project/project_place.hpp"

namespace argiope {
namespace {

constexpr std::chrono::hours kRestorable{24};

struct ProjectChangeArguments {
  std::string name;
  ProjectPlace place;
};

// The same by a daemon: a request, and the sentence for when it was answered.
struct ToldChange {
  HttpMethod method = HttpMethod::post;
  std::string_view what;  // of the path, behind the project
  std::string body;
  std::string said;
};
using ChangeByDaemon = std::function<ToldChange(const std::string& name)>;

// The change of a project: changes the record, and gives the sentence that says so.
using ChangeRecord = std::function<Result<std::string>(ProjectRecord& project, WallTime now)>;

int change_project(const ProjectChangeArguments& arguments, const ChangeRecord& change,
                   const ChangeByDaemon& by_daemon) {
  if (!arguments.place.daemon.empty()) {
    const ToldChange told = by_daemon(arguments.name);
    return ask_daemon(arguments.place.daemon, told.method, path_of_project(arguments.name, told.what), told.body,
                      told.said);
  }
  auto store = change_pages(arguments.place.database);
  if (!store) return complain_of_project(store.error(), kExitNothing);
  auto project = find_project(**store, arguments.name, Deleted::included);
  if (!project) return complain_of_project(project.error(), status_for(project.error()));
  const WallTime now = calendar_now();
  const auto said = change(*project, now);
  if (!said) return complain_of_project(said.error(), kExitUsage);
  project->changed_at = now;
  PageBatch batch;
  batch.at = now;
  batch.projects.push_back(std::move(*project));
  (*store)->submit(std::move(batch));
  if (auto closed = (*store)->close(); !closed) return complain_of_project(closed.error(), kExitNothing);
  fmt::print("{}\n", *said);
  return kExitFinished;
}

std::unexpected<Error> not_so(const ProjectRecord& project, std::string_view what) {
  return fail(Errc::invalid_input, fmt::format("project {} {}", in_quotes(project.name), what));
}

std::string said_of_deleted(std::string_view name, WallTime now) {
  return fmt::format("Deleted {}. Until {} argiope project restore {} brings it back.", printable(name),
                     to_rfc3339(now + kRestorable), printable(name));
}

std::string said_of_restored(std::string_view name) {
  return fmt::format("{} is back, with its pages and results.", printable(name));
}

std::string said_of_status(std::string_view name, ProjectStatus status) {
  return fmt::format("{} is {}.", printable(name), to_string(status));
}

Result<std::string> deleted(ProjectRecord& project, WallTime now) {
  if (project.deleted_at) return not_so(project, "was deleted already");
  project.deleted_at = now;
  return said_of_deleted(project.name, now);
}

Result<std::string> restored(ProjectRecord& project, WallTime) {
  if (!project.deleted_at) return not_so(project, "was not deleted");
  project.deleted_at.reset();
  return said_of_restored(project.name);
}

Result<std::string> with_status(ProjectRecord& project, ProjectStatus status) {
  if (project.deleted_at)
    return not_so(project,
                  fmt::format("was deleted; argiope project restore {} brings it back", printable(project.name)));
  project.status = std::string(to_string(status));
  return said_of_status(project.name, status);
}

ToldChange status_by_daemon(const std::string& name, ProjectStatus status) {
  return {HttpMethod::patch, "", json_object([&](JsonWriter& out) { out.member("status", to_string(status)); }),
          said_of_status(name, status)};
}

std::function<int()> add_change(CLI::App& project, std::string name, std::string description, std::string more,
                                ChangeRecord change, ChangeByDaemon by_daemon) {
  auto arguments = std::make_shared<ProjectChangeArguments>();
  CLI::App* command = project.add_subcommand(name, std::move(description));
  command->add_option("NAME", arguments->name, "The project")->required()->type_name("");
  arguments->place.add_to(*command);
  command->footer(
      fmt::format("{}\n"
                  "Only while nobody runs the database; otherwise the error names the process that does. A daemon is "
                  "asked by --store.\n"
                  "Exit status: 0, 2 there is no such project or it is so already, 3 the database cannot be used.\n"
                  "Example: argiope project {} shop",
                  more, name));
  return [arguments, change = std::move(change), by_daemon = std::move(by_daemon)] {
    return change_project(*arguments, change, by_daemon);
  };
}

}  // namespace

std::function<int()> add_project_delete(CLI::App& project) {
  return add_change(project, "delete", "Delete a project with its pages and results; for 24 hours it can be restored.",
                    "The next run after 24 hours removes it for good.", deleted, [](const std::string& name) {
                      return ToldChange{HttpMethod::delete_, "", {}, said_of_deleted(name, calendar_now())};
                    });
}

std::function<int()> add_project_restore(CLI::App& project) {
  return add_change(project, "restore", "Bring a deleted project back.", "It is as it was when it was deleted.",
                    restored, [](const std::string& name) {
                      return ToldChange{HttpMethod::post, "restore", "{}", said_of_restored(name)};
                    });
}

std::function<int()> add_project_stop(CLI::App& project) {
  return add_change(
      project, "stop", "Have a project's pages not visited until it is started.",
      "Its status becomes STOP. Pages that wait go on waiting.",
      [](ProjectRecord& record, WallTime) { return with_status(record, ProjectStatus::stop); },
      [](const std::string& name) { return status_by_daemon(name, ProjectStatus::stop); });
}

std::function<int()> add_project_start(CLI::App& project) {
  return add_change(
      project, "start", "Have a stopped project's pages visited again.",
      "Its status becomes RUNNING; argiope project run visits its pages.",
      [](ProjectRecord& record, WallTime) { return with_status(record, ProjectStatus::running); },
      [](const std::string& name) { return status_by_daemon(name, ProjectStatus::running); });
}

}  // namespace argiope
