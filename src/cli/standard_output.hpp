// Standard output, to which results go: whether they came through, for all commands in one place.
#pragma once

#include <string_view>

#include "argiope/base/error.hpp"

namespace argiope {

// Where the process was started without one of the three standard descriptors, its number is taken by what can be
// neither read nor written: else the next file that is opened, a database say, would get what is printed.
void keep_standard_descriptors();

// For what comes bit by bit: all of it goes out now.
// Errors: io, "standard output: …".
Result<void> print_now(std::string_view bytes);

// On standard error, to which all goes that is no result. That it cannot be written changes nothing: who goes wrong
// ends with the status for it, and who goes on goes on.
void say(std::string_view text) noexcept;

// From now on a write that the system would answer with this signal (SIGPIPE, SIGXFSZ) fails instead of ending the
// process. Commands that are started know nothing of it.
void let_writes_fail(int signal_number) noexcept;

// The exit status of a command that ends with `status`: what it has printed must have come through, or it has failed,
// and that is said.
int after_output(int status);

}  // namespace argiope
