// `argiope project`: crawls that go on, as files say them (docs/projects.md).
#include <CLI/CLI.hpp>
#include <functional>
#include <utility>

#include "cli/commands.hpp"
#include "cli/project/project_ask.hpp"
#include "cli/project/project_change.hpp"
#include "cli/project/project_check.hpp"
#include "cli/project/project_looks.hpp"
#include "cli/project/project_run.hpp"
#include "cli/project/project_try.hpp"
#include "cli/subcommands.hpp"

namespace argiope {

std::function<int()> add_project_command(CLI::App& app) {
  CLI::App* project =
      app.add_subcommand("project", "Run, try and look at projects: rules for pages that are visited again and again.");
  project->require_subcommand(1);
  project->footer(
      "argiope project COMMAND --help says more. docs/projects.md is the guide, docs/from-pyspider.md the way here "
      "from pyspider.\n"
      "Begin with: argiope project try FILE URL");
  Subcommands commands(*project);
  for (const auto add :
       {&add_project_run, &add_project_status, &add_project_results, &add_project_explain, &add_project_check,
        &add_project_try, &add_project_versions, &add_project_stop, &add_project_start, &add_project_ask,
        &add_project_message, &add_project_resume, &add_project_delete, &add_project_restore}) {
    commands.add(add(*project));
  }
  return [commands = std::move(commands)] { return commands.run(); };
}

}  // namespace argiope
