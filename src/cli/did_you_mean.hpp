// Errors of usage as sentences that help: what was meant, where a name was misspelt.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/internal/nearest.hpp"

namespace argiope {

// What the first words of the command line name that is no command; empty when they are well.
// `argiope "jbo": there is no such command; did you mean "job"? argiope --help lists them`
std::string wrong_command(const CLI::App& app, const std::vector<std::string>& words);

// What CLI11 says of the words after the program's name, as one sentence that names the command.
std::string sentence_of(const CLI::ParseError& error, const CLI::App& app, const std::vector<std::string>& words);

}  // namespace argiope
