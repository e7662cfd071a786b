// Reading files of settings: as a whole and up to a bound. All who read what a user names as a configuration, a project, a key or a
// list of secrets read it here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "argiope/base/error.hpp"

namespace argiope {

enum class FileReading : std::uint8_t {
  first,  // a pipe is waited for and read to its end: `argiope serve <(generate)`
  again,  // plain files alone: a pipe may be empty by now, and who waited for its writer would wait for good
};

// The whole text. Blocks; with `again` for the disk alone.
// Errors: not_found, io, too_large beyond `most_bytes`, and refused for what is no plain file. Messages do not name the file.
Result<std::string> read_file_text(const std::string& path, std::size_t most_bytes, FileReading reading);

}  // namespace argiope
