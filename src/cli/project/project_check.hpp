// `argiope project check`: whether a project's file is right, and what its rules would match.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace argiope {

// Adds the command below `project`; what is returned runs it and gives its exit status.
std::function<int()> add_project_check(CLI::App& project);

}  // namespace argiope
