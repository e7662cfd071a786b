// The system calls that a script in the strict sandbox has not: what reaches the network, other processes, the kernel's
// inside, or memory that no bound counts.
#pragma once

#include <string>

#include "argiope/base/error.hpp"

namespace argiope {

// A file of this process that holds the filter, as bubblewrap's --seccomp reads it: /proc/PID/fd/N. It stays for as
// long as we live.
// Errors: unsupported, where the filter cannot be made; io.
// Threads: any.
Result<std::string> system_call_filter();

}  // namespace argiope
