// Files of JSON lines that a command is given by an option: `argiope job put --file FILE` and its kin.
#pragma once

#include <string>
#include <string_view>

#include "argiope/base/error.hpp"
#include "base/internal/file_reading.hpp"

namespace argiope {

// The file, open to be read line by line. "" and "-": standard input. A named pipe is waited for and read; a device,
// which may never end, is refused.
// Errors: naming `option` and the file: as InputFile::open(); invalid_input for what is plainly of another kind.
Result<InputFile> open_lines(std::string_view option, const std::string& path);

}  // namespace argiope
