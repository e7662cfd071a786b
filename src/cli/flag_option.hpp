// Flags: options without a value.
#pragma once

#include <CLI/CLI.hpp>

namespace argiope {

// From now on a flag of this command, and of those below it, takes no value but one that says yes or no: `--domain=5`
// is an error of usage, where CLI11 would take it for a yes.
void refuse_values_of_flags(CLI::App& command);

}  // namespace argiope
