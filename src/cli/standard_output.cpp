#include "cli/standard_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "cli/commands.hpp"

namespace argiope {

void keep_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest number that is free is this one. To read the first and to write to the second is an error, as it was;
    // what is said on standard error is heard by nobody.
    (void)::open("/dev/null", number == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  }
}

Result<void> print_now(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0) return {};
  return fail(Errc::io, fmt::format("standard output: {}", std::strerror(errno)));
}

void say(std::string_view text) noexcept { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

// A handler, since commands that jobs run would inherit that the signal is ignored.
void let_writes_fail(int signal_number) noexcept {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  (void)::sigaction(signal_number, &action, nullptr);
}

int after_output(int status) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  // Who ends so has said why.
  if (status == kExitNothing) return status;
  const std::string why = errno == 0 ? std::string{} : fmt::format(": {}", std::strerror(errno));
  say(fmt::format("argiope: standard output: cannot be written{}\n", why));
  return status == kExitFinished || status == kExitBroken ? kExitNothing : status;
}

}  // namespace argiope
