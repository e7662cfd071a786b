// Options that are numbers: what is none, or out of range, is told with the value and what is allowed ("--max-pages:
// \"-1\": a whole number, 0 or more").
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace argiope {

inline constexpr std::uint64_t kNoMost = std::numeric_limits<std::uint64_t>::max();

// A whole number from `least` to `most`, both allowed. The option's type must hold them. CLI11 alone takes "-1" as the
// largest number there is where the type has no sign.
CLI::Validator whole_number(std::int64_t least, std::uint64_t most = kNoMost);

// Any number from `least` to `most`, both allowed; NaN is none.
CLI::Validator any_number(double least, double most);

// "--ok-status 0,1": exit statuses of a command that are no failure.
CLI::Option* add_ok_status(CLI::App& command, std::vector<int>& statuses);

// At least so many bytes, a number of KiB; with a unit of 1,024 or without: "500M" becomes its bytes, so this is a
// transform().
CLI::Validator whole_bytes(std::uint64_t least_kb);

// Bytes of "20000", "500K" or "10M"; none of what is neither, below 0 or too large.
std::optional<std::uint64_t> bytes_of(std::string text);

// A file, folder or URL that is named at all: "" is what scripts write whose variable is not set.
CLI::Validator not_empty();

}  // namespace argiope
