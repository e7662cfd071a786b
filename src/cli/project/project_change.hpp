// `argiope project delete`, `restore`, `stop` and `start`: changes of projects that nobody runs.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace argiope {

// Each adds its command below `project`; what is returned runs it and gives its exit status.
std::function<int()> add_project_delete(CLI::App& project);
std::function<int()> add_project_restore(CLI::App& project);
std::function<int()> add_project_stop(CLI::App& project);
std::function<int()> add_project_start(CLI::App& project);

}  // namespace argiope
