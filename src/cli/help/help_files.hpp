// The files that packages install beside the command: manual pages and completions.
#pragma once

#include <CLI/CLI.hpp>

namespace argiope {

// Adds the option --help-files DIR, which help does not show: it writes man/NAME.1 for the program and for each of its
// commands, bash/NAME, zsh/_NAME and fish/NAME.fish into that directory, and ends the program. The pages bear the date
// of SOURCE_DATE_EPOCH, or today's.
void add_help_files_option(CLI::App& program);

}  // namespace argiope
