// Whether a file of lines may be the daemon's: asked by its start and by a check before it.
#pragma once

#include <string>

#include "argiope/base/error.hpp"

namespace argiope {

// All lines of ours are objects of JSON (LineFile). A file that a person or another program has written is neither cut
// nor written anew. Callers have asked before whether it is the null device, which is good. Blocks.
// Errors: wrong_format; io and refused where it cannot be read. A file that is not there is good.
Result<void> check_line_file(const std::string& path);

}  // namespace argiope
