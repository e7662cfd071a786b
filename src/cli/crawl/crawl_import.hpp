// `argiope crawl import`: takes over what another crawler knows.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "argiope/base/error.hpp"

namespace argiope {

// Adds it below `crawl`; what is returned runs it and gives the exit status.
std::function<int()> add_crawl_import(CLI::App& crawl);

// An error of opening `database` says how what is there can be taken over, if it can.
Error with_import_advice(Error error, const std::string& database);

}  // namespace argiope
