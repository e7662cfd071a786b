// `argiope project ask`, `message` and `resume`: what an owner of the database would be told, while there is none.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace argiope {

// Each adds its command below `project`; what is returned runs it and gives its exit status.
std::function<int()> add_project_ask(CLI::App& project);
std::function<int()> add_project_message(CLI::App& project);
std::function<int()> add_project_resume(CLI::App& project);

}  // namespace argiope
