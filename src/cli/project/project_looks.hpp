// `argiope project status`, `results`, `versions` and `explain`: looks at the database of projects, also beside their
// owner, or at those of a daemon. Nothing is changed and no site is asked.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace argiope {

// Each adds its command below `project`; what is returned runs it and gives its exit status.
std::function<int()> add_project_status(CLI::App& project);
std::function<int()> add_project_results(CLI::App& project);
std::function<int()> add_project_explain(CLI::App& project);
// Also `--roll-back`, which changes something.
std::function<int()> add_project_versions(CLI::App& project);

}  // namespace argiope
