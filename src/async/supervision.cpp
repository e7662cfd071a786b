#include "async/supervision.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>
#include <system_error>

#include "async/unique_fd.hpp"

// The program, as the build has made it.
__asm__(
    ".section .rodata\n"
    ".globl argiope_supervisor_begin\n"
    ".globl argiope_supervisor_end\n"
    ".balign 16\n"
    "argiope_supervisor_begin:\n"
    ".incbin \"" ARGIOPE_SUPERVISOR
    "\"\n"
    "argiope_supervisor_end:\n"
    ".previous\n");
extern "C" {
extern const char argiope_supervisor_begin[];
extern const char argiope_supervisor_end[];
}

namespace argiope::detail {
namespace {

constexpr unsigned kMayRun = 0x10;  // MFD_EXEC, since Linux 6.3
constexpr int kAboveOthers = 10;    // a child's own descriptors are put below

[[noreturn]] void give_up() {
  throw std::system_error(errno, std::generic_category(), "cannot keep the supervisor of commands in memory");
}

UniqueFd write_program() {
  UniqueFd file(::memfd_create("argiope-supervisor", MFD_CLOEXEC | kMayRun));
  if (!file && errno == EINVAL) file = UniqueFd(::memfd_create("argiope-supervisor", MFD_CLOEXEC));
  if (!file) give_up();
  for (const char* from = argiope_supervisor_begin; from != argiope_supervisor_end;) {
    const ssize_t written = ::write(file.get(), from, static_cast<std::size_t>(argiope_supervisor_end - from));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) give_up();
    from += written;
  }
  // A file that is open for writing cannot be run: it is opened anew.
  char path[64];
  ::snprintf(path, sizeof path, "/proc/self/fd/%d", file.get());
  UniqueFd readable(::open(path, O_RDONLY | O_CLOEXEC));
  if (!readable) give_up();
  UniqueFd above(::fcntl(readable.get(), F_DUPFD_CLOEXEC, kAboveOthers));
  if (!above) give_up();
  return above;
}

}  // namespace

int supervisor_program() {
  static std::mutex mutex;
  static UniqueFd program;
  const std::scoped_lock lock(mutex);
  if (!program) program = write_program();
  return program.get();
}

}  // namespace argiope::detail
