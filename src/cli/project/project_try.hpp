// `argiope project try`: what a project makes of one page, which is fetched for it; nothing is stored.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace argiope {

// Adds the command below `project`; what is returned runs it and gives its exit status.
std::function<int()> add_project_try(CLI::App& project);

}  // namespace argiope
