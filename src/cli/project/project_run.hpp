// `argiope project run`: visits the pages of projects in the foreground.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace argiope {

// Adds the command below `project`; what is returned runs it and gives its exit status.
std::function<int()> add_project_run(CLI::App& project);

}  // namespace argiope
