// Options whose values are lists, by commas: one reader for all of them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argiope/base/error.hpp"

namespace argiope {

// The parts of `text`, without the blanks around each.
// Errors: invalid_input, `"a,,b": a part between its commas is empty`, for a part that is empty.
Result<std::vector<std::string>> parts_of_list(std::string_view text);

// A repeatable option; `out` has the parts of all its values in order. A wrong part, or a wrong list, is an error of
// usage.
CLI::Option* add_list(CLI::App& command, std::string name, std::vector<std::string>& out, std::string description,
                      CLI::Validator part = {});
CLI::Option* add_list(CLI::App& command, std::string name, std::vector<std::uint16_t>& out, std::string description,
                      CLI::Validator part);

}  // namespace argiope
