// `argiope project`: crawls that go on, as files say them (docs/projects.md).
#include <CLI/CLI.hpp>
#include <functional>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/project/project_ask.hpp"
#include "cli/project/project_change.hpp"
#include "cli/project/project_check.hpp"
#include "cli/project/project_looks.hpp"
#include "cli/project/project_run.hpp"
#include "cli/project/project_try.hpp"

namespace argiope {

std::function<int()> add_project_command(CLI::App& app) {
  CLI::App* project =
      app.add_subcommand("project", "Run, try and look at projects: rules for pages that are visited again and again.");
  project->require_subcommand(1);
  project->footer(
      "argiope project COMMAND --help says more. docs/projects.md is the guide, docs/from-pyspider.md the way here "
      "from pyspider.\n"
      "Begin with: argiope project try FILE URL");
  std::vector<std::pair<const char*, std::function<int()>>> commands = {
      {"run", add_project_run(*project)},           {"status", add_project_status(*project)},
      {"results", add_project_results(*project)},   {"explain", add_project_explain(*project)},
      {"check", add_project_check(*project)},       {"try", add_project_try(*project)},
      {"versions", add_project_versions(*project)}, {"stop", add_project_stop(*project)},
      {"start", add_project_start(*project)},       {"ask", add_project_ask(*project)},
      {"message", add_project_message(*project)},   {"resume", add_project_resume(*project)},
      {"delete", add_project_delete(*project)},     {"restore", add_project_restore(*project)},
  };
  return [project, commands = std::move(commands)] {
    for (const auto& [name, run] : commands) {
      if (project->got_subcommand(name)) return run();
    }
    return static_cast<int>(kExitUsage);
  };
}

}  // namespace argiope
