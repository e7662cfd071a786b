// Reading files of settings: as a whole and up to a bound. All who read what a user names as a configuration, a project, a key or a
// list of secrets read it here. A pipe or a device that merely has a name is refused, since it may never end: of what is no plain file,
// only pipes that were opened for this process are read, and the null device, which is an empty file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "argiope/base/error.hpp"

namespace argiope {

enum class FileReading : std::uint8_t {
  first,  // a pipe that was opened for this process is read to its end, too: `argiope serve <(generate)`
  again,  // plain files alone: a pipe may be empty by now, and who waited for its writer would wait for good
};

// The whole text. Blocks; with `again` for the disk alone.
// Errors: not_found, io, too_large beyond `most_bytes`, and refused for what is read in no way. Messages do not name the file.
Result<std::string> read_file_text(const std::string& path, std::size_t most_bytes, FileReading reading);
// The same of standard input, whatever it is.
Result<std::string> read_standard_input(std::size_t most_bytes);
// For those who read in pieces: whether read_file_text() would read that file. Opens nothing. Errors: as there.
Result<void> expect_readable_file(const std::string& path, FileReading reading);

}  // namespace argiope
