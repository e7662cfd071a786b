// Writing to files by their descriptors, and what is said when the system refuses: for archives and mirrors, whose bytes go to places
// that their writers know.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "argiope/base/error.hpp"

namespace argiope {

// "FILE: cannot be DONE: …", by errno: disk_full where there is no room, else io.
std::unexpected<Error> file_trouble(std::string_view file, std::string_view done);

// All of `bytes` at `offset`. On an error some may be there.
// Errors: as file_trouble().
Result<void> write_all(int descriptor, std::string_view bytes, std::uint64_t offset, const std::string& file);

}  // namespace argiope
