// Whether a file can be kept where a command wants one: asked before the command opens or makes anything.
#pragma once

#include <string>
#include <string_view>

#include "argiope/base/error.hpp"

namespace argiope {

// A plain file that can be written, or room for one. `what` begins errors: the option that names it.
// Errors: io and disk_full; refused for what is no plain file.
Result<void> check_kept_file(std::string_view what, const std::string& path);
// The same of a database of SQLite, and of the folder, as SQLite makes files beside it. An empty path and ":memory:"
// are no file. The database is not opened, as that makes those files, too: who checks may be another user than the one
// that runs.
// Errors: as above; wrong_format for a file that is no database.
Result<void> check_kept_database(std::string_view what, const std::string& path);

std::unexpected<Error> place_trouble(std::string_view what, std::string_view path, int number);
// `how`: as of access(), for the rights that the process has in effect.
bool may_access(const std::string& path, int how);

}  // namespace argiope
