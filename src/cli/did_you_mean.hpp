// Errors of usage as sentences that help: what was meant, where a name was misspelt.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/internal/nearest.hpp"

namespace argiope {

// The error where the first words of the command line name no command; empty when they are well.
// `argiope "jbo": there is no such command; did you mean "job"? argiope --help lists them`
std::string wrong_command(const CLI::App& app, const std::vector<std::string>& words);

// The error of CLI11 on the words after the program's name, as one sentence that names the command.
std::string sentence_of(const CLI::ParseError& error, const CLI::App& app, const std::vector<std::string>& words);

}  // namespace argiope
