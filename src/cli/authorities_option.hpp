// The option --ca-file: certificate authorities that are trusted beside the system's.
#pragma once

#include <CLI/CLI.hpp>

namespace argiope {

// A file that the client can read them from. Else each https server would fail, one after the other.
CLI::Validator authorities_file();

}  // namespace argiope
