// Completes the words of a command line in a shell: commands, options, the choices of an option, files where files are
// meant. Made of the help, for bash 4.4, zsh 5 and fish 3 or newer; nothing is asked of the program while a word is
// typed.
#pragma once

#include <string>

#include "cli/help/command_help.hpp"

namespace argiope {

// For a file of the program's name in bash-completion's folder; works without bash-completion, too.
std::string bash_completion(const CommandHelp& program);
// For a file `_NAME` in a folder of zsh's $fpath.
std::string zsh_completion(const CommandHelp& program);
// For a file `NAME.fish` in fish's vendor_completions.d.
std::string fish_completion(const CommandHelp& program);

}  // namespace argiope
