// How the library and the supervisor of a command talk, and how the supervisor is started: see
// async/supervisor/main.cpp.
#pragma once

#include <sys/types.h>

namespace argiope::detail {

// The socket, in the supervisor.
inline constexpr int kControlDescriptor = 3;

// The supervisor's first words.
struct StartReport {
  int error;      // 0: the command runs; else why it could not be started
  pid_t command;  // its process, and the group it leads
};

// The supervisor's program as an open file that can be run through /proc/self/fd; the same for all calls.
// Errors: std::system_error when this system has no room for it.
// Threads: any.
int supervisor_program();

}  // namespace argiope::detail
